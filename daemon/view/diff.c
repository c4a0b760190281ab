// SPDX-License-Identifier: Apache-2.0
#include "view/diff.h"

#include <math.h>
#include <string.h>

#include "base/fingerprint.h"

#define NONE UINT32_MAX

/* While it is made. By node, and by group where rows are of groups. */
struct maker {
	struct model *model;
	struct diff *diff;
	uint32_t *row_of;	/* NONE of the root */
	uint32_t *path_of;	/* its number among those that are tested, or NONE */
	double (*parts)[DIFF_SIDES];
	double *sums;		/* of the slice at hand */
	bool *is_outer;		/* nothing above it is of the same row */
	double (*slices)[SLICES];	/* of what is tested, of one side */
	double (*phi)[DIFF_SIDES];
	uint32_t tested;
	bool is_one;		/* there is no DIFF_BEFORE */
	double least;		/* of paths that are tested: percent, then weight */
};

static uint64_t row_hash(const struct diff_row *row)
{
	struct fingerprint print = fingerprint_start((uintptr_t)row->owner);

	fingerprint_mix(&print, (uintptr_t)row->name, (uintptr_t)row->file);
	fingerprint_mix(&print, row->is_kernel, 0);
	return fingerprint_end(print).lo;
}

static uint64_t row_hash_of(const void *ctx, uint32_t position)
{
	return row_hash((const struct diff_row *)ctx + position);
}

static uint32_t look_up(const struct diff *diff, const struct diff_row *key)
{
	struct index_probe probe = index_first(&diff->rows.index, row_hash(key));
	const struct diff_row *row;
	uint32_t i;

	while ((i = index_next(&diff->rows.index, &probe)) != INDEX_NONE) {
		row = diff_row(diff, i);
		if (row->owner == key->owner && row->name == key->name && row->file == key->file &&
		    row->is_kernel == key->is_kernel)
			break;
	}
	return i;
}

static int find_row(struct diff *diff, const struct diff_row *key, uint32_t *ret_position)
{
	*ret_position = look_up(diff, key);
	if (*ret_position != INDEX_NONE)
		return 0;
	return rows_add(&diff->rows, row_hash(key), row_hash_of, key, sizeof(*key), ret_position);
}

const struct diff_row *diff_function(const struct diff *diff, struct model *model, uint32_t frame)
{
	const struct model_frame *of = model_frame(model, frame);
	const struct diff_row key = {
		.owner = texts_intern(&model->texts, ""), .name = of->name, .file = of->file,
		.is_kernel = of->kind == FRAME_KIND_KERNEL,
	};
	uint32_t i = look_up(diff, &key);

	return i == INDEX_NONE ? NULL : diff_row(diff, i);
}

static bool is_wanted(const struct maker *maker, const struct model_group *group)
{
	return group->event == maker->diff->events[DIFF_BEFORE] ||
	       group->event == maker->diff->events[DIFF_AFTER];
}

static int rows_of_groups(struct maker *maker, const char *nothing)
{
	int err = 0;

	for (uint32_t i = 0; i < maker->model->groups.count && !err; i++) {
		const struct model_group *group = model_group(maker->model, i);
		struct diff_row key = { .owner = nothing, .name = nothing, .file = nothing };

		if (!is_wanted(maker, group))
			continue;
		switch (maker->diff->by) {
		case BY_THREAD:
			key.name = group->thread;
			key.owner = group->process.name;
			break;
		case BY_CONTAINER:
			key.owner = group->process.container_id;
			break;
		case BY_CGROUP:
			key.owner = group->process.cgroup;
			break;
		case BY_SERVICE:
			key.owner = group->process.service_name;
			break;
		default:
			key.owner = group->process.name;
		}
		err = find_row(maker->diff, &key, &maker->row_of[i]);
	}
	return err;
}

/* Down and up again through all of the tree, with a count for each row of how often it is above. */
static void walk(struct maker *maker, const uint32_t *first, const uint32_t *next, uint32_t *above)
{
	const struct tree *tree = &maker->model->tree;
	uint32_t node = TREE_ROOT, down = first[TREE_ROOT];

	for (;;) {
		while (down == NONE) {
			if (node == TREE_ROOT)
				return;
			above[maker->row_of[node]]--;
			down = next[node];
			node = tree_node(tree, node)->parent;
		}
		node = down;
		maker->is_outer[node] = !above[maker->row_of[node]]++;
		down = first[node];
	}
}

