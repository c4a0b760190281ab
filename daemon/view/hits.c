// SPDX-License-Identifier: Apache-2.0
#include "view/hits.h"

#include <string.h>
#include <sys/stat.h>

#include "base/hash.h"
#include "view/recording.h"

enum {
	BUILD_ID_LEAST = 4,	/* digits that may stand for one */
	/*
	 * Moments of hits, and of all samples; beyond them times get coarser. Those of all stay fine enough for 40 slices, those
	 * of hits only up to some 3,000 addresses: a share is of parts and a whole of the same ones, which are as coarse.
	 */
	TIMES_LIMIT = 1 << 18,
	ALL_LIMIT = 1 << 16,
};

static bool is_wanted_function(const struct hits *hits, const char *name)
{
	const size_t length = strlen(hits->function);

	return !strncmp(name, hits->function, length) && (!name[length] || name[length] == '(');
}

static bool is_wanted_object(const struct hits *hits, const struct view_mapping *mapping)
{
	const char *slash = strrchr(mapping->file, '/'), *object = hits->object;

	return !object || !strcmp(mapping->file, object) || (slash && !strcmp(slash + 1, object)) ||
	       (strlen(object) >= BUILD_ID_LEAST &&
		(!strncmp(mapping->build_id, object, strlen(object)) ||
		 !strncmp(mapping->htlhash, object, strlen(object))));
}

static bool is_wanted(const struct hits *hits, const struct view_frame *frame)
{
	return is_wanted_function(hits, frame->name) && is_wanted_object(hits, frame->mapping);
}

enum hit_match hits_match(const struct hits *hits, const char *name)
{
	return strcmp(name, hits->function) != 0 ? HIT_BUT_PARAMETERS : HIT_EXACT;
}

static uint64_t mapping_hash(const struct view_mapping *mapping)
{
	return hash_words((uint64_t[]){ (uintptr_t)mapping->file, (uintptr_t)mapping->build_id,
					(uintptr_t)mapping->htlhash, mapping->start, mapping->limit,
					mapping->offset }, 6);
}

static uint64_t mapping_hash_of(const void *ctx, uint32_t position)
{
	return mapping_hash(((const struct view_mapping *const *)ctx)[position]);
}

/* A mapping that outlives its message, one for all that are equal. */
static const struct view_mapping *keep_mapping(struct hits *hits, const struct view_mapping *mapping)
{
	const uint64_t hash = mapping_hash(mapping);
	struct index_probe probe = index_first(&hits->mappings.index, hash);
	struct view_mapping *kept;
	uint32_t i;

	while ((i = index_next(&hits->mappings.index, &probe)) != INDEX_NONE) {
		kept = ((struct view_mapping **)(void *)hits->mappings.data.data)[i];
		if (kept->file == mapping->file && kept->build_id == mapping->build_id &&
		    kept->htlhash == mapping->htlhash && kept->start == mapping->start &&
		    kept->limit == mapping->limit && kept->offset == mapping->offset)
			return kept;
	}
	kept = arena_alloc(&hits->texts.arena, sizeof(*kept));
	if (!kept)
		return NULL;
	*kept = *mapping;
	return rows_add(&hits->mappings, hash, mapping_hash_of, &kept, sizeof(kept), &i) ? NULL : kept;
}

static uint64_t hit_hash(const struct hit *hit)
{
	return hash_words((uint64_t[]){ (uintptr_t)hit->name, (uintptr_t)hit->mapping, hit->event,
					hit->address, (uintptr_t)hit->source, hit->line }, 6);
}

static uint64_t hit_hash_of(const void *ctx, uint32_t position)
{
	return hit_hash((const struct hit *)ctx + position);
}

static int find_hit(struct hits *hits, const struct hit *wanted, struct hit **ret_hit)
{
	const uint64_t hash = hit_hash(wanted);
	struct index_probe probe = index_first(&hits->rows.index, hash);
	const struct hit *hit;
	uint32_t i;
	int err = 0;

	while ((i = index_next(&hits->rows.index, &probe)) != INDEX_NONE) {
		hit = hits_at(hits, i);
		if (hit->name == wanted->name && hit->mapping == wanted->mapping &&
		    hit->event == wanted->event && hit->address == wanted->address &&
		    hit->source == wanted->source && hit->line == wanted->line)
			break;
	}
	if (i == INDEX_NONE)
		err = rows_add(&hits->rows, hash, hit_hash_of, wanted, sizeof(*wanted), &i);
	if (!err)
		*ret_hit = hits_at(hits, i);
	return err;
}

static uint64_t event_hash(const struct hit_event *event)
{
	return hash_words((uint64_t[]){ (uintptr_t)event->source, (uintptr_t)event->event,
					(uintptr_t)event->unit }, 3);
}

static uint64_t event_hash_of(const void *ctx, uint32_t position)
{
	return event_hash((const struct hit_event *)ctx + position);
}

static int add_profile(void *ctx, const struct view_profile *profile)
{
	const struct hit_event row = { .source = profile->source, .event = profile->event,
				       .unit = profile->unit };
	const uint64_t hash = event_hash(&row);
	struct hits *hits = ctx;
	struct index_probe probe = index_first(&hits->events.index, hash);
	const struct hit_event *event;

	while ((hits->event = index_next(&hits->events.index, &probe)) != INDEX_NONE) {
		event = hits_event(hits, hits->event);
		if (event->source == row.source && event->event == row.event &&
		    event->unit == row.unit)
			return 0;
	}
	return rows_add(&hits->events, hash, event_hash_of, &row, sizeof(row), &hits->event);
}

