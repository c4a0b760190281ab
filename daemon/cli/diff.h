/* SPDX-License-Identifier: Apache-2.0 */
/* What `stacktap diff` was asked for and what it found, for its two ways to print it. */
#ifndef STACKTAP_CLI_DIFF_H
#define STACKTAP_CLI_DIFF_H

#include "view/diff.h"

struct diff_cli {
	const char *paths[DIFF_SIDES];
	struct selection selection;
	enum view_by by;
	uint64_t limit;
	double fail_over;	/* percentage points */
	bool has_fail_over, with_all, is_wide, use_json;
	struct model *model;
	struct diff diff;
	size_t failures;	/* rows beyond fail_over */
};

/* Both files, each with samples; else says what is wrong. *ret_model is the caller's in any case. */
int diff_load(const char *const paths[DIFF_SIDES], const struct model_options *options,
	      bool use_json, struct model **ret_model);

int diff_print(const struct diff_cli *cli);		/* CLI_OK, or says what went wrong */
int diff_print_json(const struct diff_cli *cli);

#endif /* STACKTAP_CLI_DIFF_H */
