// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "cli/annotate.h"
#include "view/diff.h"
#include "view/report_slices.h"

/* The moments of a whole while they are cut into slices, and which part of it each hit belongs to. */
struct cut {
	const struct annotation *annotation;
	struct sliced function;		/* in slices of the time that it has samples of */
	uint64_t first, last;
	uint32_t *part_of;		/* of each hit: 0 of another function, 1 of no part, else of part n - 2 */
	double (*parts)[SLICES];	/* of each row that is tested */
	uint32_t count;
};

static const struct report_error not_known = { .error95 = -1 };

static void add_moment(struct sliced *sliced, unsigned int slice, const struct timeline_entry *entry)
{
	const double weight = (double)entry->weight;

	sliced->weight += weight;
	sliced->squares += weight * weight / (double)entry->samples;
	sliced->slices[slice] += weight;
}

static void count_used(struct sliced *sliced)
{
	for (unsigned int i = 0; i < SLICES; i++)
		sliced->used += sliced->slices[i] > 0;
}

static double expected_of(const struct sliced *sliced, double part)
{
	return sliced->weight > 0 ? sliced_size(sliced) * part / sliced->weight : 0;
}

/* @slices: NULL: what a row without slices has, too few samples for them or no memory. */
static struct report_error error_of(const struct sliced *sliced, double part, const double *slices)
{
	double phi = 1;

	if (!sliced_is_telling(sliced))
		return not_known;
	if (expected_of(sliced, part) >= DIFF_EXPECTED_MIN) {
		if (!slices)
			return not_known;
		phi = sliced_factor(sliced, slices);
	}
	return report_error_of(sliced, part, phi);
}

/*
 * The function's share of all samples of its event, in slices of all that was recorded. Both are of one timeline: of two
 * that are as coarse as their own limits make them one's bursts are in other slices than the other's. What matches as the
 * function does is of it: more than one is an error.
 */
static void measure_function(struct annotation *annotation)
{
	const struct hits *hits = &annotation->hits;
	const uint32_t event = annotation->chosen[0]->event;
	const uint32_t mine = hits_node(event, hits_match(hits, annotation->chosen[0]->name));
	const struct timeline *all = &hits->all;
	struct sliced sliced = { .has_times = !annotation->event->is_timeless };
	double part[SLICES] = { 0 };

	for (size_t i = 0; i < timeline_count(all); i++) {
		const struct timeline_entry *entry = timeline_at(all, i);
		const unsigned int slice = timeline_slice(all, entry->time);

		if (entry->node / HIT_MATCHES != event)
			continue;
		add_moment(&sliced, slice, entry);
		if (entry->node == mine)
			part[slice] += (double)entry->weight;
	}
	count_used(&sliced);
	annotation->error = error_of(&sliced, (double)annotation->weight, part);
}

static void slice_function(struct cut *cut)
{
	const struct timeline *times = &cut->annotation->hits.times;

	cut->first = UINT64_MAX;
	for (size_t i = 0; i < timeline_count(times); i++)
		if (cut->part_of[timeline_at(times, i)->node]) {
			cut->first = min_of(cut->first, timeline_at(times, i)->time);
			cut->last = max_of(cut->last, timeline_at(times, i)->time);
		}
	/* the end of what was rounded, which a time of a foreign file may be too large for */
	cut->last = cut->last > UINT64_MAX - (times->width - 1) ? UINT64_MAX : cut->last + (times->width - 1);
	cut->function = (struct sliced){ .has_times = !cut->annotation->event->is_timeless };
	for (size_t i = 0; i < timeline_count(times); i++) {
		const struct timeline_entry *entry = timeline_at(times, i);

		if (cut->part_of[entry->node])
			add_moment(&cut->function, slice_of(cut->first, cut->last, entry->time), entry);
	}
	count_used(&cut->function);
}

/* Rows of samples enough get slices, to which their hits belong. */
static void choose_rows(struct cut *cut)
{
	const struct annotation *annotation = cut->annotation;

	for (size_t i = 0; i < annotate_row_count(annotation); i++) {
		const struct annotate_row *row = annotate_row(annotation, i);

		if (expected_of(&cut->function, (double)row->weight) < DIFF_EXPECTED_MIN)
			continue;
		for (uint32_t k = row->first_hit; k; k = annotation->next_hit[k - 1])
			cut->part_of[annotation->chosen[k - 1] - hits_at(&annotation->hits, 0)] = 2 + cut->count;
		cut->count++;
	}
}

static void slice_rows(struct cut *cut)
{
	const struct timeline *times = &cut->annotation->hits.times;

	for (size_t i = 0; i < timeline_count(times); i++) {
		const struct timeline_entry *entry = timeline_at(times, i);
		const uint32_t part = cut->part_of[entry->node];

		if (part >= 2)
			cut->parts[part - 2][slice_of(cut->first, cut->last, entry->time)] += (double)entry->weight;
	}
}

static void measure_rows(struct annotation *annotation, const struct cut *cut)
{
	uint32_t next = 0;

	for (size_t i = 0; i < annotate_row_count(annotation); i++) {
		struct annotate_row *row = annotate_row(annotation, i);
		const double weight = (double)row->weight, *slices = NULL;

		if (cut->parts && expected_of(&cut->function, weight) >= DIFF_EXPECTED_MIN)
			slices = cut->parts[next++];
		if (row->samples)
			row->error = error_of(&cut->function, weight, slices);
	}
}

static void measure(struct annotation *annotation, struct cut *cut)
{
	size_t bytes;

	for (size_t i = 0; i < annotation->count; i++)
		cut->part_of[annotation->chosen[i] - hits_at(&annotation->hits, 0)] = 1;
	measure_function(annotation);
	slice_function(cut);
	choose_rows(cut);
	bytes = ((size_t)cut->count + 1) * sizeof(*cut->parts);
	if (!pool_charge(POOL_REPORT, bytes))
		return;
	cut->parts = calloc(1, bytes);
	if (cut->parts)
		slice_rows(cut);
	measure_rows(annotation, cut);
	free(cut->parts);
	pool_uncharge(POOL_REPORT, bytes);
}

void annotate_errors(struct annotation *annotation)
{
	struct hits *hits = &annotation->hits;
	const size_t bytes = ((size_t)hits->rows.count + 1) * sizeof(uint32_t);
	struct cut cut = { .annotation = annotation };

	annotation->error = not_known;
	for (size_t i = 0; i < annotate_row_count(annotation); i++)
		annotate_row(annotation, i)->error = not_known;
	if (!hits->with_times || !pool_charge(POOL_REPORT, bytes))
		return;
	timeline_sort(&hits->times, 0);
	timeline_sort(&hits->all, 0);
	cut.part_of = calloc(1, bytes);
	if (cut.part_of)
		measure(annotation, &cut);
	free(cut.part_of);
	pool_uncharge(POOL_REPORT, bytes);
}
