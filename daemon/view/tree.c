// SPDX-License-Identifier: Apache-2.0
#include "view/tree.h"

#include <string.h>

#include "base/fingerprint.h"

void tree_init(struct tree *tree)
{
	rows_init(&tree->rows);
	buffer_init(&tree->sums, POOL_REPORT);
}

void tree_free(struct tree *tree)
{
	rows_free(&tree->rows);
	buffer_free(&tree->sums);
}

static uint64_t hash_step(uint64_t hash, uint32_t frame)
{
	return fingerprint_fold(hash ^ fingerprint_key[0], frame ^ fingerprint_key[1]);
}

static uint64_t hash_of(const void *ctx, uint32_t position)
{
	return ((const struct tree_node *)ctx + position)->hash;
}

static int add_node(struct tree *tree, uint64_t hash, uint32_t parent, uint32_t frame, uint32_t *ret_node)
{
	const struct tree_node node = { .hash = hash, .parent = parent, .frame = frame };

	return rows_add(&tree->rows, hash, hash_of, &node, sizeof(node), ret_node);
}

/* A root is no child of anything. */
static int need_root(struct tree *tree)
{
	uint32_t root;

	return tree->rows.count ? 0 : add_node(tree, fingerprint_key[2], UINT32_MAX, UINT32_MAX, &root);
}

int tree_child(struct tree *tree, uint32_t parent, uint32_t frame, uint32_t *ret_node)
{
	struct index_probe probe;
	uint64_t hash;
	uint32_t i;
	int err = need_root(tree);

	if (err)
		return err;
	hash = hash_step(tree_node(tree, parent)->hash, frame);
	probe = index_first(&tree->rows.index, hash);
	while ((i = index_next(&tree->rows.index, &probe)) != INDEX_NONE)
		if (tree_node(tree, i)->parent == parent && tree_node(tree, i)->frame == frame) {
			*ret_node = i;
			return 0;
		}
	return add_node(tree, hash, parent, frame, ret_node);
}

static bool is_path(const struct tree *tree, uint32_t node, const uint32_t *frames, size_t count)
{
	while (count-- > 0 && node != TREE_ROOT && tree_node(tree, node)->frame == frames[count])
		node = tree_node(tree, node)->parent;
	return count == SIZE_MAX && node == TREE_ROOT;
}

int tree_path(struct tree *tree, const uint32_t *frames, size_t count, uint32_t *ret_node)
{
	uint32_t node = TREE_ROOT, i;
	struct index_probe probe;
	uint64_t hash;
	int err = need_root(tree);

	if (err)
		return err;
	hash = tree_node(tree, TREE_ROOT)->hash;
	for (size_t k = 0; k < count; k++)
		hash = hash_step(hash, frames[k]);
	probe = index_first(&tree->rows.index, hash);
	while ((i = index_next(&tree->rows.index, &probe)) != INDEX_NONE)
		if (is_path(tree, i, frames, count)) {
			*ret_node = i;
			return 0;
		}
	for (size_t k = 0; k < count && !err; k++)
		err = tree_child(tree, node, frames[k], &node);
	*ret_node = node;
	return err;
}

void tree_pack(struct tree *tree)
{
	index_free(&tree->rows.index);
	buffer_fit(&tree->rows.data, 0);
}

int tree_extend(struct tree *tree)
{
	const size_t size = tree->rows.count * sizeof(struct tree_sum), before = tree->sums.size;
	uint8_t *new = size > before ? buffer_reserve(&tree->sums, size - before) : NULL;

	if (size <= before)
		return 0;
	if (!new)
		return -E2BIG;
	memset(new, 0, size - before);
	tree->sums.size = size;
	return 0;
}

int tree_clear(struct tree *tree)
{
	tree->sums.size = 0;
	return tree_extend(tree);
}

void tree_add(struct tree *tree, uint32_t i, uint64_t samples, uint64_t weight)
{
	rows_sum(&tree_sum(tree, i)->self_samples, samples);
	rows_sum(&tree_sum(tree, i)->self, weight);
}

void tree_add_up(struct tree *tree)
{
	for (uint32_t i = tree->rows.count; i-- > 0;) {
		struct tree_sum *sum = tree_sum(tree, i), *above;

		rows_sum(&sum->samples, sum->self_samples);
		rows_sum(&sum->total, sum->self);
		if (i == TREE_ROOT)
			break;
		above = tree_sum(tree, tree_node(tree, i)->parent);
		rows_sum(&above->samples, sum->samples);
		rows_sum(&above->total, sum->total);
	}
}
