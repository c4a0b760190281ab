// SPDX-License-Identifier: Apache-2.0
#include "view/overview.h"

#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/json.h"
#include "view/recording.h"

enum { PARTS_SHOWN = 100 };

static struct overview_part *part_at(const struct overview *overview, uint32_t i)
{
	return (struct overview_part *)(void *)overview->parts.data.data + i;
}

static uint64_t part_hash(const struct overview_part *part)
{
	return hash_words((const uint64_t[]){ part->kind, (uintptr_t)part->name }, 2);
}

static uint64_t part_hash_of(const void *ctx, uint32_t position)
{
	return part_hash((const struct overview_part *)ctx + position);
}

static int add_part(struct overview *overview, enum overview_kind kind, const char *name,
		    uint64_t samples)
{
	struct overview_part key = { .kind = kind, .name = name, .samples = samples };
	uint64_t hash = part_hash(&key);
	struct index_probe probe = index_first(&overview->parts.index, hash);
	uint32_t i;

	if (!name[0])
		return 0;
	while ((i = index_next(&overview->parts.index, &probe)) != INDEX_NONE)
		if (part_at(overview, i)->kind == kind && part_at(overview, i)->name == name) {
			rows_sum(&part_at(overview, i)->samples, samples);
			return 0;
		}
	return rows_add(&overview->parts, hash, part_hash_of, &key, sizeof(key), &i);
}

/* NULL: there are as many as there may be. */
static struct overview_event *event_of(struct overview *overview, const char *source,
				       const char *unit)
{
	struct overview_event *event;

	for (uint32_t i = 0; i < overview->event_count; i++)
		if (overview->events[i]->source == source)
			return overview->events[i];
	if (overview->event_count == OVERVIEW_EVENTS)
		return NULL;
	event = calloc(1, sizeof(*event));
	if (!event)
		return NULL;
	event->source = source;
	event->unit = unit;
	overview->events[overview->event_count++] = event;
	return event;
}

static void widen(struct overview *overview)
{
	uint64_t first = overview->first / 2;

	for (uint32_t k = 0; k < overview->event_count; k++) {
		uint64_t *counts = overview->events[k]->counts, merged[OVERVIEW_BUCKETS] = { 0 };

		for (uint64_t i = 0; i <= overview->last - overview->first; i++)
			rows_sum(&merged[(overview->first + i) / 2 - first], counts[i]);
		memcpy(counts, merged, sizeof(merged));
	}
	overview->width *= 2;
	overview->first = first;
	overview->last /= 2;
}

/* Makes room for earlier buckets. */
static void shift(struct overview *overview, uint64_t by)
{
	for (uint32_t k = 0; k < overview->event_count; k++) {
		uint64_t *counts = overview->events[k]->counts;

		memmove(counts + by, counts, (OVERVIEW_BUCKETS - by) * sizeof(*counts));
		memset(counts, 0, by * sizeof(*counts));
	}
	overview->first -= by;
}

static void count(struct overview *overview, struct overview_event *event, uint64_t time,
		  uint64_t samples)
{
	if (!overview->has_samples)
		overview->first = overview->last = time / overview->width;
	overview->has_samples = true;
	while (max_of(overview->last, time / overview->width) -
	       min_of(overview->first, time / overview->width) >= OVERVIEW_BUCKETS)
		widen(overview);
	if (time / overview->width < overview->first)
		shift(overview, overview->first - time / overview->width);
	overview->last = max_of(overview->last, time / overview->width);
	rows_sum(&event->counts[time / overview->width - overview->first], samples);
}

static int take_profile(void *ctx _unused_, const struct view_profile *profile _unused_)
{
	return 0;
}

static int take_sample(void *ctx, const struct view_profile *profile,
		       const struct view_sample *sample)
{
	const struct view_process *process = &profile->process;
	struct overview *overview = ctx;
	struct overview_event *event = event_of(overview, profile->source, profile->unit);

	if (event) {
		rows_sum(&event->samples, sample->samples);
		for (size_t i = 0; i < sample->time_count; i++)
			count(overview, event, sample->times[i], 1);
		if (!sample->time_count)
			count(overview, event, profile->start, sample->samples);
	} else {
		rows_sum(&overview->other, sample->samples);
	}
	if (add_part(overview, OVERVIEW_PROCESS, process->name, sample->samples) ||
	    add_part(overview, OVERVIEW_SERVICE, process->service_name, sample->samples) ||
	    add_part(overview, OVERVIEW_CONTAINER, process->container_id, sample->samples) ||
	    add_part(overview, OVERVIEW_CGROUP, process->cgroup, sample->samples))
		return -E2BIG;
	return 0;
}

