/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What tests of foreign files need: a directory of their own and programs built on the spot.
 */
#ifndef STACKTAP_TESTS_FIXTURE_H
#define STACKTAP_TESTS_FIXTURE_H

#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <limits.h>
#include <string.h>

#include "base/macro.h"

/* A directory that is removed at exit; the same one on every call. */
const char *fixture_directory(void);
/* DIRECTORY/@name. Static storage, four calls deep. */
const char *fixture_path(const char *name);
/* Run a shell command in the directory; fails the test unless it succeeds. */
void fixture_run(const char *format, ...) _printf_(1, 2);
/* First line of a command's output, run in the directory; static storage. */
const char *fixture_ask(const char *format, ...) _printf_(1, 2);
void fixture_write(const char *name, const char *text);
/* Compile @source (C) to @name with the compiler's @flags. Returns its path, as fixture_path(). */
const char *fixture_build(const char *name, const char *flags, const char *source);
/* A whole file in memory. */
uint8_t *fixture_load(const char *path, size_t *ret_size);

#endif /* STACKTAP_TESTS_FIXTURE_H */
