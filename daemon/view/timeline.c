// SPDX-License-Identifier: Apache-2.0
#include "view/timeline.h"

#include "view/rows.h"

#define LIMIT_ENTRIES ((size_t)4 << 20)

void timeline_init(struct timeline *timeline, bool with_times)
{
	*timeline = (struct timeline){
		.width = with_times ? 1 : UINT64_MAX, .limit = LIMIT_ENTRIES, .first = UINT64_MAX,
	};
	buffer_init(&timeline->entries, POOL_REPORT);
}

void timeline_free(struct timeline *timeline)
{
	buffer_free(&timeline->entries);
}

static int compare(const struct timeline_entry *a, const struct timeline_entry *b)
{
	if (a->group != b->group)
		return a->group < b->group ? -1 : 1;
	if (a->time != b->time)
		return a->time < b->time ? -1 : 1;
	return (a->node > b->node) - (a->node < b->node);
}

static int order(const void *a, const void *b)
{
	return compare(a, b);
}

void timeline_sort(struct timeline *timeline, uint64_t width)
{
	size_t count = timeline_count(timeline), kept = 0;

	width = max_of(width, timeline->width);
	for (size_t i = 0; i < count; i++) {
		struct timeline_entry *entry = timeline_at(timeline, i);

		entry->time = width == UINT64_MAX ? 0 : entry->time - entry->time % width;
	}
	timeline->width = width;
	if (!count)
		return;
	qsort(timeline->entries.data, count, sizeof(struct timeline_entry), order);
	for (size_t i = 1; i < count; i++) {
		struct timeline_entry *last = timeline_at(timeline, kept);
		const struct timeline_entry *entry = timeline_at(timeline, i);

		if (compare(last, entry)) {
			*timeline_at(timeline, ++kept) = *entry;
			continue;
		}
		rows_sum(&last->samples, entry->samples);
		rows_sum(&last->weight, entry->weight);
	}
	timeline->entries.size = (kept + 1) * sizeof(struct timeline_entry);
}

static void make_room(struct timeline *timeline)
{
	uint64_t width = timeline->width, span = timeline->last - timeline->first;

	timeline_sort(timeline, width);
	while (timeline_count(timeline) > timeline->limit / 2 && width < span) {
		/* a small part of the whole is fine enough for what has this many samples */
		width = width < span / 16384 ? span / 16384 : width * 2;
		timeline_sort(timeline, width);
	}
	if (timeline_count(timeline) > timeline->limit / 2)
		timeline->limit *= 2;
}

int timeline_add(struct timeline *timeline, const struct timeline_entry *entry)
{
	timeline->first = min_of(timeline->first, entry->time);
	timeline->last = max_of(timeline->last, entry->time);
	if (timeline_count(timeline) >= timeline->limit)
		make_room(timeline);
	return buffer_append(&timeline->entries, entry, sizeof(*entry)) ? -E2BIG : 0;
}
