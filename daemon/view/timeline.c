// SPDX-License-Identifier: Apache-2.0
#include "view/timeline.h"

#include <string.h>

#include "view/rows.h"
#include "view/significance.h"

enum {
	FEW = 16,		/* entries that are sorted by insertion */
	ROUNDED_MIN = 8,	/* rounded times in a share of a width */
	DIVIDED_MAX = 4,	/* entries for one of the whole width, beyond DIVIDED_FREE of them */
	DIVIDED_FREE = 1 << 16,
};

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

/* @tmp: room for half of them. What is in order already is not moved, as most is when times were made coarser. */
static void merge_sort(struct timeline_entry *entries, size_t count, struct timeline_entry *tmp)
{
	const size_t half = count / 2;
	size_t left = 0, right = half, to = 0;

	if (count <= FEW) {
		for (size_t i = 1; i < count; i++) {
			const struct timeline_entry entry = entries[i];

			for (to = i; to && compare(&entries[to - 1], &entry) > 0; to--)
				entries[to] = entries[to - 1];
			entries[to] = entry;
		}
		return;
	}
	merge_sort(entries, half, tmp);
	merge_sort(entries + half, count - half, tmp);
	if (compare(&entries[half - 1], &entries[half]) <= 0)
		return;
	memcpy(tmp, entries, half * sizeof(*tmp));
	while (left < half && right < count)
		entries[to++] = compare(&tmp[left], &entries[right]) <= 0 ? tmp[left++] : entries[right++];
	memcpy(entries + to, tmp + left, (half - left) * sizeof(*tmp));
}

static void sort(struct timeline_entry *entries, size_t count)
{
	_cleanup_free_ struct timeline_entry *tmp = malloc((count / 2 + 1) * sizeof(*tmp));

	if (tmp)
		merge_sort(entries, count, tmp);
	else
		qsort(entries, count, sizeof(*entries), order);
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
	sort(timeline_at(timeline, 0), count);
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

/* How many there would be of times of @width; they are sorted. 0: no memory. */
static size_t count_coarser(const struct timeline *timeline, uint64_t width)
{
	_cleanup_free_ uint32_t *seen = NULL;
	uint32_t nodes = 0, run = 0;
	size_t count = 0, bytes;

	for (size_t i = 0; i < timeline_count(timeline); i++)
		nodes = max_of(nodes, timeline_at(timeline, i)->node);
	bytes = ((size_t)nodes + 1) * sizeof(*seen);
	if (!pool_charge(POOL_REPORT, bytes))
		return 0;
	seen = calloc(1, bytes);
	for (size_t i = 0; i < timeline_count(timeline) && seen; i++) {
		const struct timeline_entry *entry = timeline_at(timeline, i);
		const struct timeline_entry *last = i ? entry - 1 : NULL;

		run += !last || last->group != entry->group || last->time / width != entry->time / width;
		count += seen[entry->node] != run;
		seen[entry->node] = run;
	}
	pool_uncharge(POOL_REPORT, bytes);
	return count;
}

uint32_t timeline_divide(struct timeline *timeline, uint64_t width, uint64_t least, size_t most)
{
	static const uint32_t shares[] = { 500, 100, 20, 5 };
	size_t coarser = 0;

	/* of a few rounded times each some shares would have one more than others: stripes where load is even */
	if (timeline->width > 1)
		least = max_of(least, ROUNDED_MIN * timeline->width);
	for (size_t i = 0; i < ARRAY_SIZE(shares); i++) {
		if (width / shares[i] < least)
			continue;
		timeline_sort(timeline, width / shares[i]);
		if (!coarser) {
			coarser = count_coarser(timeline, width);
			most = min_of(most, DIVIDED_FREE > DIVIDED_MAX * coarser ? DIVIDED_FREE : DIVIDED_MAX * coarser);
		}
		if (timeline_count(timeline) <= most)
			return shares[i];
	}
	timeline_sort(timeline, width);
	return 1;
}

/* Half of the limit, by times that are coarser, but not above @most. */
static void coarsen(struct timeline *timeline, uint64_t most)
{
	/* a small part of the whole is fine enough for what has this many samples */
	timeline_sort(timeline, max_of(timeline->width, (timeline->last - timeline->first) / 16384));
	while (timeline_count(timeline) > timeline->limit / 2 && timeline->width < most)
		timeline_sort(timeline, timeline->width > UINT64_MAX / 2 ? UINT64_MAX : timeline->width * 2);
}

void timeline_pack(struct timeline *timeline)
{
	if (timeline_count(timeline) > timeline->limit / 2)
		coarsen(timeline, (timeline->last - timeline->first) / 512);
	buffer_fit(&timeline->entries, 0);
}

unsigned int timeline_slice(const struct timeline *timeline, uint64_t time)
{
	return slice_of(timeline->first - timeline->first % timeline->width, timeline->last, time);
}

static void make_room(struct timeline *timeline)
{
	coarsen(timeline, timeline->last - timeline->first);
	if (timeline_count(timeline) > timeline->limit / 2)
		timeline->limit *= 2;
}

int timeline_add(struct timeline *timeline, const struct timeline_entry *entry)
{
	timeline->first = min_of(timeline->first, entry->time);
	timeline->last = max_of(timeline->last, entry->time);
	if (timeline_count(timeline) >= timeline->limit)
		make_room(timeline);
	/* by half of it each time it would grow beyond what it may have; what does not fit fails below */
	if (timeline_count(timeline) == timeline->limit / 2 &&
	    timeline->entries.capacity < timeline->limit * sizeof(*entry))
		buffer_fit(&timeline->entries, timeline->limit * sizeof(*entry));
	return buffer_append(&timeline->entries, entry, sizeof(*entry)) ? -E2BIG : 0;
}
