/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KMODTEST_TAP_H
#define KMODTEST_TAP_H

#include <stdbool.h>

/* One line of TAP; returns @good. */
bool tap(bool good, const char *format, ...) __attribute__((format(printf, 2, 3)));
void tap_note(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The plan; returns the exit status. */
int tap_done(void);

#endif /* KMODTEST_TAP_H */
