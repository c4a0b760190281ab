/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file that is written as a whole, or standard output. As with `record -o` it is called PATH.partial
 * until it is complete, and takes the place of an older one only then.
 */
#ifndef STACKTAP_CLI_OUTFILE_H
#define STACKTAP_CLI_OUTFILE_H

#include "base/macro.h"

struct outfile {
	const char *path;
	char *partial;		/* NULL for standard output, a device or a pipe */
	FILE *file;
};

/* "-" is standard output, which is refused for binary data if it is a terminal. Says what is wrong. */
int outfile_open(const char *path, bool is_binary, struct outfile *ret_file);
/* All was written: CLI_OK, and how many bytes these were, or says what went wrong. */
int outfile_finish(struct outfile *file, uint64_t *ret_bytes);
/* What is not finished is removed. */
void outfile_done(struct outfile *file);

#endif /* STACKTAP_CLI_OUTFILE_H */
