/* SPDX-License-Identifier: Apache-2.0 */
/* Base 64 of RFC 4648, section 4. */
#ifndef STACKTAP_BASE_BASE64_H
#define STACKTAP_BASE_BASE64_H

#include "base/macro.h"

#define BASE64_CHARACTERS(bytes) (((bytes) + 2) / 3 * 4)

/* With padding, and a NUL behind it. */
void base64_encode(const uint8_t *bytes, size_t size, char *ret_text);

/* Of @length characters without padding; the number of bytes, or -EBADMSG. @ret_bytes has room for 3 of 4 of them. */
ssize_t base64_decode(const char *text, size_t length, uint8_t *ret_bytes);

#endif /* STACKTAP_BASE_BASE64_H */
