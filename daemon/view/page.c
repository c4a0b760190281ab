// SPDX-License-Identifier: Apache-2.0
#include "view/page.h"

#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "view/escape.h"
#include "view/page_files.h"

#include <stacktap/version.h>

#define CELLS_MAX 4000u		/* of time, so that each has a point on a screen */
/* Of these there may be more for times that are finer than cells: a page has some ten bytes of each. */
#define ENTRIES_MAX ((size_t)1 << 20)
#define BUCKET_MIN NSEC_PER_MSEC

struct page {
	struct model *model;
	const struct diff *diff;	/* NULL: one recording */
	const char *title;
	uint32_t *strings;	/* by a text's position: its number on the page + 1, 0: not on it */
	uint32_t string_count;
	double *squares;	/* by event: of the weights of its entries, see spread_of() */
	uint64_t origin;	/* bucket of the first sample */
	uint32_t cell;		/* buckets of a cell, while all of the time is shown */
};

/* Of a cell of all: steps that read well on an axis. */
static uint64_t cell_width(const struct timeline *timeline)
{
	static const uint64_t steps[] = { 1, 2, 5, 10, 20, 50, 100, 200, 500 };
	uint64_t span = timeline->last - timeline->first, width;

	for (uint64_t unit = 1000000; unit < 1000000000; unit *= 1000)
		for (size_t i = 0; i < ARRAY_SIZE(steps); i++)
			if (span / (steps[i] * unit) < CELLS_MAX)
				return steps[i] * unit;
	for (width = 1000000000; span / width >= CELLS_MAX; width *= 2)
		;
	return width;
}

static void put_number(FILE *file, uint64_t number, bool is_first)
{
	fprintf(file, is_first ? "%" PRIu64 : ",%" PRIu64, number);
}

static void put_string_number(struct page *page, FILE *file, const char *text, bool is_first)
{
	uint32_t *number = &page->strings[texts_position(&page->model->texts, text)];

	put_number(file, *number - 1, is_first);
}

static void use_string(struct page *page, const char *text)
{
	uint32_t *number = &page->strings[texts_position(&page->model->texts, text)];

	if (!*number)
		*number = ++page->string_count;
}

/* Numbers in the order of texts, so that the page's list is one pass over them. */
static void number_strings(struct page *page)
{
	const struct model *model = page->model;

	for (uint32_t i = 0; i < model->frames.count; i++) {
		use_string(page, model_frame(model, i)->name);
		use_string(page, model_frame(model, i)->file);
		use_string(page, model_frame(model, i)->source);
	}
	page->string_count = 0;
	for (uint32_t i = 0; i < model->texts.rows.count; i++)
		if (page->strings[i])
			page->strings[i] = ++page->string_count;
}

static void put_field(FILE *file, const char *name, const char *text)
{
	fprintf(file, "\"%s\":", name);
	escape_json(file, text);
}

/*
 * By how much the squares of an event's weights are more than those of its entries on the page, of which each is taken
 * for samples of equal weight: one that stands for several has lost how far these differ.
 */
static double spread_of(const struct page *page, uint32_t event)
{
	return page->squares[event] > 0 ? model_event(page->model, event)->squares / page->squares[event] : 1;
}

/* Of all events at once: there may be as many of them as entries. */
static void sum_squares(struct page *page, enum model_side side)
{
	const struct timeline *timeline = model_timeline(page->model, side);

	for (size_t i = 0; i < timeline_count(timeline); i++) {
		const struct timeline_entry *entry = timeline_at(timeline, i);
		const double weight = (double)entry->weight;

		if (entry->samples)
			page->squares[model_group(page->model, entry->group)->event] += weight * weight / (double)entry->samples;
	}
}

