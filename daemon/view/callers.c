// SPDX-License-Identifier: Apache-2.0
#include "view/callers.h"

#include <string.h>

enum { CALLERS_MAX = 64 };	/* frames above a function that are followed */

/* A stack on its way up. */
struct climber {
	uint32_t leaf;		/* where it began */
	uint32_t at;		/* the next one that is to be turned over; TREE_ROOT: none */
};

/* One call up. */
static int climb(const struct tree *tree, struct climber *climber, double least, struct callers *callers)
{
	uint32_t *place = &callers->place[climber->leaf];
	const struct tree_sum *own = tree_sum(tree, climber->leaf);
	struct tree_sum *sum;
	int err;

	if (*place != UINT32_MAX && (double)tree_sum(&callers->tree, *place)->total < least)
		climber->at = TREE_ROOT;
	if (climber->at == TREE_ROOT)
		return 0;
	err = tree_child(&callers->tree, *place == UINT32_MAX ? TREE_ROOT : *place,
			 tree_node(tree, climber->at)->frame, place) ?: tree_extend(&callers->tree);
	if (err)
		return err;
	sum = tree_sum(&callers->tree, *place);
	rows_sum(&sum->samples, own->self_samples);
	rows_sum(&sum->total, own->self);
	climber->at = tree_node(tree, climber->at)->parent;
	return 0;
}

/* Level by level, so that sums are known when it is asked whether they are followed. */
static int climb_all(const struct tree *tree, struct climber *climbers, double least, struct callers *callers)
{
	size_t count = 0;
	int err = 0;

	for (uint32_t i = 1; i < tree_count(tree); i++)
		if (tree_sum(tree, i)->self_samples)
			climbers[count++] = (struct climber){ .leaf = i, .at = i };
	for (unsigned int depth = 0; depth <= CALLERS_MAX && count && !err; depth++) {
		size_t kept = 0;

		for (size_t i = 0; i < count && !err; i++) {
			err = climb(tree, &climbers[i], least, callers);
			if (climbers[i].at != TREE_ROOT)
				climbers[kept++] = climbers[i];
		}
		count = kept;
	}
	return err;
}

static int turn_over(const struct tree *tree, double least, struct callers *callers)
{
	const size_t bytes = (size_t)tree_count(tree) * sizeof(struct climber);
	_cleanup_free_ struct climber *climbers = NULL;
	int err = -E2BIG;

	if (!pool_charge(POOL_REPORT, bytes))
		return -E2BIG;
	climbers = malloc(bytes);
	if (climbers)
		err = climb_all(tree, climbers, least, callers);
	pool_uncharge(POOL_REPORT, bytes);
	if (!err && tree_count(&callers->tree)) {
		tree_sum(&callers->tree, TREE_ROOT)->samples = tree_sum(tree, TREE_ROOT)->samples;
		tree_sum(&callers->tree, TREE_ROOT)->total = tree_sum(tree, TREE_ROOT)->total;
	}
	return err;
}

int callers_make(const struct tree *tree, double least, struct callers *ret_callers)
{
	const size_t bytes = (size_t)tree_count(tree) * sizeof(*ret_callers->place);

	*ret_callers = (struct callers){ 0 };
	tree_init(&ret_callers->tree);
	if (!bytes)
		return 0;
	if (!pool_charge(POOL_REPORT, bytes))
		return -E2BIG;
	ret_callers->bytes = bytes;
	ret_callers->place = malloc(bytes);
	if (!ret_callers->place)
		return -E2BIG;
	memset(ret_callers->place, 0xff, bytes);
	return turn_over(tree, least, ret_callers);
}

void callers_free(struct callers *callers)
{
	tree_free(&callers->tree);
	free(callers->place);
	pool_uncharge(POOL_REPORT, callers->bytes);
	*callers = (struct callers){ 0 };
}