static int find_outer(struct maker *maker)
{
	const struct tree *tree = &maker->model->tree;
	size_t count = tree_count(tree);
	size_t bytes = (2 * count + maker->diff->rows.count + 1) * sizeof(uint32_t);
	_cleanup_free_ uint32_t *memory = NULL;
	uint32_t *first, *next;

	if (!pool_charge(POOL_REPORT, bytes))
		return -E2BIG;
	memory = calloc(1, bytes);
	if (memory) {
		first = memory;
		next = first + count;
		memset(first, 0xff, 2 * count * sizeof(*first));
		for (uint32_t i = 1; i < count; i++) {
			next[i] = first[tree_node(tree, i)->parent];
			first[tree_node(tree, i)->parent] = i;
		}
		walk(maker, first, next, next + count);
	}
	pool_uncharge(POOL_REPORT, bytes);
	return memory ? 0 : -E2BIG;
}

static int rows_of_nodes(struct maker *maker, const char *nothing)
{
	const struct tree *tree = &maker->model->tree;
	int err = 0;

	maker->row_of[TREE_ROOT] = NONE;
	for (uint32_t i = 1; i < tree_count(tree) && !err; i++) {
		const struct model_frame *frame = model_frame(maker->model, tree_node(tree, i)->frame);
		const struct diff_row key = {
			.owner = nothing, .file = frame->file,
			.name = maker->diff->by == BY_FUNCTION ? frame->name : nothing,
			.is_kernel = frame->kind == FRAME_KIND_KERNEL,
		};

		err = find_row(maker->diff, &key, &maker->row_of[i]);
	}
	return err ?: find_outer(maker);
}

/* Weights of all rows and nodes of one side. */
static void sum_side(struct maker *maker, unsigned int side)
{
	const struct tree *tree = &maker->model->tree;
	struct diff *diff = maker->diff;

	model_sum(maker->model, diff->events[side]);
	for (uint32_t i = 1; i < tree_count(tree); i++) {
		const struct tree_node *node = tree_node(tree, i);

		maker->parts[i][side] = (double)node->total;
		if (!by_is_frame(diff->by))
			continue;
		diff_row(diff, maker->row_of[i])->self.parts[side] += (double)node->self;
		if (maker->is_outer[i])
			diff_row(diff, maker->row_of[i])->total.parts[side] += (double)node->total;
	}
}

static unsigned int slice_of(const struct timeline *timeline, uint64_t time)
{
	uint64_t first = timeline->first - timeline->first % timeline->width;
	double span = (double)(timeline->last - first) + 1;

	return min_of((unsigned int)((double)(time - first) / span * SLICES), SLICES - 1u);
}

/* What the recording as a whole is, and weights of rows that are of groups. */
static void slice_side(struct maker *maker, unsigned int side)
{
	const struct model_event *event = model_event(maker->model, maker->diff->events[side]);
	const struct timeline *timeline = model_timeline(maker->model, event->side);
	struct sliced *sliced = &maker->diff->sides[side];

	*sliced = (struct sliced){ .has_times = !event->timeless };
	for (size_t i = 0; i < timeline_count(timeline); i++) {
		const struct timeline_entry *entry = timeline_at(timeline, i);
		double weight = (double)entry->weight;
		struct diff_row *row;

		if (model_group(maker->model, entry->group)->event != maker->diff->events[side] ||
		    !entry->samples)
			continue;
		sliced->weight += weight;
		sliced->squares += weight * weight / (double)entry->samples;
		sliced->slices[slice_of(timeline, entry->time)] += weight;
		if (by_is_frame(maker->diff->by))
			continue;
		row = diff_row(maker->diff, maker->row_of[entry->group]);
		row->self.parts[side] += weight;
		row->total.parts[side] += weight;
	}
	for (unsigned int i = 0; i < SLICES; i++)
		sliced->used += sliced->slices[i] > 0;
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
	if (maker->is_one)
		share->test.error = share_error(&maker->diff->sides[DIFF_AFTER], share->parts[DIFF_AFTER], 1);
	share->test.expected = expected_of(maker, share->parts);
	share->q = 1;
	share->tested = share->test.expected < DIFF_EXPECTED_MIN ? NONE : maker->tested++;
}

