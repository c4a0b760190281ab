/* SPDX-License-Identifier: Apache-2.0 */
/* The texts of an image's details as bytes, each with its NUL, as the opener sends them. */
#ifndef STACKTAP_PROCESS_TEXTS_H
#define STACKTAP_PROCESS_TEXTS_H

#include "process/image.h"

enum { TEXTS_MAX_BYTES = 8192 };	/* more than all texts of the greatest lengths */

/* Returns how many bytes were written. */
size_t texts_put(const struct image_details *details, char ret_bytes[static TEXTS_MAX_BYTES]);
/*
 * Each is taken for text, whatever it is: cut, and made valid UTF-8. -EBADMSG: there are not as many as texts.
 * -ENOMEM. What was taken until then is the caller's as well.
 */
int texts_take(const char *bytes, size_t size, struct image_details *details);

#endif /* STACKTAP_PROCESS_TEXTS_H */
