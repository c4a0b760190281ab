/* SPDX-License-Identifier: Apache-2.0 */
/* A call tree turned over: what ran stands at the root, those that called it below it. */
#ifndef STACKTAP_VIEW_CALLERS_H
#define STACKTAP_VIEW_CALLERS_H

#include "view/tree.h"

struct callers {
	struct tree tree;	/* with sums; nothing is a node's own */
	uint32_t *place;	/* of each node of the tree that was turned over: the last of its callers that has it; UINT32_MAX: none */
	size_t bytes;
};

/*
 * @tree has its sums. Callers of what weighs less than @least are not followed: a large recording has more paths than
 * memory. -E2BIG; to be freed in any case.
 */
int callers_make(const struct tree *tree, double least, struct callers *ret_callers);
void callers_free(struct callers *callers);

#endif /* STACKTAP_VIEW_CALLERS_H */
