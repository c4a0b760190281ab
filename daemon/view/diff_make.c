// SPDX-License-Identifier: Apache-2.0
#include "view/diff_rows.h"

#include <math.h>
#include <string.h>

#include "view/largest.h"

/* Weights of all nodes of one side, and of rows that are of frames. */
static void sum_side(struct maker *maker, unsigned int side)
{
	const struct model_event *event = model_event(maker->model, maker->diff->events[side]);
	const struct timeline *timeline = model_timeline(maker->model, event->side);
	const bool is_frame = by_is_frame(maker->diff->by);
	const struct tree *tree = &maker->model->tree;

	for (size_t i = 0; i < timeline_count(timeline); i++) {
		const struct timeline_entry *entry = timeline_at(timeline, i);

		if (model_group(maker->model, entry->group)->event != maker->diff->events[side])
			continue;
		maker->parts[entry->node][side] += (double)entry->weight;
		if (is_frame && entry->node != TREE_ROOT)
			maker_row(maker, entry->node)->self.parts[side] += (double)entry->weight;
	}
	/* parents come before their children */
	for (uint32_t i = tree_count(tree); i-- > 1;) {
		maker->parts[tree_node(tree, i)->parent][side] += maker->parts[i][side];
		if (is_frame && maker->is_outer[i])
			maker_row(maker, i)->total.parts[side] += maker->parts[i][side];
	}
}

/* Weights of rows that are of groups. */
static void sum_groups(struct maker *maker, unsigned int side)
{
	const struct model_event *event = model_event(maker->model, maker->diff->events[side]);
	const struct timeline *timeline = model_timeline(maker->model, event->side);

	for (size_t i = 0; i < timeline_count(timeline); i++) {
		const struct timeline_entry *entry = timeline_at(timeline, i);
		struct diff_row *row;

		if (model_group(maker->model, entry->group)->event != maker->diff->events[side] ||
		    !entry->samples)
			continue;
		row = diff_row(maker->diff, maker->row_of[entry->group]);
		row->self.parts[side] += (double)entry->weight;
		row->total.parts[side] += (double)entry->weight;
	}
}

static bool has_any(const struct diff_share *share)
{
	return share->parts[DIFF_BEFORE] + share->parts[DIFF_AFTER] > 0;
}

/* Samples by which it is known, before phi is, whether it can be tested. */
static double expected_of(const struct maker *maker, const double parts[DIFF_SIDES])
{
	static const double phi[DIFF_SIDES] = { 1, 1 };
	const struct sliced *sides = maker->diff->sides;

	if (!maker->is_one)
		return share_expected(sides, parts, phi);
	return sides[DIFF_AFTER].weight > 0 ?
	       sliced_size(&sides[DIFF_AFTER]) * parts[DIFF_AFTER] / sides[DIFF_AFTER].weight : 0;
}

static void choose(struct maker *maker, struct diff_share *share)
{
	const double phi[DIFF_SIDES] = { 1, 1 };

	share_test(maker->diff->sides, share->parts, phi, &share->test);
	share->test.expected = expected_of(maker, share->parts);
	share->q = 1;
	share->tested = share->test.expected < DIFF_EXPECTED_MIN ? NONE : maker->tested++;
}

/*
 * The largest DIFF_PATHS_MAX. How many samples both recordings have of a path together says, if nothing changed, nothing of
 * how they divide: the tests that are left stay what they are.
 */
static void find_largest(struct maker *maker, struct largest *ret_largest)
{
	largest_init(ret_largest, DIFF_EXPECTED_MIN);
	for (uint32_t i = 1; i < tree_count(&maker->model->tree); i++)
		largest_count(ret_largest, expected_of(maker, maker->parts[i]));
	largest_choose(ret_largest, DIFF_PATHS_MAX);
}

static void choose_rows(struct maker *maker)
{
	for (uint32_t i = 0; i < maker->diff->rows.count; i++) {
		choose(maker, &diff_row(maker->diff, i)->self);
		choose(maker, &diff_row(maker->diff, i)->total);
	}
}

