/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text of foreign origin made fit for protobuf and JSON, whose strings must be UTF-8.
 */
#ifndef STACKTAP_BASE_UTF8_H
#define STACKTAP_BASE_UTF8_H

#include "base/macro.h"

/* Whether this byte goes on with a character that began before it. */
static inline bool utf8_is_inside(char byte)
{
	return ((unsigned char)byte & 0xc0) == 0x80;
}

/* Of the well-formed character at @text, control characters included; 0: there is none. Never reads past a NUL. */
size_t utf8_length(const char *text);
/*
 * Copy @source into @ret_text of @size bytes, cut at a character's end to fit, with a NUL. Bytes
 * that are no UTF-8 and control characters become '?'. Returns the length.
 */
size_t utf8_copy(char *ret_text, size_t size, const char *source);
/* As utf8_copy(); where something was cut off, it ends with an ellipsis. */
size_t utf8_shorten(char *ret_text, size_t size, const char *source);
/* A malloc'ed copy of at most @max bytes, NULL when out of memory. */
char *utf8_dup(const char *source, size_t max) _must_check_;

#endif /* STACKTAP_BASE_UTF8_H */