int overview_load(const char *path, const struct selection *selection, struct overview *overview,
		  char *ret_error, size_t error_size)
{
	const struct reader_sink sink = {
		.ctx = overview, .profile = take_profile, .sample = take_sample, .without_stacks = true,
	};
	struct reader *reader;
	int err;

	*overview = (struct overview){ .width = NSEC_PER_MSEC };
	texts_init(&overview->texts);
	rows_init(&overview->parts);
	err = reader_new(&overview->texts, selection, false, &sink, &reader);
	if (err) {
		snprintf(ret_error, error_size, "out of memory");
		return err;
	}
	err = recording_read(path, selection, reader, &overview->is_cut, ret_error, error_size);
	overview->totals = *reader_totals(reader);
	reader_free(reader);
	return err;
}

void overview_done(struct overview *overview)
{
	for (uint32_t i = 0; i < overview->event_count; i++)
		free(overview->events[i]);
	rows_free(&overview->parts);
	texts_free(&overview->texts);
}

static int by_samples(const void *a, const void *b)
{
	const struct overview_part *left = *(const struct overview_part *const *)a;
	const struct overview_part *right = *(const struct overview_part *const *)b;

	if (left->samples != right->samples)
		return left->samples < right->samples ? 1 : -1;
	return strcmp(left->name, right->name);
}

static void put_parts(const struct overview *overview, enum overview_kind kind, const char *name,
		      const struct overview_part **order, struct json *json)
{
	size_t found = 0;

	for (uint32_t i = 0; i < overview->parts.count; i++)
		if (part_at(overview, i)->kind == kind)
			order[found++] = part_at(overview, i);
	qsort(order, found, sizeof(struct overview_part *), by_samples);
	json_array(json, name);
	for (size_t i = 0; i < min_of(found, (size_t)PARTS_SHOWN); i++) {
		json_object(json, NULL);
		json_string(json, "name", order[i]->name);
		json_u64(json, "samples", order[i]->samples);
		json_end(json);
	}
	json_end(json);
}

static void put_event(const struct overview *overview, const struct overview_event *event,
		      struct json *json)
{
	json_object(json, NULL);
	json_string(json, "source", event->source);
	json_string(json, "unit", event->unit);
	json_u64(json, "samples", event->samples);
	json_array(json, "counts");
	for (uint64_t i = 0; i <= overview->last - overview->first; i++)
		json_u64(json, NULL, event->counts[i]);
	json_end(json);
	json_end(json);
}

int overview_json(struct overview *overview, const char *name, FILE *file)
{
	static const char *const kinds[OVERVIEW_KINDS] = {
		[OVERVIEW_PROCESS] = "processes", [OVERVIEW_SERVICE] = "services",
		[OVERVIEW_CONTAINER] = "containers", [OVERVIEW_CGROUP] = "cgroups",
	};
	_cleanup_free_ const struct overview_part **order =
		calloc((size_t)overview->parts.count + 1, sizeof(struct overview_part *));
	struct json json;

	if (!order)
		return -E2BIG;
	json_init(&json, file);
	json_object(&json, NULL);
	json_string(&json, "name", name);
	json_bool(&json, "cut", overview->is_cut);
	json_u64(&json, "start_unix_nano", overview->totals.start);
	json_u64(&json, "end_unix_nano", overview->totals.end);
	json_u64(&json, "origin_unix_nano", overview->first * overview->width);
	json_u64(&json, "bucket_nano", overview->width);
	json_u64(&json, "samples_of_other_events", overview->other);
	json_array(&json, "events");
	for (uint32_t i = 0; i < overview->event_count; i++)
		put_event(overview, overview->events[i], &json);
	json_end(&json);
	for (unsigned int kind = 0; kind < OVERVIEW_KINDS; kind++)
		put_parts(overview, kind, kinds[kind], order, &json);
	json_end(&json);
	return 0;
}
