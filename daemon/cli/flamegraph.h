/* SPDX-License-Identifier: Apache-2.0 */
/* A recording as a flame graph, as `flamegraph' and `record -o' draw it. */
#ifndef STACKTAP_CLI_FLAMEGRAPH_H
#define STACKTAP_CLI_FLAMEGRAPH_H

#include "cli/pair.h"

struct flamegraph_job {
	struct pair pair;		/* its DIFF_AFTER is drawn, without a DIFF_BEFORE alone */
	const char *output;
	const char *title;		/* NULL: the file's name */
	bool is_svg, use_json, is_quiet;
};

/* Says what was drawn, or what is wrong: an exit code. */
int flamegraph_write(const struct flamegraph_job *job);

#endif /* STACKTAP_CLI_FLAMEGRAPH_H */
