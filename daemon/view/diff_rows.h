/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of a diff while it is made, and which nodes count for them. Trees are large: each byte of a node counts. */
#ifndef STACKTAP_VIEW_DIFF_ROWS_H
#define STACKTAP_VIEW_DIFF_ROWS_H

#include "view/diff.h"

#define NONE UINT32_MAX

struct maker {
	struct model *model;
	struct diff *diff;
	uint32_t *row_of;		/* of each frame, or of each group where rows are of groups */
	bool *is_outer;			/* of each node: nothing above it is of the same row; only of frames */
	size_t bytes;			/* of these two */
	double (*parts)[DIFF_SIDES];	/* of each node, until it is known what is tested */
	double *sums;			/* of each node, of the slice at hand; in place of them */
	double (*slices)[SLICES];	/* of what is tested, of one side */
	double (*phi)[DIFF_SIDES];
	uint32_t tested;
	bool is_one;			/* there is no DIFF_BEFORE */
	bool with_paths;
};

/* Rows, without their weights, and outer nodes. -E2BIG; maker_done() in any case. */
int maker_init(struct maker *maker);
void maker_done(struct maker *maker);
/* A node's row; by_is_frame() alone. */
struct diff_row *maker_row(const struct maker *maker, uint32_t node);

#endif /* STACKTAP_VIEW_DIFF_ROWS_H */
