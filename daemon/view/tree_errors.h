/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How sure the shares of a tree's nodes are, TOTAL and SELF, as view/significance.h has it. Slices of a share take 40 times
 * the memory of its sum, so of a tree with very many nodes those with most samples have them.
 */
#ifndef STACKTAP_VIEW_TREE_ERRORS_H
#define STACKTAP_VIEW_TREE_ERRORS_H

#include "view/model.h"
#include "view/significance.h"

enum tree_share {
	TREE_TOTAL,
	TREE_SELF,
	TREE_SHARES,
};

struct tree_errors {
	const struct tree *tree;
	struct sliced whole;			/* the event that shares are of */
	size_t beyond;				/* nodes that have no error as there are too many of them */
	uint32_t (*numbers)[TREE_SHARES];	/* of each node; UINT32_MAX: it has no slices */
	double *phi;				/* by these */
	size_t bytes, phi_bytes;
};

/*
 * @tree has its sums, of @event alone. @place: where in it each node of the model stands whose own weight counts there,
 * UINT32_MAX: nowhere; NULL: it is the model's. Of nodes that weigh @least. -E2BIG; to be freed in any case.
 */
int tree_errors_make(const struct model *model, uint32_t event, const struct tree *tree, const uint32_t *place,
		     double least, struct tree_errors *ret_errors);
/* Half of its 95 % interval, 1 is all; below 0: not known. */
double tree_error(const struct tree_errors *errors, uint32_t node, enum tree_share share);
void tree_errors_free(struct tree_errors *errors);

#endif /* STACKTAP_VIEW_TREE_ERRORS_H */