static void put_events(const struct page *page, FILE *file)
{
	const struct model *model = page->model;

	fputs("\"events\":[", file);
	for (uint32_t i = 0; i < model->events.count; i++) {
		const struct model_event *event = model_event(model, i);

		fputs(i ? ",\n{" : "{", file);
		put_field(file, "source", event->source);
		fputc(',', file);
		put_field(file, "event", event->event);
		fputc(',', file);
		put_field(file, "unit", event->unit);
		fprintf(file, ",\"period\":%" PRIu64 ",\"samples\":%" PRIu64 ",\"weight\":%" PRIu64,
			event->period, event->samples, event->weight);
		fprintf(file, ",\"spread\":%.9g,\"timeless\":%s", spread_of(page, i),
			event->timeless ? "true" : "false");
		if (event->has_quality)
			fprintf(file, ",\"complete\":%" PRIu64 ",\"named\":%" PRIu64 ",\"lost\":%"
				PRIu64, event->complete, event->named, event->lost);
		fputc('}', file);
	}
	fputs("],\n", file);
}

static void put_frames(struct page *page, FILE *file)
{
	const struct model *model = page->model;

	fputs("\"strings\":[", file);
	for (uint32_t i = 0; i < model->texts.rows.count; i++) {
		if (!page->strings[i])
			continue;
		if (page->strings[i] > 1)
			fputs(",\n", file);
		escape_json(file, texts_at(&model->texts, i));
	}
	fputs("],\n\"frames\":{\"name\":[", file);
	for (uint32_t i = 0; i < model->frames.count; i++)
		put_string_number(page, file, model_frame(model, i)->name, !i);
	fputs("],\n\"file\":[", file);
	for (uint32_t i = 0; i < model->frames.count; i++)
		put_string_number(page, file, model_frame(model, i)->file, !i);
	fputs("],\n\"source\":[", file);
	for (uint32_t i = 0; i < model->frames.count; i++)
		put_string_number(page, file, model_frame(model, i)->source, !i);
	fputs("],\n\"flags\":[", file);
	for (uint32_t i = 0; i < model->frames.count; i++) {
		const struct model_frame *frame = model_frame(model, i);

		put_number(file, (uint64_t)frame->kind | (uint64_t)frame->is_named << 2 |
			   (uint64_t)frame->is_inlined << 3, !i);
	}
	fputs("]},\n", file);
}

/* Parents as distances: short, and none of them can point forward. */
static void put_nodes(const struct model *model, FILE *file)
{
	uint32_t count = tree_count(&model->tree);

	fputs("\"nodes\":{\"parent\":[", file);
	for (uint32_t i = 1; i < count; i++)
		put_number(file, i - tree_node(&model->tree, i)->parent, i == 1);
	fputs("],\n\"frame\":[", file);
	for (uint32_t i = 1; i < count; i++)
		put_number(file, tree_node(&model->tree, i)->frame, i == 1);
	fputs("]},\n", file);
}

/* Ids of two recordings are no names that they share. */
static void put_groups(const struct model *model, FILE *file)
{
	fputs("\"groups\":[", file);
	for (uint32_t i = 0; i < model->groups.count; i++) {
		const struct model_group *group = model_group(model, i);

		fprintf(file, "%s{\"event\":%u,", i ? ",\n" : "", group->event);
		if (model->is_pair)
			fputs("\"pid\":null,\"tid\":null,", file);
		else
			fprintf(file, "\"pid\":%u,\"tid\":%u,", group->process.pid, group->tid);
		put_field(file, "process", group->process.name);
		fputc(',', file);
		put_field(file, "thread", group->thread);
		fputc(',', file);
		put_field(file, "container", group->process.container_id);
		fputc(',', file);
		put_field(file, "service", group->process.service_name);
		fputc(',', file);
		put_field(file, "cgroup", group->process.cgroup);
		fputc('}', file);
	}
	fputs("],\n", file);
}

static size_t entry_count(const struct page *page)
{
	return timeline_count(&page->model->timeline) +
	       timeline_count(&page->model->before.timeline);
}

