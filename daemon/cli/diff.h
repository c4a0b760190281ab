/* SPDX-License-Identifier: Apache-2.0 */
/* What `stacktap diff` was asked for and what it found, for its two ways to print it. */
#ifndef STACKTAP_CLI_DIFF_H
#define STACKTAP_CLI_DIFF_H

#include "cli/name_filter.h"
#include "cli/pair.h"
#include "view/focus.h"

struct diff_cli {
	struct pair pair;
	enum view_by by;
	uint64_t limit;
	double fail_over;	/* percentage points */
	bool has_fail_over, with_all, is_wide, use_json;
	struct name_filter filter;	/* of what is shown, and of fail_over */
	bool *wanted;			/* of each row of diff: it matches */
	struct focus focus;		/* nodes of call paths that match; if there is a filter */
	struct model *model;
	struct diff diff;
	size_t failures;	/* rows beyond fail_over */
};

int diff_print(const struct diff_cli *cli);		/* CLI_OK, or says what went wrong */
int diff_print_json(const struct diff_cli *cli);

#endif /* STACKTAP_CLI_DIFF_H */
