// SPDX-License-Identifier: Apache-2.0
#include "view/model.h"

#include <string.h>

#include "base/fail.h"
#include "base/fingerprint.h"
#include "view/pprof_names.h"
#include "view/recording.h"

static uint64_t frame_hash(const struct model_frame *frame)
{
	struct fingerprint print = fingerprint_start((uintptr_t)frame->name);

	fingerprint_mix(&print, (uintptr_t)frame->file, (uintptr_t)frame->source);
	fingerprint_mix(&print, frame->address, frame->line << 4 | (uint64_t)frame->kind << 2 |
			(uint64_t)frame->is_named << 1 | frame->is_inlined);
	fingerprint_mix(&print, frame->start, frame->offset);
	fingerprint_mix(&print, frame->start_line, frame->limit);
	fingerprint_mix(&print, (uintptr_t)frame->build_id, (uintptr_t)frame->system_name);
	fingerprint_mix(&print, frame->column, (uint64_t)frame->lacks << 1 | frame->is_folded);
	return fingerprint_end(print).lo;
}

static uint64_t frame_hash_of(const void *ctx, uint32_t position)
{
	return frame_hash((const struct model_frame *)ctx + position);
}

static bool is_same_frame(const struct model_frame *a, const struct model_frame *b)
{
	return a->name == b->name && a->file == b->file && a->source == b->source &&
	       a->kind == b->kind && a->is_named == b->is_named &&
	       a->is_inlined == b->is_inlined && a->address == b->address && a->line == b->line &&
	       a->start_line == b->start_line &&
	       a->start == b->start && a->limit == b->limit && a->offset == b->offset &&
	       a->build_id == b->build_id && a->system_name == b->system_name && a->column == b->column &&
	       a->lacks == b->lacks && a->is_folded == b->is_folded;
}

static const char *base_name(struct model *model, const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? texts_intern(&model->texts, slash + 1) : path;
}

static int find_frame(struct model *model, const struct view_frame *frame, uint32_t *ret_position)
{
	struct model_frame key = {
		.name = frame->name, .file = frame->mapping->file, .source = frame->source,
		.kind = frame->kind, .is_named = frame->is_named, .is_range = frame->is_range,
		.is_inlined = frame->is_inlined,
		.build_id = "", .system_name = "",
	};
	struct index_probe probe;
	uint64_t hash;
	uint32_t i;

	if (model->is_short) {
		key.file = base_name(model, key.file);
		key.source = texts_intern(&model->texts, "");
		if (!key.file || !key.source)
			return -E2BIG;
	}
	if (model->with_lines || model->is_exact)
		key.line = frame->line;
	if (model->is_exact) {
		key.address = frame->address;
		key.start_line = frame->start_line;
		key.start = frame->mapping->start;
		key.limit = frame->mapping->limit;
		key.offset = frame->mapping->offset;
		key.build_id = frame->mapping->build_id;
	}
	if (model->with_remarks) {
		key.system_name = frame->system_name && *frame->system_name ? frame->system_name : "";
		key.column = frame->column;
		key.lacks = frame->mapping->lacks;
		key.is_folded = frame->is_folded;
	}
	hash = frame_hash(&key);
	probe = index_first(&model->frames.index, hash);
	while ((i = index_next(&model->frames.index, &probe)) != INDEX_NONE)
		if (is_same_frame(model_frame(model, i), &key)) {
			*ret_position = i;
			return 0;
		}
	return rows_add(&model->frames, hash, frame_hash_of, &key, sizeof(key), ret_position);
}

static uint64_t group_hash(const struct model_group *group)
{
	struct fingerprint print = fingerprint_start((uint64_t)group->event << 32 |
						     group->process.pid);

	fingerprint_mix(&print, (uintptr_t)group->process.name, (uintptr_t)group->thread);
	fingerprint_mix(&print, (uintptr_t)group->process.container_id, group->tid);
	fingerprint_mix(&print, (uintptr_t)group->process.service_name,
			(uintptr_t)group->process.cgroup);
	if (group->labels)
		fingerprint_mix(&print, group->labels, 0);
	return fingerprint_end(print).lo;
}