static int choose_paths(struct maker *maker)
{
	struct diff *diff = maker->diff;
	struct largest largest;

	find_largest(maker, &largest);
	diff->path_least = largest.least;
	for (uint32_t i = 1; i < tree_count(&maker->model->tree); i++) {
		struct diff_path path = { .node = i };
		double expected;

		memcpy(path.total.parts, maker->parts[i], sizeof(path.total.parts));
		expected = expected_of(maker, path.total.parts);
		if (!largest_take(&largest, expected)) {
			if (expected >= DIFF_EXPECTED_MIN)
				diff->path.beyond++;
			else
				diff->path.few += has_any(&path.total);
			continue;
		}
		choose(maker, &path.total);
		if (buffer_append(&diff->paths, &path, sizeof(path)))
			return -E2BIG;
	}
	return 0;
}

static void add_slice(struct maker *maker, uint32_t tested, unsigned int slice, double weight)
{
	if (tested != NONE)
		maker->slices[tested][slice] += weight;
}

/* What ran in a slice, of each row and node that is tested. */
static void sum_slice(struct maker *maker, unsigned int side, unsigned int slice)
{
	const struct model_event *event = model_event(maker->model, maker->diff->events[side]);
	const struct timeline *timeline = model_timeline(maker->model, event->side);
	const bool is_frame = by_is_frame(maker->diff->by);
	const struct tree *tree = &maker->model->tree;
	size_t path = diff_path_count(maker->diff);

	memset(maker->sums, 0, tree_count(tree) * sizeof(*maker->sums));
	for (size_t i = 0; i < timeline_count(timeline); i++) {
		const struct timeline_entry *entry = timeline_at(timeline, i);
		const double weight = (double)entry->weight;
		const struct diff_row *row;

		if (model_group(maker->model, entry->group)->event != maker->diff->events[side] ||
		    timeline_slice(timeline, entry->time) != slice)
			continue;
		maker->sums[entry->node] += weight;
		if (is_frame && entry->node == TREE_ROOT)
			continue;
		row = is_frame ? maker_row(maker, entry->node) :
				 diff_row(maker->diff, maker->row_of[entry->group]);
		add_slice(maker, row->self.tested, slice, weight);
		if (!is_frame)
			add_slice(maker, row->total.tested, slice, weight);
	}
	/* parents come before their children, and paths are in the order of their nodes */
	for (uint32_t i = tree_count(tree); i-- > 1;) {
		maker->sums[tree_node(tree, i)->parent] += maker->sums[i];
		if (path && diff_path(maker->diff, path - 1)->node == i)
			add_slice(maker, diff_path(maker->diff, --path)->total.tested, slice, maker->sums[i]);
		if (is_frame && maker->is_outer[i])
			add_slice(maker, maker_row(maker, i)->total.tested, slice, maker->sums[i]);
	}
}

static void slice_tested(struct maker *maker, unsigned int side)
{
	memset(maker->slices, 0, maker->tested * sizeof(*maker->slices));
	for (unsigned int i = 0; i < SLICES; i++)
		if (maker->diff->sides[side].slices[i] > 0)
			sum_slice(maker, side, i);
	for (uint32_t i = 0; i < maker->tested; i++)
		maker->phi[i][side] = sliced_factor(&maker->diff->sides[side], maker->slices[i]);
}

static double error_of(const struct maker *maker, double part, uint32_t tested)
{
	const struct sliced *sliced = &maker->diff->sides[DIFF_AFTER];

	if (!sliced_is_telling(sliced))
		return -1;
	return share_error(sliced, part, tested == NONE ? 1 : maker->phi[tested][DIFF_AFTER]);
}

static void measure(struct maker *maker, struct diff_share *share)
{
	if (share->tested != NONE)
		share->test.phi[DIFF_AFTER] = maker->phi[share->tested][DIFF_AFTER];
	share->test.error = error_of(maker, share->parts[DIFF_AFTER], share->tested);
}

static void measure_all(struct maker *maker)
{
	struct diff *diff = maker->diff;

	for (size_t i = 0; i < diff->rows.count; i++) {
		measure(maker, &diff_row(diff, i)->self);
		measure(maker, &diff_row(diff, i)->total);
	}
	for (size_t i = 0; i < diff_path_count(diff); i++)
		measure(maker, &diff_path(diff, i)->total);
	diff->path.tested = diff_path_count(diff);
}