enum { STEPS = 8, OCTAVES = 64 };

/* Which paths are tested: all of @full expected samples, and the first @room of those with at least @least. */
struct limit {
	double full, least;
	size_t room;
};

/*
 * The largest DIFF_PATHS_MAX, in eighths of octaves, of which the last is taken in part. How many samples both recordings
 * have of a path together says, if nothing changed, nothing of how they divide: the tests that are left stay what they are.
 */
static struct limit limit_of_paths(const struct maker *maker)
{
	size_t counts[STEPS * OCTAVES] = { 0 }, sum = 0, step = ARRAY_SIZE(counts);
	double expected;

	for (uint32_t i = 1; i < tree_count(&maker->model->tree); i++) {
		expected = expected_of(maker, maker->parts[i]);
		if (maker->parts[i][DIFF_AFTER] >= maker->least && expected >= DIFF_EXPECTED_MIN)
			counts[min_of((size_t)(STEPS * log2(expected / DIFF_EXPECTED_MIN)),
				      ARRAY_SIZE(counts) - 1)]++;
	}
	while (step && sum + counts[step - 1] <= DIFF_PATHS_MAX)
		sum += counts[--step];
	return (struct limit){
		.full = DIFF_EXPECTED_MIN * exp2((double)step / STEPS),
		.least = DIFF_EXPECTED_MIN * exp2((double)(step ? step - 1 : 0) / STEPS),
		.room = DIFF_PATHS_MAX - sum,
	};
}

static bool is_within(struct limit *limit, double expected)
{
	if (expected >= limit->full)
		return true;
	if (expected < limit->least || !limit->room)
		return false;
	limit->room--;
	return true;
}