static uint64_t group_hash_of(const void *ctx, uint32_t position)
{
	return group_hash((const struct model_group *)ctx + position);
}

static bool is_same_group(const struct model_group *a, const struct model_group *b)
{
	return a->event == b->event && a->process.pid == b->process.pid &&
	       a->process.name == b->process.name &&
	       a->process.container_id == b->process.container_id &&
	       a->process.service_name == b->process.service_name &&
	       a->process.cgroup == b->process.cgroup && a->tid == b->tid &&
	       a->thread == b->thread && a->labels == b->labels;
}

static int find_group(struct model *model, const struct view_process *process,
		      const struct view_sample *sample, uint32_t *ret_position)
{
	struct model_group key = { .event = model->event, .process = *process,
				   .tid = sample->tid, .thread = sample->thread };
	struct index_probe probe;
	uint64_t hash;
	uint32_t i;

	if (labels_find(&model->labels, sample->labels, sample->label_count, &key.labels))
		return -E2BIG;
	hash = group_hash(&key);
	probe = index_first(&model->groups.index, hash);

	while ((i = index_next(&model->groups.index, &probe)) != INDEX_NONE)
		if (is_same_group(model_group(model, i), &key)) {
			*ret_position = i;
			return 0;
		}
	return rows_add(&model->groups, hash, group_hash_of, &key, sizeof(key), ret_position);
}

static uint64_t event_hash(const struct model_event *event)
{
	struct fingerprint print = fingerprint_start((uintptr_t)event->source);

	fingerprint_mix(&print, (uintptr_t)event->event, (uintptr_t)event->unit);
	fingerprint_mix(&print, event->side, 0);
	return fingerprint_end(print).lo;
}

static uint64_t event_hash_of(const void *ctx, uint32_t position)
{
	return event_hash((const struct model_event *)ctx + position);
}

static int find_event(struct model *model, const struct view_profile *profile,
		      uint32_t *ret_position)
{
	const struct model_event key = {
		.side = model->side, .source = profile->source, .event = profile->event,
		.unit = profile->unit, .period = profile->period,
	};
	uint64_t hash = event_hash(&key);
	struct index_probe probe = index_first(&model->events.index, hash);
	const struct model_event *event;
	uint32_t i;

	while ((i = index_next(&model->events.index, &probe)) != INDEX_NONE) {
		event = model_event(model, i);
		if (event->side == key.side && event->source == key.source &&
		    event->event == key.event && event->unit == key.unit) {
			*ret_position = i;
			return 0;
		}
	}
	return rows_add(&model->events, hash, event_hash_of, &key, sizeof(key), ret_position);
}

static int add_comment(struct model_remarks *remarks, const char *text)
{
	const size_t count = remarks->comments.size / sizeof(text);

	for (size_t i = 0; i < count; i++)
		if (((const char *const *)(const void *)remarks->comments.data)[i] == text)
			return 0;
	if (count == PPROF_COMMENTS_MAX) {
		remarks->losses |= 1u << VIEW_LOSS_COMMENTS;
		return 0;
	}
	return buffer_append(&remarks->comments, &text, sizeof(text)) ? -E2BIG : 0;
}

static void keep_first(struct model_remarks *remarks, const char **kept, const char *text)
{
	if (!text || !text[0])
		return;
	if (*kept && *kept != text)
		remarks->losses |= 1u << VIEW_LOSS_TEXTS;
	*kept = *kept ?: text;
}

