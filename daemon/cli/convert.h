/* SPDX-License-Identifier: Apache-2.0 */
/* A recording in another tool's format, as `convert' and `record -o' write it. */
#ifndef STACKTAP_CLI_CONVERT_H
#define STACKTAP_CLI_CONVERT_H

#include "view/convert.h"
#include "view/selection.h"

struct convert_job {
	const char *path, *output;
	const char *name;		/* of the recording; NULL: its path */
	const struct convert_format *format;
	struct selection selection;
	bool by_weight, use_json, is_quiet;
};

/* Says what was written and what that lacks, or what is wrong: an exit code. */
int convert_write(const struct convert_job *job);

#endif /* STACKTAP_CLI_CONVERT_H */