/* Its p in place of its q. True: it is one of those that are tested. */
static bool judge(struct maker *maker, struct diff_share *share)
{
	const struct sliced *sides = maker->diff->sides;
	double *phi;

	share->verdict = DIFF_FEW;
	if (share->tested == NONE)
		return false;
	phi = maker->phi[share->tested];
	/* where there is next to nothing of it the other recording says how it depends */
	for (unsigned int i = 0; i < DIFF_SIDES; i++)
		if (share->parts[i] / sides[i].weight * sliced_size(&sides[i]) < DIFF_EXPECTED_MIN)
			phi[i] = fmax(phi[0], phi[1]);
	share_test(sides, share->parts, phi, &share->test);
	if (share->test.expected < DIFF_INDEPENDENT_MIN)
		return false;
	share->q = share->test.p;
	share->verdict = DIFF_SAME;
	return true;
}

/* One table: of those that are tested some are discoveries. @at gives its @i'th share. */
static int discover(struct maker *maker, size_t count,
		    struct diff_share *(*at)(const struct diff *diff, size_t i),
		    struct diff_count *ret_count)
{
	_cleanup_free_ double *values = calloc(count + 1, sizeof(*values));
	size_t tested = 0;
	int err;

	if (!values)
		return -E2BIG;
	for (size_t i = 0; i < count; i++)
		if (judge(maker, at(maker->diff, i)))
			values[tested++] = at(maker->diff, i)->q;
		else
			ret_count->few += has_any(at(maker->diff, i));
	err = discovery_rates(values, tested);
	if (err)
		return -E2BIG;
	ret_count->tested = tested;
	tested = 0;
	for (size_t i = 0; i < count; i++) {
		struct diff_share *share = at(maker->diff, i);

		if (share->verdict == DIFF_FEW)
			continue;
		share->q = values[tested++];
		if (share->q > DIFF_RATE)
			continue;
		share->verdict = share->test.change > 0 ? DIFF_GREW : DIFF_SHRANK;
		ret_count->grew += share->verdict == DIFF_GREW;
		ret_count->shrank += share->verdict == DIFF_SHRANK;
	}
	return 0;
}

static struct diff_share *self_at(const struct diff *diff, size_t i)
{
	return &diff_row(diff, i)->self;
}

static struct diff_share *total_at(const struct diff *diff, size_t i)
{
	return &diff_row(diff, i)->total;
}

static struct diff_share *path_at(const struct diff *diff, size_t i)
{
	return &diff_path(diff, i)->total;
}

static int by_node(const void *key, const void *path)
{
	const uint32_t node = *(const uint32_t *)key, other = ((const struct diff_path *)path)->node;

	return (node > other) - (node < other);
}

/* A change of a call shows in all that leads to it: what has half of its caller's stands for that. */
static void find_deepest(struct maker *maker)
{
	struct diff *diff = maker->diff;

	for (size_t i = 0; i < diff_path_count(diff); i++) {
		struct diff_path *path = diff_path(diff, i), *above;

		path->is_deepest = diff_is_change(&path->total);
		above = bsearch(&tree_node(&maker->model->tree, path->node)->parent, diff->paths.data, i,
				sizeof(*path), by_node);
		if (above && above->total.verdict == path->total.verdict &&
		    2 * fabs(path->total.test.change) >= fabs(above->total.test.change))
			above->is_deepest = false;
	}
}

static int order(const void *a, const void *b)
{
	const double left = *(const double *)a, right = *(const double *)b;

	return (left > right) - (left < right);
}

/* Of both sides. Sorts what is of no use any more. */
static void sum_up(struct maker *maker)
{
	double *phi = maker->phi[0];
	size_t count = 0;

	for (uint32_t i = 0; i < maker->tested; i++)
		for (unsigned int side = maker->is_one; side < DIFF_SIDES; side++)
			phi[count++] = maker->phi[i][side];
	maker->diff->phi_median = maker->diff->phi_max = 1;
	if (!count)
		return;
	qsort(phi, count, sizeof(*phi), order);
	maker->diff->phi_median = phi[count / 2];
	maker->diff->phi_max = phi[count - 1];
}