static int choose_all(struct maker *maker)
{
	struct diff *diff = maker->diff;
	struct limit limit;

	for (uint32_t i = 0; i < diff->rows.count; i++) {
		choose(maker, &diff_row(diff, i)->self);
		choose(maker, &diff_row(diff, i)->total);
	}
	limit = limit_of_paths(maker);
	diff->path_least = limit.least;
	for (uint32_t i = 1; i < tree_count(&maker->model->tree); i++) {
		struct diff_path path = { .node = i };

		maker->path_of[i] = NONE;
		memcpy(path.total.parts, maker->parts[i], sizeof(path.total.parts));
		if (path.total.parts[DIFF_AFTER] < maker->least)
			continue;
		if (!is_within(&limit, expected_of(maker, path.total.parts))) {
			diff->path.few += has_any(&path.total);
			continue;
		}
		choose(maker, &path.total);
		maker->path_of[i] = path.total.tested;
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
	const struct diff_row *row;

	memset(maker->sums, 0, tree_count(tree) * sizeof(*maker->sums));
	for (size_t i = 0; i < timeline_count(timeline); i++) {
		const struct timeline_entry *entry = timeline_at(timeline, i);
		const double weight = (double)entry->weight;
		uint32_t place = is_frame ? entry->node : entry->group;

		if (model_group(maker->model, entry->group)->event != maker->diff->events[side] ||
		    slice_of(timeline, entry->time) != slice)
			continue;
		maker->sums[entry->node] += weight;
		row = diff_row(maker->diff, maker->row_of[place]);
		add_slice(maker, row->self.tested, slice, weight);
		if (!is_frame)
			add_slice(maker, row->total.tested, slice, weight);
	}
	/* parents come before their children */
	for (uint32_t i = tree_count(tree); i-- > 1;) {
		maker->sums[tree_node(tree, i)->parent] += maker->sums[i];
		add_slice(maker, maker->path_of[i], slice, maker->sums[i]);
		if (is_frame && maker->is_outer[i])
			add_slice(maker, diff_row(maker->diff, maker->row_of[i])->total.tested, slice,
				  maker->sums[i]);
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

static void measure(struct maker *maker, struct diff_share *share)
{
	if (share->tested == NONE)
		return;
	share->test.phi[DIFF_AFTER] = maker->phi[share->tested][DIFF_AFTER];
	share->test.error = share_error(&maker->diff->sides[DIFF_AFTER], share->parts[DIFF_AFTER],
					share->test.phi[DIFF_AFTER]);
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

/* A change of a call shows in all that leads to it: what has half of its caller's stands for that. */
static void find_deepest(struct maker *maker)
{
	struct diff *diff = maker->diff;

	/* from now on where it is in the list */
	for (size_t i = 0; i < diff_path_count(diff); i++) {
		struct diff_path *path = diff_path(diff, i), *above;
		uint32_t parent = tree_node(&maker->model->tree, path->node)->parent;

		maker->path_of[path->node] = (uint32_t)i;
		path->is_deepest = diff_is_change(&path->total);
		if (parent == TREE_ROOT || maker->path_of[parent] == NONE)
			continue;
		above = diff_path(diff, maker->path_of[parent]);
		if (above->total.verdict == path->total.verdict &&
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
	int err = choose_all(maker);
	size_t bytes = ((size_t)maker->tested + 1) * (sizeof(*maker->slices) + sizeof(*maker->phi));

	if (err)
		return err;
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
	const char *nothing = texts_intern(&maker->model->texts, "");
	int err;

	if (!nothing)
		return -E2BIG;
	err = by_is_frame(maker->diff->by) ? rows_of_nodes(maker, nothing) :
					     rows_of_groups(maker, nothing);
	if (err)
		return err;
	for (unsigned int i = maker->is_one; i < DIFF_SIDES; i++) {
		sum_side(maker, i);
		slice_side(maker, i);
	}
	/* what is shown by the same share must not miss its error by a rounding */
	maker->least *= maker->diff->sides[DIFF_AFTER].weight / 100 * (1 - 1e-9);
	return test_all(maker);
}

static int make_any(struct model *model, const uint32_t events[DIFF_SIDES], enum view_by by,
		    bool is_one, double least, struct diff *ret_diff)
{
	struct maker maker = { .model = model, .diff = ret_diff, .is_one = is_one, .least = least };
	size_t nodes = tree_count(&model->tree);
	size_t rows = max_of(nodes, (size_t)model->groups.count) + 1;
	size_t bytes = rows * sizeof(*maker.row_of) +
		       nodes * (sizeof(*maker.path_of) + sizeof(*maker.parts) +
				sizeof(*maker.sums) + sizeof(*maker.is_outer));
	int err = -E2BIG;

	*ret_diff = (struct diff){ .by = by };
	memcpy(ret_diff->events, events, sizeof(ret_diff->events));
	rows_init(&ret_diff->rows);
	buffer_init(&ret_diff->paths, POOL_REPORT);
	if (!pool_charge(POOL_REPORT, bytes))
		return -E2BIG;
	maker.row_of = calloc(rows, sizeof(*maker.row_of));
	maker.path_of = calloc(nodes + 1, sizeof(*maker.path_of));
	maker.parts = calloc(nodes + 1, sizeof(*maker.parts));
	maker.sums = calloc(nodes + 1, sizeof(*maker.sums));
	maker.is_outer = calloc(nodes + 1, sizeof(*maker.is_outer));
	if (maker.row_of && maker.path_of && maker.parts && maker.sums && maker.is_outer)
		err = make(&maker);
	free(maker.row_of);
	free(maker.path_of);
	free(maker.parts);
	free(maker.sums);
	free(maker.is_outer);
	pool_uncharge(POOL_REPORT, bytes);
	return err;
}

int diff_make(struct model *model, const uint32_t events[DIFF_SIDES], enum view_by by,
	      struct diff *ret_diff)
{
	return make_any(model, events, by, false, 0, ret_diff);
}

int diff_make_one(struct model *model, uint32_t event, enum view_by by, double least, struct diff *ret_diff)
{
	return make_any(model, (const uint32_t[]){ event, event }, by, true, least, ret_diff);
}

bool diff_say_paths(const struct diff *diff, char *ret_text, size_t size)
{
	if (diff->path_least <= DIFF_EXPECTED_MIN)
		return false;
	snprintf(ret_text, size, "of %zu call paths the %zu with most expected samples were tested",
		 diff->path.tested + diff->path.few, diff->path.tested);
	return true;
}

void diff_free(struct diff *diff)
{
	rows_free(&diff->rows);
	buffer_free(&diff->paths);
}
