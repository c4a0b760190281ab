/* SPDX-License-Identifier: Apache-2.0 */
/* An error with its sentence, and several sentences in one text. */
#ifndef STACKTAP_BASE_FAIL_H
#define STACKTAP_BASE_FAIL_H

#include "base/macro.h"

/* @error, after the sentence was written to @ret_text, which may be NULL. */
int fail_with(int error, char *ret_text, size_t size, const char *format, ...) _printf_(4, 5);

/* Behind what is in @text, after a semicolon. What does not fit is cut off. */
void fail_note(char *text, size_t size, const char *format, ...) _printf_(3, 4);

#define fail_invalid(...) fail_with(-EINVAL, __VA_ARGS__)

#endif /* STACKTAP_BASE_FAIL_H */