static int add_remarks(struct model *model, const struct view_remarks *from, struct model_event *event)
{
	struct model_remarks *remarks = &model->remarks;
	int err = 0;

	for (size_t i = 0; i < from->comment_count && !err; i++)
		err = add_comment(remarks, from->comments[i]);
	remarks->losses |= (uint32_t)from->has_more << VIEW_LOSS_COMMENTS |
			   (uint32_t)from->has_attributes << VIEW_LOSS_PROFILE;
	keep_first(remarks, &remarks->drop_frames, from->drop_frames);
	keep_first(remarks, &remarks->keep_frames, from->keep_frames);
	keep_first(remarks, &remarks->doc_url, from->doc_url);
	if (from->period && !event->own_period) {
		event->period_type = from->period_type;
		event->period_unit = from->period_unit;
		event->own_period = from->period;
	} else if (from->period && (from->period != event->own_period || from->period_type != event->period_type ||
				    from->period_unit != event->period_unit)) {
		remarks->losses |= 1u << VIEW_LOSS_PERIODS;
	}
	return err;
}

static int add_profile(void *ctx, const struct view_profile *profile)
{
	struct model *model = ctx;
	struct model_event *event;
	int err;

	err = find_event(model, profile, &model->event);
	if (err)
		return err;
	event = model_event(model, model->event);
	if (event->period != profile->period)
		event->period = 0;
	event->has_quality |= profile->has_quality;
	rows_sum(&event->complete, profile->quality.complete);
	rows_sum(&event->named, profile->quality.named);
	rows_sum(&event->lost, profile->quality.lost);
	rows_sum(&event->drawn, profile->drawn);
	/* texts are interned */
	event->is_default |= profile->default_type == profile->source;
	if (!model->remarks.default_type && *profile->default_type)
		model->remarks.default_type = profile->default_type;
	if (profile->fallback_errno)
		event->fallback_errno = profile->fallback_errno;
	return model->with_remarks ? add_remarks(model, &profile->remarks, event) : 0;
}

static int add_entry(struct model *model, const struct timeline_entry *entry)
{
	const double weight = (double)entry->weight;

	if (entry->samples)
		model_event(model, model->event)->squares += weight * weight / (double)entry->samples;
	return timeline_add(model_timeline(model, model->side), entry);
}

static int add_times(struct model *model, const struct view_profile *profile,
		     const struct view_sample *sample, uint32_t node)
{
	struct timeline_entry entry = { .node = node, .group = model->group,
					.time = profile->start, .samples = sample->samples,
					.weight = sample->weight };
	const struct timeline *timeline = model_timeline(model, model->side);
	int err = 0;

	if (!sample->time_count)
		rows_sum(&model_event(model, model->event)->timeless, sample->samples);
	if (timeline->width == UINT64_MAX)
		entry.time = 0;
	if (timeline->width == UINT64_MAX || !sample->time_count)
		return add_entry(model, &entry);
	for (size_t i = 0; i < sample->time_count && !err; i++) {
		entry.time = sample->times[i];
		entry.samples = 1;
		entry.weight = view_sample_weight(sample, i);
		err = add_entry(model, &entry);
	}
	return err;
}

static int number_frame(void *ctx, struct view_frame *frame)
{
	return find_frame(ctx, frame, &frame->number);
}

static int number_stack(void *ctx, const struct view_frame *const *frames, size_t count, uint32_t *ret_node)
{
	struct model *model = ctx;

	model->path.size = 0;
	for (size_t i = count; i-- > 0;)
		if (buffer_append(&model->path, &frames[i]->number, sizeof(uint32_t)))
			return -E2BIG;
	return tree_path(&model->tree, (const uint32_t *)(const void *)model->path.data, count, ret_node);
}

static int add_sample(void *ctx, const struct view_profile *profile,
		      const struct view_sample *sample)
{
	struct model *model = ctx;
	struct model_event *event;
	int err;

	err = find_group(model, &profile->process, sample, &model->group);
	if (!err)
		err = add_times(model, profile, sample, sample->stack);
	if (err)
		return err;
	event = model_event(model, model->event);
	rows_sum(&event->samples, sample->samples);
	rows_sum(&event->weight, sample->weight);
	return 0;
}

static int open_side(struct model *model, const struct selection *selection, enum model_side side)
{
	const struct reader_sink sink = { .ctx = model, .profile = add_profile, .frame = number_frame,
					  .stack = number_stack, .sample = add_sample,
					  .with_remarks = model->with_remarks };

	model->side = side;
	return reader_new(&model->texts, selection, model->is_exact, &sink, &model->reader);
}

