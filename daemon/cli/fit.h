/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines of names that are no wider than the terminal, and sentences that go on in the next one; what goes elsewhere is whole.
 * Columns are those of a terminal.
 */
#ifndef STACKTAP_CLI_FIT_H
#define STACKTAP_CLI_FIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/macro.h"

/* What is printed is UTF-8, whatever the locale has. Once, as files are read for it. */
void fit_locale(void);
/* How wide standard output is, at any time: whoever sits there may change it. */
void fit_width(void);
/* Both, before a pager has standard output; @is_wide: lines stay whole anyway. */
void fit_start(bool is_wide);
/* What follows goes to @file; NULL: to standard output. */
void fit_into(FILE *file);
/* Columns of a line, from which on it has more than one share, and errors. */
enum { FIT_SHARES = 40, FIT_ERRORS = 60 };

/* What a line has left behind @used columns; INT_MAX: whatever it takes. */
int fit_left(int used);
int fit_columns(const char *text);
/* Columns that this took. */
int fit_print(const char *format, ...) _printf_(1, 2);
/* @text in so many columns, its end left out if need be; what it took. */
int fit_end(const char *text, int columns);
/* @text in so many columns, its beginning left out if need be. */
void fit_tail(const char *text, int columns);
/* More of a sentence. */
enum { FIT_NOTE = 8192 };	/* bytes: paths are in it */
void fit_add(char note[FIT_NOTE], const char *format, ...) _printf_(2, 3);
/* The rest of a line that has @used columns: words, which go on in the next lines behind @indent columns, or fewer. */
void fit_words(int used, int indent, const char *text);
/* The rest of a line: a path, whose last parts say most. */
void fit_path(int used, const char *path);
/*
 * The rest of a line: a function, where in its source it is ("": not known), and its file. Its file's directories are left
 * out first, then the end of its name, then the beginning of the place.
 */
void fit_function(int used, const char *name, const char *place, const char *file);

#endif /* STACKTAP_CLI_FIT_H */
