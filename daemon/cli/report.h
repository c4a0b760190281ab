/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of `stacktap report` beside its hottest functions per process: --by, --tree, --callers, --summary. */
#ifndef STACKTAP_CLI_REPORT_H
#define STACKTAP_CLI_REPORT_H

#include "cli/name_filter.h"
#include "view/diff.h"

enum report_view {
	REPORT_PROCESSES,	/* the hottest functions of each */
	REPORT_BY,
	REPORT_TREE,
	REPORT_CALLERS,
	REPORT_SUMMARY,
};

struct report_cli {
	const char *path;	/* as it was named */
	const char *input;	/* what is read: that, or a copy with more names */
	bool is_cut;		/* that was cut before it was copied */
	struct selection selection;
	enum report_view view;
	enum view_by by;
	uint64_t limit;		/* 0: all */
	const struct name_filter *filter;
	double least;		/* percent: what has less is left out */
	bool use_json, is_wide;
	struct model *model;
	uint32_t event;
	struct diff shares;	/* of --by and --summary */
};

/* All but REPORT_PROCESSES: the exit code. */
int report_show(struct report_cli *cli);

/* A line that says why there are none, if no errors of shares are known. */
void report_say_untold(const struct sliced *sliced);

int report_print_summary(struct report_cli *cli);
int report_print_tree(struct report_cli *cli);
int report_print_callers(struct report_cli *cli);

#endif /* STACKTAP_CLI_REPORT_H */
