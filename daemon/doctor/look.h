/* SPDX-License-Identifier: Apache-2.0 */
/* Looking at the host below a root. */
#ifndef STACKTAP_DOCTOR_LOOK_H
#define STACKTAP_DOCTOR_LOOK_H

#include "base/macro.h"

/*
 * The file @path below @root, NUL-terminated, without trailing blanks; the caller frees it. 0 or
 * -errno.
 */
int look_text(const char *root, const char *path, char **ret_text);
/* Its first bytes, as they are. The number of bytes or -errno. */
ssize_t look_bytes(const char *root, const char *path, void *buffer, size_t size);
/* 0, or why not: -ENOENT, -EACCES ... */
int look_for(const char *root, const char *path);
/* A file that holds one number in decimal. */
int look_number(const char *root, const char *path, int64_t *ret_number);
/* Call @each for the entries of a directory, in no order; stops when it says so. */
int look_into(const char *root, const char *path, bool (*each)(void *ctx, const char *name),
	      void *ctx);

/*
 * The value of "KEY<separator> value" at a line's start, such as "flags : fpu vme"; the caller
 * frees it. -ENOENT when there is no such line.
 */
int look_field(const char *text, const char *key, char separator, char **ret_value);
/* Is @word one of the words of @text, which blanks separate? */
bool look_has_word(const char *text, const char *word);

#endif /* STACKTAP_DOCTOR_LOOK_H */
