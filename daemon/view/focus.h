/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stacks of a model that have a frame which somebody asks for, with all that calls it and all that it calls.
 * Memory is POOL_REPORT's.
 */
#ifndef STACKTAP_VIEW_FOCUS_H
#define STACKTAP_VIEW_FOCUS_H

#include "view/model.h"

struct focus {
	bool *nodes;	/* of each: it or a node above it is of a frame that is wanted */
	size_t bytes;
};

typedef bool focus_test(const void *ctx, const struct model_frame *frame);

/* Each frame is tested once. -E2BIG; focus_done() in any case. */
int focus_find(const struct model *model, focus_test *is_wanted, const void *ctx, struct focus *ret_focus);
/* Samples of the other stacks count for the root alone: shares stay those of all. Before sums are made. */
void focus_apply(const struct focus *focus, struct model *model);
void focus_done(struct focus *focus);

static inline bool focus_has(const struct focus *focus, uint32_t node)
{
	return focus->nodes[node];
}

#endif /* STACKTAP_VIEW_FOCUS_H */
