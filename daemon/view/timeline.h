/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which stack was seen when, and in which group. Memory is bounded: what is more than fits is
 * rounded to coarser times, until equal entries can be one.
 */
#ifndef STACKTAP_VIEW_TIMELINE_H
#define STACKTAP_VIEW_TIMELINE_H

#include "base/buffer.h"

struct timeline_entry {
	uint32_t node, group;	/* whatever their owner numbers */
	uint64_t time;		/* Unix ns, a multiple of the width */
	uint64_t samples, weight;
};

struct timeline {
	struct buffer entries;
	uint64_t width;		/* ns that times are rounded down to; UINT64_MAX: all are 0 */
	size_t limit;		/* of entries, where they are made fewer */
	uint64_t first, last;	/* of all times as they were */
};

void timeline_init(struct timeline *timeline, bool with_times);
void timeline_free(struct timeline *timeline);
int timeline_add(struct timeline *timeline, const struct timeline_entry *entry);	/* -E2BIG */
/* When all is there: no more than half of the limit, unless times became too coarse to tell slices apart by. */
void timeline_pack(struct timeline *timeline);
/* By group, time and node, equal ones added up; times of @width at least. */
void timeline_sort(struct timeline *timeline, uint64_t width);
/*
 * The same, of a share of @width that is @least or more and of which there are no more than @most entries, and no more than
 * some times those of @width, else of @width: how many of these it has.
 */
uint32_t timeline_divide(struct timeline *timeline, uint64_t width, uint64_t least, size_t most);

/* The slice of all of it that a moment of its entries is in. */
unsigned int timeline_slice(const struct timeline *timeline, uint64_t time);

static inline size_t timeline_count(const struct timeline *timeline)
{
	return timeline->entries.size / sizeof(struct timeline_entry);
}

static inline struct timeline_entry *timeline_at(const struct timeline *timeline, size_t i)
{
	return (struct timeline_entry *)(void *)timeline->entries.data + i;
}

#endif /* STACKTAP_VIEW_TIMELINE_H */
