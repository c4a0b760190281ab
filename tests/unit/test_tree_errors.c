// SPDX-License-Identifier: Apache-2.0
/* Each share of a tree, and of one of callers, has the error that its samples in slices of time give it. */
#include "fixture.h"
#include "recorded.h"

#include <math.h>
#include <stdlib.h>

#include "view/callers.h"
#include "view/diff.h"
#include "view/tree_errors.h"

enum { BYTES = 1 << 24 };	/* a message */

static struct model *load(const char *name)
{
	const char *path = fixture_path(name);
	struct model *model;
	char error[512] = "";

	recorded_file(path, BYTES);
	if (model_load(path, &(struct model_options){ .with_times = true }, &model, error, sizeof(error)))
		fail_msg("%s", error);
	assert_int_equal(model_sum(model, model_main_event(model)), 0);
	return model;
}

/* Does the stack that ends at @leaf begin, from its leaf on, as the callers' @node does from the root on? */
static bool is_called_by(const struct model *model, uint32_t leaf, const struct tree *callers, uint32_t node)
{
	uint32_t frames[256], count = 0;

	for (; node != TREE_ROOT; node = tree_node(callers, node)->parent)
		frames[count++] = tree_node(callers, node)->frame;
	for (; count && leaf != TREE_ROOT; leaf = tree_node(&model->tree, leaf)->parent)
		if (tree_node(&model->tree, leaf)->frame != frames[--count])
			return false;
	return !count;
}

static bool is_below(const struct model *model, uint32_t leaf, uint32_t node)
{
	while (leaf != node && leaf != TREE_ROOT)
		leaf = tree_node(&model->tree, leaf)->parent;
	return leaf == node;
}

static bool is_in(const struct model *model, uint32_t leaf, const struct tree *tree, uint32_t node,
		  enum tree_share share)
{
	if (tree != &model->tree)
		return is_called_by(model, leaf, tree, node);
	return share == TREE_SELF ? leaf == node : is_below(model, leaf, node);
}

/* Entry by entry. */
static double error_by_hand(const struct model *model, const struct tree *tree, uint32_t node,
			    enum tree_share share)
{
	const struct timeline *timeline = &model->timeline;
	double slices[SLICES] = { 0 }, part = 0, expected;
	struct sliced whole;

	model_slice(model, model_main_event(model), &whole);
	for (size_t i = 0; i < timeline_count(timeline); i++) {
		const struct timeline_entry *entry = timeline_at(timeline, i);

		if (model_group(model, entry->group)->event != model_main_event(model) ||
		    !is_in(model, entry->node, tree, node, share))
			continue;
		part += (double)entry->weight;
		slices[timeline_slice(timeline, entry->time)] += (double)entry->weight;
	}
	expected = sliced_size(&whole) * part / whole.weight;
	return share_error(&whole, part, expected < DIFF_EXPECTED_MIN ? 1 : sliced_factor(&whole, slices));
}

/* How many there are of samples that depend on each other. */
static unsigned int assert_errors(const struct model *model, const struct tree *tree,
				  const struct tree_errors *errors, enum tree_share share)
{
	unsigned int dependent = 0;

	for (uint32_t i = 1; i < tree_count(tree); i++) {
		const double error = tree_error(errors, i, share);
		const struct tree_sum *sum = tree_sum(tree, i);
		const double part = (double)(share == TREE_SELF ? sum->self : sum->total);

		assert_float_equal(error, error_by_hand(model, tree, i, share), 1e-12);
		dependent += error > 1.01 * share_error(&errors->whole, part, 1) && part > 0;
	}
	return dependent;
}

static void each_share_has_its_own_error(void **state _unused_)
{
	struct model *model = load("tree.otlp");
	const uint32_t event = model_main_event(model);
	struct tree_errors errors;
	struct callers callers;

	assert_int_equal(tree_errors_make(model, event, &model->tree, NULL, 0, &errors), 0);
	assert_true(assert_errors(model, &model->tree, &errors, TREE_TOTAL) > 5);
	assert_true(assert_errors(model, &model->tree, &errors, TREE_SELF) > 5);
	assert_int_equal(errors.beyond, 0);
	tree_errors_free(&errors);
	assert_int_equal(callers_make(&model->tree, 0, &callers), 0);
	assert_int_equal(tree_errors_make(model, event, &callers.tree, callers.place, 0, &errors), 0);
	assert_true(assert_errors(model, &callers.tree, &errors, TREE_TOTAL) > 5);
	tree_errors_free(&errors);
	callers_free(&callers);
	model_free(model);
	synthetic_check_pools();
}

/* What is followed no further counts for those that it came to. */
static void callers_below_a_limit_are_not_followed(void **state _unused_)
{
	struct model *model = load("limit.otlp");
	const double least = (double)tree_sum(&model->tree, TREE_ROOT)->total / 20;
	struct tree_errors errors;
	struct callers all, callers;

	assert_int_equal(callers_make(&model->tree, 0, &all), 0);
	assert_int_equal(callers_make(&model->tree, least, &callers), 0);
	assert_true(tree_count(&callers.tree) < tree_count(&all.tree));
	callers_free(&all);
	assert_int_equal(tree_errors_make(model, model_main_event(model), &callers.tree, callers.place, least,
					  &errors), 0);
	for (uint32_t i = 1; i < tree_count(&callers.tree); i++)
		if ((double)tree_sum(&callers.tree, i)->total >= least)
			assert_float_equal(tree_error(&errors, i, TREE_TOTAL),
					   error_by_hand(model, &callers.tree, i, TREE_TOTAL), 1e-12);
	tree_errors_free(&errors);
	callers_free(&callers);
	model_free(model);
	synthetic_check_pools();
}

static void what_has_no_memory_fails(void **state _unused_)
{
	struct model *model = load("memory.otlp");
	struct pool *pool = pool_get(POOL_REPORT);
	const size_t limit = pool->limit, used = pool->used;
	unsigned int failed = 0;

	for (size_t room = 0; room < 4096; room += 64) {
		struct tree_errors errors;
		struct callers callers;

		pool->limit = used + room;
		failed += callers_make(&model->tree, 0, &callers) == -E2BIG;
		callers_free(&callers);
		failed += tree_errors_make(model, 0, &model->tree, NULL, 0, &errors) == -E2BIG;
		tree_errors_free(&errors);
		assert_int_equal(pool->used, used);
	}
	assert_true(failed > 2);
	pool->limit = limit;
	model_free(model);
	synthetic_check_pools();
}

static void a_tree_of_nothing_has_none(void **state _unused_)
{
	struct model *model = load("nothing.otlp");
	struct tree_errors errors;
	struct tree empty;
	struct callers callers;

	tree_init(&empty);
	assert_int_equal(tree_errors_make(model, 0, &empty, NULL, 0, &errors), 0);
	tree_errors_free(&errors);
	assert_int_equal(callers_make(&empty, 0, &callers), 0);
	assert_int_equal(tree_count(&callers.tree), 0);
	callers_free(&callers);
	model_free(model);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_share_has_its_own_error),
		cmocka_unit_test(callers_below_a_limit_are_not_followed),
		cmocka_unit_test(what_has_no_memory_fails),
		cmocka_unit_test(a_tree_of_nothing_has_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