/* Of both recordings, the later one first; they have no groups in common. */
static const struct timeline_entry *entry_at(const struct page *page, size_t i)
{
	size_t count = timeline_count(&page->model->timeline);

	return i < count ? timeline_at(&page->model->timeline, i) :
			   timeline_at(&page->model->before.timeline, i - count);
}

/* Columns of what was seen: by group, then by time, then by node; times and nodes as distances. */
static void put_entries(const struct page *page, FILE *file)
{
	const struct timeline *timeline = &page->model->timeline;
	size_t count = entry_count(page), run = 0;
	bool has_weights = false;

	fputs("\"entries\":{\"groups\":[", file);
	for (size_t i = 0; i < count; i++) {
		const struct timeline_entry *entry = entry_at(page, i);
		const struct model_group *group = model_group(page->model, entry->group);

		has_weights |= entry->weight !=
			entry->samples * model_event(page->model, group->event)->period;
		run++;
		if (i + 1 < count && entry_at(page, i + 1)->group == entry->group)
			continue;
		fprintf(file, i + 1 == run ? "%u,%zu" : ",%u,%zu", entry->group, run);
		run = 0;
	}
	fputs("],\n\"bucket\":[", file);
	for (size_t i = 0; i < count; i++) {
		const struct timeline_entry *entry = entry_at(page, i);
		const struct timeline_entry *last = i ? entry_at(page, i - 1) : NULL;
		uint64_t before = last && last->group == entry->group ?
			last->time / timeline->width : page->origin;

		put_number(file, entry->time / timeline->width - before, !i);
	}
	fputs("],\n\"node\":[", file);
	for (size_t i = 0; i < count; i++) {
		const struct timeline_entry *entry = entry_at(page, i);
		const struct timeline_entry *last = i ? entry_at(page, i - 1) : NULL;
		bool is_next = last && last->group == entry->group && last->time == entry->time;

		put_number(file, is_next ? entry->node - last->node : entry->node, !i);
	}
	fputs("],\n\"samples\":[", file);
	for (size_t i = 0; i < count; i++)
		put_number(file, entry_at(page, i)->samples, !i);
	fputs("],\n\"weight\":", file);
	if (has_weights) {
		for (size_t i = 0; i < count; i++) {
			fputc(i ? ',' : '[', file);
			put_number(file, entry_at(page, i)->weight, true);
		}
		fputs("]}", file);
	} else {
		fputs("null}", file);
	}
}

static const struct diff_share *share_of(const struct diff *diff, struct model *model, uint32_t frame, bool is_self)
{
	static const struct diff_share unknown = { .verdict = DIFF_FEW };
	const struct diff_row *row = diff_row_of(diff, model, frame);

	return !row ? &unknown : is_self ? &row->self : &row->total;
}

/* Of the function of each frame. */
static void put_tested(const struct diff *diff, struct model *model, bool is_self, FILE *file)
{
	fputs("{\"verdict\":[", file);
	for (uint32_t i = 0; i < model->frames.count; i++)
		put_number(file, share_of(diff, model, i, is_self)->verdict, !i);
	fputs("],\n\"error\":[", file);
	for (uint32_t i = 0; i < model->frames.count; i++) {
		const struct diff_share *share = share_of(diff, model, i, is_self);

		/* what was not tested has none */
		fprintf(file, "%s%.6g", i ? "," : "", share->verdict == DIFF_FEW ? 0 : share->test.error);
	}
	fputs("]}", file);
}

/* Which events are compared, and of nodes and functions that were tested the error of the change and what was found. */
static void put_diff(const struct diff *diff, struct model *model, FILE *file)
{
	char untested[128] = "";

	diff_say_paths(diff, untested, sizeof(untested));
	fprintf(file, "\"diff\":{\"before\":%u,\"after\":%u,", diff->events[DIFF_BEFORE],
		diff->events[DIFF_AFTER]);
	put_field(file, "untested", untested);
	fputs(",\"node\":[", file);
	for (size_t i = 0; i < diff_path_count(diff); i++)
		put_number(file, diff_path(diff, i)->node, !i);
	fputs("],\n\"verdict\":[", file);
	for (size_t i = 0; i < diff_path_count(diff); i++)
		put_number(file, diff_path(diff, i)->total.verdict, !i);
	fputs("],\n\"error\":[", file);
	for (size_t i = 0; i < diff_path_count(diff); i++)
		fprintf(file, "%s%.6f", i ? "," : "", diff_path(diff, i)->total.test.error);
	fputs("],\n\"functions\":{\"self\":", file);
	put_tested(diff, model, true, file);
	fputs(",\n\"total\":", file);
	put_tested(diff, model, false, file);
	fputs("}},\n", file);
}

