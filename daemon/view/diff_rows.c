// SPDX-License-Identifier: Apache-2.0
#include "view/diff_rows.h"

#include <string.h>

#include "base/fingerprint.h"

static uint64_t row_hash(const struct diff_row *row)
{
	struct fingerprint print = fingerprint_start((uintptr_t)row->owner);

	fingerprint_mix(&print, (uintptr_t)row->name, (uintptr_t)row->file);
	fingerprint_mix(&print, row->is_kernel, row->line);
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
		    row->line == key->line && row->is_kernel == key->is_kernel)
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

static struct diff_row row_of_frame(enum view_by by, const struct model_frame *frame, const char *nothing)
{
	struct diff_row row = {
		.owner = nothing, .name = by == BY_OBJECT ? nothing : frame->name, .file = frame->file,
		.is_kernel = frame->kind == FRAME_KIND_KERNEL,
	};

	if (by == BY_LINE && frame->line && *frame->source) {
		row.name = nothing;
		row.file = frame->source;
		row.line = frame->line;
		/* any program may have a main.c */
		if (*frame->source != '/')
			row.owner = frame->file;
	}
	return row;
}

const struct diff_row *diff_row_of(const struct diff *diff, struct model *model, uint32_t frame)
{
	const struct diff_row key = row_of_frame(diff->by, model_frame(model, frame), texts_intern(&model->texts, ""));
	const uint32_t i = look_up(diff, &key);

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

static uint32_t row_of(const struct maker *maker, uint32_t node)
{
	return maker->row_of[tree_node(&maker->model->tree, node)->frame];
}

struct diff_row *maker_row(const struct maker *maker, uint32_t node)
{
	return diff_row(maker->diff, row_of(maker, node));
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
			above[row_of(maker, node)]--;
			down = next[node];
			node = tree_node(tree, node)->parent;
		}
		node = down;
		maker->is_outer[node] = !above[row_of(maker, node)]++;
		down = first[node];
	}
}

static int find_outer(struct maker *maker)
{
	const struct tree *tree = &maker->model->tree;
	const size_t count = tree_count(tree);
	const size_t bytes = (2 * count + maker->diff->rows.count + 1) * sizeof(uint32_t);
	_cleanup_free_ uint32_t *memory = NULL;
	uint32_t *first, *next;

	if (!count)
		return 0;
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

static int rows_of_frames(struct maker *maker, const char *nothing)
{
	int err = 0;

	for (uint32_t i = 0; i < maker->model->frames.count && !err; i++) {
		const struct diff_row key = row_of_frame(maker->diff->by, model_frame(maker->model, i), nothing);

		err = find_row(maker->diff, &key, &maker->row_of[i]);
	}
	return err ?: find_outer(maker);
}

int maker_init(struct maker *maker)
{
	const char *nothing = texts_intern(&maker->model->texts, "");
	const bool is_frame = by_is_frame(maker->diff->by);
	const size_t nodes = is_frame ? tree_count(&maker->model->tree) : 0;
	const size_t rows = is_frame ? maker->model->frames.count : maker->model->groups.count;
	const size_t bytes = rows * sizeof(*maker->row_of) + nodes * sizeof(*maker->is_outer);

	if (!nothing || !pool_charge(POOL_REPORT, bytes))
		return -E2BIG;
	maker->bytes = bytes;
	maker->row_of = calloc(rows + 1, sizeof(*maker->row_of));
	maker->is_outer = calloc(nodes + 1, sizeof(*maker->is_outer));
	if (!maker->row_of || !maker->is_outer)
		return -E2BIG;
	return is_frame ? rows_of_frames(maker, nothing) : rows_of_groups(maker, nothing);
}

void maker_done(struct maker *maker)
{
	free(maker->row_of);
	free(maker->is_outer);
	pool_uncharge(POOL_REPORT, maker->bytes);
}
