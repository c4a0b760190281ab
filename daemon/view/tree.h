/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A call tree from the root down. A node stands for the stack that leads to it, so that one number says a whole
 * stack; parents come before their children, so that no pass over it needs recursion.
 */
#ifndef STACKTAP_VIEW_TREE_H
#define STACKTAP_VIEW_TREE_H

#include "view/rows.h"

enum { TREE_ROOT = 0 };

struct tree_node {
	uint64_t hash;		/* of the path that leads here */
	uint32_t parent;
	uint32_t frame;		/* whatever its owner numbers; of the root nothing */
};

struct tree_sum {
	uint64_t self_samples, self;
	uint64_t samples, total;	/* with all below it */
};

struct tree {
	struct rows rows;	/* the root is there from the first child on */
	struct buffer sums;	/* of each node, from tree_clear() on: what needs none does without */
};

void tree_init(struct tree *tree);
void tree_free(struct tree *tree);
/* The node of @frame below @parent, a new one if need be; -E2BIG. */
int tree_child(struct tree *tree, uint32_t parent, uint32_t frame, uint32_t *ret_node);
/*
 * The node that the path of @frames leads to from the root on: as tree_child() for each of them, but faster where the
 * path is there already.
 */
int tree_path(struct tree *tree, const uint32_t *frames, size_t count, uint32_t *ret_node);
/* Give back what only tree_child() and tree_path() need, which nobody calls any more. */
void tree_pack(struct tree *tree);
/* All sums are 0, also those of nodes that are new; -E2BIG. */
int tree_clear(struct tree *tree);
/* Nodes that are new have sums, too, of 0; -E2BIG. */
int tree_extend(struct tree *tree);
/* Add to what is the node's own; tree_add_up() makes totals of it, once. */
void tree_add(struct tree *tree, uint32_t node, uint64_t samples, uint64_t weight);
void tree_add_up(struct tree *tree);

static inline struct tree_node *tree_node(const struct tree *tree, uint32_t i)
{
	return (struct tree_node *)(void *)tree->rows.data.data + i;
}

static inline struct tree_sum *tree_sum(const struct tree *tree, uint32_t i)
{
	return (struct tree_sum *)(void *)tree->sums.data + i;
}

static inline uint32_t tree_count(const struct tree *tree)
{
	return tree->rows.count;
}

#endif /* STACKTAP_VIEW_TREE_H */