static void put_data(struct page *page, FILE *file)
{
	const struct model *model = page->model;
	const struct timeline *timeline = &model->timeline;
	bool has_any = timeline_count(timeline);

	fputs("{\"version\":\"" STACKTAP_VERSION "\",", file);
	put_field(file, "title", page->title);
	/* milliseconds: what a Date takes, and a double holds to the microsecond */
	fprintf(file, ",\"start\":%" PRIu64 ".%06" PRIu64 ",\"end\":%" PRIu64 ".%06" PRIu64
		",\"origin\":%" PRIu64 ".%06" PRIu64 ",\"width\":%" PRIu64 ".%06" PRIu64
		",\"buckets\":%" PRIu64 ",\"cell\":%u,\"cut\":%s,\"main\":%u,\n",
		model->totals.start / 1000000, model->totals.start % 1000000,
		model->totals.end / 1000000, model->totals.end % 1000000,
		page->origin * timeline->width / 1000000, page->origin * timeline->width % 1000000,
		timeline->width / 1000000, timeline->width % 1000000,
		has_any ? timeline->last / timeline->width - page->origin + 1 : 0, page->cell,
		model->is_cut || model->before.is_cut ? "true" : "false",
		page->diff ? page->diff->events[DIFF_AFTER] : model_main_event(model));
	if (page->diff)
		put_diff(page->diff, page->model, file);
	put_events(page, file);
	put_frames(page, file);
	put_nodes(model, file);
	put_groups(model, file);
	put_entries(page, file);
	fputs("}\n", file);
}

static void put_page_data(void *ctx, FILE *file)
{
	put_data(ctx, file);
}

static int write_page(struct model *model, const struct diff *diff, const char *title, FILE *file)
{
	struct page page = { .model = model, .diff = diff, .title = title };
	const size_t strings = (size_t)model->texts.rows.count + 1, events = (size_t)model->events.count + 1;
	const size_t bytes = strings * sizeof(*page.strings) + events * sizeof(*page.squares);
	int err = -E2BIG;

	if (!pool_charge(POOL_REPORT, bytes))
		return -E2BIG;
	page.strings = calloc(strings, sizeof(*page.strings));
	page.squares = calloc(events, sizeof(*page.squares));
	if (page.strings && page.squares) {
		/* a part of the time that somebody zooms in to has finer cells */
		page.cell = timeline_divide(&model->timeline, cell_width(&model->timeline), BUCKET_MIN, ENTRIES_MAX);
		if (timeline_count(&model->timeline))
			page.origin = diff ? 0 : model->timeline.first / model->timeline.width;
		number_strings(&page);
		sum_squares(&page, MODEL_AFTER);
		sum_squares(&page, MODEL_BEFORE);
		page_files_fill(&page_files_flame, title, put_page_data, &page, file);
		err = 0;
	}
	free(page.squares);
	free(page.strings);
	pool_uncharge(POOL_REPORT, bytes);
	return err;
}

int page_write(struct model *model, const char *title, FILE *file)
{
	return write_page(model, NULL, title, file);
}

int page_write_diff(struct model *model, const struct diff *diff, const char *title, FILE *file)
{
	/* two recordings have no time in common */
	timeline_sort(&model->timeline, UINT64_MAX);
	timeline_sort(&model->before.timeline, UINT64_MAX);
	return write_page(model, diff, title, file);
}
