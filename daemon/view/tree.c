// SPDX-License-Identifier: Apache-2.0
#include "view/tree.h"

#include "base/fingerprint.h"

void tree_init(struct tree *tree)
{
	rows_init(&tree->rows);
}

void tree_free(struct tree *tree)
{
	rows_free(&tree->rows);
}

static uint64_t node_hash(uint32_t parent, uint32_t frame)
{
	return fingerprint_end(fingerprint_start((uint64_t)parent << 32 | frame)).lo;
}

static uint64_t hash_of(const void *ctx, uint32_t position)
{
	const struct tree_node *node = (const struct tree_node *)ctx + position;

	return node_hash(node->parent, node->frame);
}

static int add_node(struct tree *tree, uint32_t parent, uint32_t frame, uint32_t *ret_node)
{
	const struct tree_node node = { .parent = parent, .frame = frame };

	return rows_add(&tree->rows, node_hash(parent, frame), hash_of, &node, sizeof(node),
			ret_node);
}

int tree_child(struct tree *tree, uint32_t parent, uint32_t frame, uint32_t *ret_node)
{
	struct index_probe probe;
	uint32_t i;
	int err;

	/* a root is no child of anything */
	if (!tree->rows.count) {
		err = add_node(tree, UINT32_MAX, UINT32_MAX, &i);
		if (err)
			return err;
	}
	probe = index_first(&tree->rows.index, node_hash(parent, frame));
	while ((i = index_next(&tree->rows.index, &probe)) != INDEX_NONE)
		if (tree_node(tree, i)->parent == parent && tree_node(tree, i)->frame == frame) {
			*ret_node = i;
			return 0;
		}
	return add_node(tree, parent, frame, ret_node);
}

void tree_add(struct tree *tree, uint32_t i, uint64_t samples, uint64_t weight)
{
	rows_sum(&tree_node(tree, i)->self_samples, samples);
	rows_sum(&tree_node(tree, i)->self, weight);
}

void tree_sum(struct tree *tree)
{
	for (uint32_t i = tree->rows.count; i-- > 0;) {
		struct tree_node *node = tree_node(tree, i);

		rows_sum(&node->samples, node->self_samples);
		rows_sum(&node->total, node->self);
		if (i == TREE_ROOT)
			break;
		rows_sum(&tree_node(tree, node->parent)->samples, node->samples);
		rows_sum(&tree_node(tree, node->parent)->total, node->total);
	}
}

void tree_clear(struct tree *tree)
{
	for (uint32_t i = 0; i < tree->rows.count; i++) {
		struct tree_node *node = tree_node(tree, i);

		node->self_samples = node->self = node->samples = node->total = 0;
	}
}
