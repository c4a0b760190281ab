/* SPDX-License-Identifier: Apache-2.0 */
/* Why there is no session: the sentence behind capture_strerror() is kept by thread where something failed. */
#ifndef STACKTAP_CAPTURE_ERROR_H
#define STACKTAP_CAPTURE_ERROR_H

#include "base/macro.h"

/* One sentence: what is wrong and the remedy. Static or thread-local storage. */
const char *capture_strerror(int error);
void capture_fail_clear(void);
/* Keep a sentence and return @error (negative). */
int capture_fail(int error, const char *format, ...) _printf_(2, 3);
int capture_fail_sideband(int error, uint32_t cpu);

#endif /* STACKTAP_CAPTURE_ERROR_H */
