// SPDX-License-Identifier: Apache-2.0
#include "view/tree_errors.h"

#include <string.h>

#include "view/diff.h"
#include "view/largest.h"

#define NONE UINT32_MAX

/* What is needed only while slices are added up. */
struct adder {
	const struct model *model;
	uint32_t event;
	const uint32_t *place;
	struct tree_errors *errors;
	uint32_t count;			/* of shares that have slices */
	double *sums;			/* of each node, of the slice at hand */
	double (*slices)[SLICES];
};

static double part_of(const struct tree *tree, uint32_t node, enum tree_share share)
{
	const struct tree_sum *sum = tree_sum(tree, node);

	return (double)(share == TREE_SELF ? sum->self : sum->total);
}

/* Independent samples that would say as much. */
static double expected_of(const struct tree_errors *errors, double part)
{
	return errors->whole.weight > 0 ? sliced_size(&errors->whole) * part / errors->whole.weight : 0;
}

static bool is_wanted(const struct tree_errors *errors, uint32_t node, double least)
{
	return part_of(errors->tree, node, TREE_TOTAL) >= least;
}

static void number_self(struct adder *adder, uint32_t node)
{
	struct tree_errors *errors = adder->errors;
	const double self = part_of(errors->tree, node, TREE_SELF);
	uint32_t *numbers = errors->numbers[node];

	/* what calls nothing has one share */
	if (self >= part_of(errors->tree, node, TREE_TOTAL))
		numbers[TREE_SELF] = numbers[TREE_TOTAL];
	else if (expected_of(errors, self) >= DIFF_EXPECTED_MIN)
		numbers[TREE_SELF] = adder->count++;
}

static void number_shares(struct adder *adder, double least)
{
	struct tree_errors *errors = adder->errors;
	const uint32_t count = tree_count(errors->tree);
	struct largest largest;

	memset(errors->numbers, 0xff, (size_t)count * sizeof(*errors->numbers));
	if (!sliced_is_telling(&errors->whole))
		return;
	largest_init(&largest, DIFF_EXPECTED_MIN);
	for (uint32_t i = 1; i < count; i++)
		if (is_wanted(errors, i, least))
			largest_count(&largest, expected_of(errors, part_of(errors->tree, i, TREE_TOTAL)));
	largest_choose(&largest, DIFF_PATHS_MAX);
	for (uint32_t i = 1; i < count; i++) {
		const double expected = expected_of(errors, part_of(errors->tree, i, TREE_TOTAL));

		if (!is_wanted(errors, i, least))
			continue;
		if (largest_take(&largest, expected)) {
			errors->numbers[i][TREE_TOTAL] = adder->count++;
			number_self(adder, i);
		} else {
			errors->beyond += expected >= DIFF_EXPECTED_MIN;
		}
	}
}

static void add_slice(struct adder *adder, uint32_t number, unsigned int slice, double weight)
{
	if (number != NONE)
		adder->slices[number][slice] += weight;
}

static void sum_slice(struct adder *adder, unsigned int slice)
{
	const struct model *model = adder->model;
	const struct timeline *timeline = model_timeline(model, model_event(model, adder->event)->side);
	const struct tree_errors *errors = adder->errors;
	const uint32_t count = tree_count(errors->tree);

	memset(adder->sums, 0, count * sizeof(*adder->sums));
	for (size_t i = 0; i < timeline_count(timeline); i++) {
		const struct timeline_entry *entry = timeline_at(timeline, i);
		const uint32_t node = adder->place ? adder->place[entry->node] : entry->node;
		const double weight = (double)entry->weight;

		if (node == NONE || model_group(model, entry->group)->event != adder->event ||
		    timeline_slice(timeline, entry->time) != slice)
			continue;
		adder->sums[node] += weight;
		/* a share of its own: that of what calls nothing is added below */
		if (errors->numbers[node][TREE_SELF] != errors->numbers[node][TREE_TOTAL])
			add_slice(adder, errors->numbers[node][TREE_SELF], slice, weight);
	}
	/* parents come before their children */
	for (uint32_t i = count; i-- > 1;) {
		adder->sums[tree_node(errors->tree, i)->parent] += adder->sums[i];
		add_slice(adder, errors->numbers[i][TREE_TOTAL], slice, adder->sums[i]);
	}
}

static int find_phi(struct adder *adder)
{
	struct tree_errors *errors = adder->errors;
	const size_t bytes = adder->count * sizeof(*errors->phi);

	if (!pool_charge(POOL_REPORT, bytes))
		return -E2BIG;
	errors->phi_bytes = bytes;
	errors->phi = malloc(bytes);
	if (!errors->phi)
		return -E2BIG;
	for (unsigned int i = 0; i < SLICES; i++)
		if (errors->whole.slices[i] > 0)
			sum_slice(adder, i);
	for (uint32_t i = 0; i < adder->count; i++)
		errors->phi[i] = sliced_factor(&errors->whole, adder->slices[i]);
	return 0;
}

static int add_up(struct adder *adder)
{
	const size_t sums = (size_t)tree_count(adder->errors->tree) * sizeof(*adder->sums);
	const size_t bytes = sums + adder->count * sizeof(*adder->slices);
	_cleanup_free_ char *memory = NULL;
	int err = -E2BIG;

	if (!pool_charge(POOL_REPORT, bytes))
		return -E2BIG;
	memory = calloc(1, bytes);
	if (memory) {
		adder->sums = (double *)(void *)memory;
		adder->slices = (double (*)[SLICES])(void *)(memory + sums);
		err = find_phi(adder);
	}
	pool_uncharge(POOL_REPORT, bytes);
	return err;
}

int tree_errors_make(const struct model *model, uint32_t event, const struct tree *tree, const uint32_t *place,
		     double least, struct tree_errors *ret_errors)
{
	const size_t bytes = (size_t)tree_count(tree) * sizeof(*ret_errors->numbers);
	struct adder adder = { .model = model, .event = event, .place = place, .errors = ret_errors };

	*ret_errors = (struct tree_errors){ .tree = tree };
	model_slice(model, event, &ret_errors->whole);
	if (!bytes)
		return 0;
	if (!pool_charge(POOL_REPORT, bytes))
		return -E2BIG;
	ret_errors->bytes = bytes;
	ret_errors->numbers = malloc(bytes);
	if (!ret_errors->numbers)
		return -E2BIG;
	number_shares(&adder, least);
	return adder.count ? add_up(&adder) : 0;
}

double tree_error(const struct tree_errors *errors, uint32_t node, enum tree_share share)
{
	const uint32_t number = errors->numbers[node][share];
	const double part = part_of(errors->tree, node, share);

	if (!sliced_is_telling(&errors->whole))
		return -1;
	/* of few samples nothing is known but how many they are */
	if (number == NONE && expected_of(errors, part) >= DIFF_EXPECTED_MIN)
		return -1;
	return share_error(&errors->whole, part, number == NONE ? 1 : errors->phi[number]);
}

void tree_errors_free(struct tree_errors *errors)
{
	free(errors->numbers);
	free(errors->phi);
	pool_uncharge(POOL_REPORT, errors->bytes + errors->phi_bytes);
	*errors = (struct tree_errors){ 0 };
}