int model_new(const struct model_options *options, struct model **ret_model)
{
	struct model *model = calloc(1, sizeof(*model));
	int err;

	if (!model)
		return -ENOMEM;
	texts_init(&model->texts);
	rows_init(&model->frames);
	rows_init(&model->groups);
	rows_init(&model->events);
	labels_init(&model->labels);
	buffer_init(&model->remarks.comments, POOL_REPORT);
	tree_init(&model->tree);
	buffer_init(&model->path, POOL_REPORT);
	timeline_init(&model->timeline, options->with_times);
	timeline_init(&model->before.timeline, options->with_times);
	model->with_lines = options->with_lines;
	model->is_exact = options->is_exact;
	model->with_remarks = options->with_remarks;
	model->is_short = options->is_short;
	err = open_side(model, options->selection, MODEL_AFTER);
	if (err) {
		model_free(model);
		return err;
	}
	*ret_model = model;
	return 0;
}

void model_finish(struct model *model)
{
	const bool is_before = model->side == MODEL_BEFORE;
	struct reader_totals *totals = is_before ? &model->before.totals : &model->totals;
	bool is_empty = true;

	*totals = *reader_totals(model->reader);
	if (model->with_remarks)
		model->remarks.losses |= totals->losses;
	*(is_before ? &model->before.span : &model->span) = reader_span(model->reader);
	for (uint32_t i = 0; i < model->events.count; i++)
		is_empty &= model_event(model, i)->side != model->side;
	if (is_empty)
		totals->start = 0;
	reader_free(steal_ptr(model->reader));
	timeline_sort(model_timeline(model, model->side), 0);
}

static void model_freep(struct model **model)
{
	model_free(*model);
}

int model_load(const char *path, const struct model_options *options, struct model **ret_model,
	       char *ret_error, size_t error_size)
{
	_cleanup_(model_freep) struct model *model = NULL;
	int err;

	err = model_new(options, &model);
	if (err)
		return fail_with(err, ret_error, error_size, "out of memory");
	err = recording_read(path, options->selection, model->reader, &model->is_cut, ret_error, error_size);
	if (err)
		return err;
	model_finish(model);
	tree_pack(&model->tree);
	*ret_model = steal_ptr(model);
	return 0;
}

/* The later recording is there; from here on the other one is added. */
static int begin_before(struct model *model, const struct selection *selection)
{
	model_finish(model);
	timeline_pack(&model->timeline);
	model->is_pair = true;
	return open_side(model, selection, MODEL_BEFORE);
}

/* Both sides are of one recording, which is read once for each. */
struct both {
	struct model *model;
	const struct selection *selection;
};

static int begin_again(void *ctx, struct reader **ret_reader)
{
	const struct both *both = ctx;
	int err = begin_before(both->model, both->selection);

	*ret_reader = both->model->reader;
	return err;
}

static int read_both(struct model *model, const char *path, const struct selection *after,
		     const struct selection *before, char *ret_error, size_t error_size)
{
	static const struct selection all;
	struct both both = { .model = model, .selection = before };
	struct recording_again again = { .begin = begin_again, .ctx = &both, .selection = before ?: &all };
	int err = recording_read_twice(path, after, model->reader, &again, &model->is_cut, ret_error, error_size);

	if (err)
		return err;
	if (again.copy_err)
		return fail_with(again.copy_err, ret_error, error_size,
				 "cannot copy %s to a temporary file in %s (%s): save the recording to a file",
				 recording_name(path), recording_copy_place(), strerror(-again.copy_err));
	if (again.err)
		return fail_with(again.err, ret_error, error_size, RECORDING_TOO_LARGE, recording_name(path));
	model->before.is_cut = again.is_cut;
	return 0;
}

