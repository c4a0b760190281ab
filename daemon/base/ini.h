/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of [section] and option = value lines. Blanks around a line, a name and a value do not
 * count; ; or # at the start of a line begins a comment. A value goes to the end of its line,
 * whatever is in it, and no further.
 */
#ifndef STACKTAP_BASE_INI_H
#define STACKTAP_BASE_INI_H

#include <stdio.h>

#include "base/macro.h"

enum { INI_MAX_LINE = 32768 };	/* bytes without its end; a bearer token may have some thousand */

struct ini_reader {
	/* Called for each section, with options or not, as below. */
	int (*section)(void *ctx, const char *section);
	/*
	 * Called for each option, @section "" before the first one; strings are valid during the
	 * call. Not 0 ends the reading.
	 */
	int (*option)(void *ctx, const char *section, const char *name, const char *value);
	void *ctx;
};

/*
 * 0, what section() or option() returned, or -EINVAL (*ret_error says what is wrong with the line itself),
 * -ENOMEM or an error of reading. *ret_line is the line it happened in, from 1 on. *ret_error is
 * NULL unless it is the line's form.
 */
int ini_read(FILE *file, const struct ini_reader *reader, unsigned int *ret_line,
	     const char **ret_error);

#endif /* STACKTAP_BASE_INI_H */