/* Without memory for moments the sums go on. */
static void add_times(struct hits *hits, struct timeline *timeline, uint32_t node,
		      const struct view_profile *profile, const struct view_sample *sample)
{
	struct timeline_entry entry = { .node = node, .time = profile->start, .samples = sample->samples,
					.weight = sample->weight };
	int err = 0;

	if (!hits->with_times)
		return;
	if (!sample->time_count)
		err = timeline_add(timeline, &entry);
	for (size_t i = 0; i < sample->time_count && !err; i++) {
		entry.time = sample->times[i];
		entry.samples = 1;
		entry.weight = view_sample_weight(sample, i);
		err = timeline_add(timeline, &entry);
	}
	if (!err)
		return;
	hits->with_times = false;
	timeline_free(&hits->times);
	timeline_free(&hits->all);
}

static int add_hit(struct hits *hits, const struct view_frame *frame, bool is_innermost,
		   const struct view_profile *profile, const struct view_sample *sample)
{
	struct hit row = {
		.name = frame->name, .mapping = keep_mapping(hits, frame->mapping),
		.event = hits->event, .kind = frame->kind, .address = frame->address,
		.source = frame->source, .line = frame->line, .start_line = frame->start_line,
	}, *hit;
	int err = row.mapping ? find_hit(hits, &row, &hit) : -E2BIG;

	if (err)
		return err;
	rows_sum(&hit->samples, sample->samples);
	rows_sum(&hit->weight, sample->weight);
	if (!is_innermost)
		rows_sum(&hit->inlined, sample->samples);
	rows_sum(&hits_event(hits, hits->event)->function_samples, sample->samples);
	add_times(hits, &hits->times, (uint32_t)(hit - hits_at(hits, 0)), profile, sample);
	return 0;
}

static int add_sample(void *ctx, const struct view_profile *profile,
		      const struct view_sample *sample)
{
	struct hits *hits = ctx;
	struct hit_event *event = hits_event(hits, hits->event);
	const struct view_frame *hit = NULL;
	enum hit_match match = HIT_NONE;
	size_t i = 0;

	rows_sum(&event->samples, sample->samples);
	rows_sum(&event->weight, sample->weight);
	event->is_timeless |= !sample->time_count;
	for (bool is_top = true; is_top && i < sample->frame_count && !hit; i++) {
		if (is_wanted(hits, sample->frames[i]))
			hit = sample->frames[i];
		is_top = sample->frames[i]->is_inlined;
	}
	if (hit)
		match = hits_match(hits, hit->name);
	add_times(hits, &hits->all, hits_node(hits->event, match), profile, sample);
	if (hit)
		return add_hit(hits, hit, hit == sample->frames[0], profile, sample);
	for (; i < sample->frame_count; i++) {
		if (is_wanted(hits, sample->frames[i])) {
			rows_sum(&hits->called, sample->samples);
			break;
		}
	}
	return 0;
}

int hits_new(struct hits *hits, const char *function, const char *object,
	     const struct selection *selection)
{
	const struct reader_sink sink = { .ctx = hits, .profile = add_profile, .sample = add_sample };

	*hits = (struct hits){ .function = function, .object = object };
	texts_init(&hits->texts);
	rows_init(&hits->mappings);
	rows_init(&hits->events);
	rows_init(&hits->rows);
	timeline_init(&hits->times, true);
	timeline_init(&hits->all, true);
	hits->times.limit = TIMES_LIMIT;
	hits->all.limit = ALL_LIMIT;
	return reader_new(&hits->texts, selection, false, &sink, &hits->reader);
}

static int load(struct hits *hits, const char *path, const char *function, const char *object,
		const struct selection *selection, bool with_times, char *ret_error, size_t error_size)
{
	int err = hits_new(hits, function, object, selection);

	if (err) {
		snprintf(ret_error, error_size, "out of memory");
		return err;
	}
	hits->with_times = with_times;
	return recording_read(path, selection, hits->reader, &hits->is_cut, ret_error, error_size);
}

static bool can_be_read_again(const char *path)
{
	struct stat st;

	return strcmp(path, "-") != 0 && !stat(path, &st) && (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode));
}

int hits_load(struct hits *hits, const char *path, const char *function, const char *object,
	      const struct selection *selection, char *ret_error, size_t error_size)
{
	int err = load(hits, path, function, object, selection, true, ret_error, error_size);

	/* moments have the memory that hits need */
	if (err == -E2BIG && hits->with_times && can_be_read_again(path)) {
		hits_free(hits);
		err = load(hits, path, function, object, selection, false, ret_error, error_size);
	}
	return err;
}

void hits_free(struct hits *hits)
{
	reader_free(hits->reader);
	texts_free(&hits->texts);
	rows_free(&hits->mappings);
	rows_free(&hits->events);
	rows_free(&hits->rows);
	timeline_free(&hits->times);
	timeline_free(&hits->all);
}