static int read_pair(struct model *model, const char *before, const char *after,
		     const struct model_options *options, char *ret_error, size_t error_size)
{
	const struct selection *selection = options->before ?: options->selection;
	int err;

	if (!strcmp(before, after))
		return read_both(model, after, options->selection, selection, ret_error, error_size);
	err = recording_read(after, options->selection, model->reader, &model->is_cut, ret_error, error_size);
	if (err)
		return err;
	err = begin_before(model, selection);
	if (err)
		return fail_with(err, ret_error, error_size, "out of memory");
	return recording_read(before, selection, model->reader, &model->before.is_cut, ret_error, error_size);
}

int model_load_pair(const char *before, const char *after, const struct model_options *options,
		    struct model **ret_model, char *ret_error, size_t error_size)
{
	_cleanup_(model_freep) struct model *model = NULL;
	int err;

	err = model_new(options, &model);
	if (err)
		return fail_with(err, ret_error, error_size, "out of memory");
	err = read_pair(model, before, after, options, ret_error, error_size);
	if (err)
		return err;
	model_finish(model);
	timeline_pack(&model->before.timeline);
	tree_pack(&model->tree);
	*ret_model = steal_ptr(model);
	return 0;
}

void model_free(struct model *model)
{
	if (!model)
		return;
	reader_free(model->reader);
	texts_free(&model->texts);
	rows_free(&model->frames);
	rows_free(&model->groups);
	rows_free(&model->events);
	labels_free(&model->labels);
	buffer_free(&model->remarks.comments);
	tree_free(&model->tree);
	buffer_free(&model->path);
	timeline_free(&model->timeline);
	timeline_free(&model->before.timeline);
	free(model);
}

bool model_has_side(const struct model *model, enum model_side side)
{
	for (uint32_t i = 0; i < model->events.count; i++)
		if (model_event(model, i)->side == side)
			return true;
	return false;
}

bool model_is_before(const struct model_event *event, const struct model_event *other)
{
	return event->is_default == other->is_default ? event->samples > other->samples : event->is_default;
}

uint32_t model_main_event(const struct model *model)
{
	uint32_t best = 0;

	for (uint32_t i = 1; i < model->events.count; i++) {
		const struct model_event *event = model_event(model, i);
		const struct model_event *other = model_event(model, best);

		/* sides in their order */
		if (event->side == other->side ? model_is_before(event, other) : event->side < other->side)
			best = i;
	}
	return best;
}

int model_sum(struct model *model, uint32_t event)
{
	const struct timeline *timeline = model_timeline(model, model_event(model, event)->side);

	if (tree_clear(&model->tree))
		return -E2BIG;
	for (size_t i = 0; i < timeline_count(timeline); i++) {
		const struct timeline_entry *entry = timeline_at(timeline, i);

		if (model_group(model, entry->group)->event == event)
			tree_add(&model->tree, entry->node, entry->samples, entry->weight);
	}
	tree_add_up(&model->tree);
	return 0;
}

void model_slice(const struct model *model, uint32_t event, struct sliced *ret_sliced)
{
	const struct timeline *timeline = model_timeline(model, model_event(model, event)->side);

	*ret_sliced = (struct sliced){ .has_times = !model_event(model, event)->timeless };
	for (size_t i = 0; i < timeline_count(timeline); i++) {
		const struct timeline_entry *entry = timeline_at(timeline, i);
		const double weight = (double)entry->weight;

		if (model_group(model, entry->group)->event != event || !entry->samples)
			continue;
		ret_sliced->weight += weight;
		ret_sliced->squares += weight * weight / (double)entry->samples;
		ret_sliced->slices[timeline_slice(timeline, entry->time)] += weight;
	}
	for (unsigned int i = 0; i < SLICES; i++)
		ret_sliced->used += ret_sliced->slices[i] > 0;
}

int model_stack(const struct model *model, uint32_t node, struct buffer *frames, size_t *ret_count)
{
	frames->size = 0;
	for (; node != TREE_ROOT; node = tree_node(&model->tree, node)->parent)
		if (buffer_append(frames, &tree_node(&model->tree, node)->frame, sizeof(uint32_t)))
			return -E2BIG;
	*ret_count = frames->size / sizeof(uint32_t);
	return 0;
}