static int test_all(struct maker *maker)
{
	struct diff *diff = maker->diff;
	size_t bytes;
	int err;

	choose_rows(maker);
	err = maker->with_paths ? choose_paths(maker) : 0;
	if (err)
		return err;
	bytes = ((size_t)maker->tested + 1) * (sizeof(*maker->slices) + sizeof(*maker->phi));
	if (!pool_charge(POOL_REPORT, bytes))
		return -E2BIG;
	maker->slices = calloc((size_t)maker->tested + 1, sizeof(*maker->slices));
	maker->phi = calloc((size_t)maker->tested + 1, sizeof(*maker->phi));
	if (maker->slices && maker->phi) {
		for (unsigned int i = maker->is_one; i < DIFF_SIDES; i++)
			slice_tested(maker, i);
		if (maker->is_one)
			measure_all(maker);
		else
			err = discover(maker, diff->rows.count, self_at, &diff->self) ?:
			      discover(maker, diff->rows.count, total_at, &diff->total) ?:
			      discover(maker, diff_path_count(diff), path_at, &diff->path);
		if (!err) {
			if (!maker->is_one)
				find_deepest(maker);
			sum_up(maker);
		}
	} else {
		err = -E2BIG;
	}
	free(maker->slices);
	free(maker->phi);
	pool_uncharge(POOL_REPORT, bytes);
	return err;
}

static int make(struct maker *maker)
{
	for (unsigned int i = maker->is_one; i < DIFF_SIDES; i++) {
		sum_side(maker, i);
		model_slice(maker->model, maker->diff->events[i], &maker->diff->sides[i]);
		if (!by_is_frame(maker->diff->by))
			sum_groups(maker, i);
	}
	return test_all(maker);
}

/* Parts are of no use any more once it is known what is tested: slices are summed up in their place. */
static int make_of_nodes(struct maker *maker)
{
	const size_t bytes = tree_count(&maker->model->tree) * sizeof(*maker->parts);
	int err = -E2BIG;

	if (!pool_charge(POOL_REPORT, bytes))
		return -E2BIG;
	maker->parts = calloc(1, bytes);
	maker->sums = (double *)maker->parts;
	if (maker->parts)
		err = make(maker);
	free(maker->parts);
	pool_uncharge(POOL_REPORT, bytes);
	return err;
}

static int make_any(struct model *model, const uint32_t events[DIFF_SIDES], enum view_by by,
		    bool is_one, bool with_paths, struct diff *ret_diff)
{
	struct maker maker = { .model = model, .diff = ret_diff, .is_one = is_one, .with_paths = with_paths };
	int err;

	*ret_diff = (struct diff){ .by = by };
	memcpy(ret_diff->events, events, sizeof(ret_diff->events));
	rows_init(&ret_diff->rows);
	buffer_init(&ret_diff->paths, POOL_REPORT);
	err = maker_init(&maker) ?: make_of_nodes(&maker);
	maker_done(&maker);
	return err;
}

int diff_make(struct model *model, const uint32_t events[DIFF_SIDES], enum view_by by,
	      struct diff *ret_diff)
{
	return make_any(model, events, by, false, true, ret_diff);
}

int diff_make_one(struct model *model, uint32_t event, enum view_by by, bool with_paths, struct diff *ret_diff)
{
	return make_any(model, (const uint32_t[]){ event, event }, by, true, with_paths, ret_diff);
}

bool diff_say_paths(const struct diff *diff, char *ret_text, size_t size)
{
	const struct diff_count *path = &diff->path;

	if (!path->beyond)
		return false;
	snprintf(ret_text, size, "only the %zu call paths with the most samples were tested, of %zu",
		 path->tested, path->tested + path->few + path->beyond);
	return true;
}

void diff_free(struct diff *diff)
{
	rows_free(&diff->rows);
	buffer_free(&diff->paths);
}
