/* SPDX-License-Identifier: Apache-2.0 */
/* Where `record` writes: a file that appears when there is something in it, or standard output. */
#ifndef STACKTAP_CLI_OUTPUT_H
#define STACKTAP_CLI_OUTPUT_H

#include <stdatomic.h>

#include "export/store_file.h"

struct output {
	const char *path;
	struct store_file *file;	/* NULL: standard output */
	uint64_t bytes;
	_Atomic int error;		/* the first that happened; any thread may look */
};

/* Says what is wrong. CLI_OK or CLI_FAILED. */
int output_open(const char *path, struct output *ret_output);
int output_append(struct output *output, const uint8_t *data, size_t size);
/* The first error of all, 0 when everything is written. */
int output_close(struct output *output);

#endif /* STACKTAP_CLI_OUTPUT_H */
