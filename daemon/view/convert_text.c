// SPDX-License-Identifier: Apache-2.0
/* Formats that are lines: folded stacks, and what `perf script` prints. */
#include <inttypes.h>
#include <string.h>

#include "view/convert.h"

/* Names are clean text, but may have what stands between them. */
static void put_name(FILE *file, const char *name, const char *separators)
{
	for (; *name; name++)
		fputc(strchr(separators, *name) ? '_' : *name, file);
}

static const char *process_name(const struct model_group *group)
{
	return group->process.name[0] ? group->process.name : "[unknown]";
}

/* Threads and processes of one name become one, so that no stack comes twice. */
static void merge_groups(struct model *model)
{
	struct model_group *group;

	for (uint32_t i = 0; i < model->groups.count; i++) {
		group = model_group(model, i);
		group->first = i;
		for (uint32_t k = 0; k < i && group->first == i; k++)
			if (model_group(model, k)->event == group->event &&
			    model_group(model, k)->process.name == group->process.name)
				group->first = k;
	}
	for (size_t i = 0; i < timeline_count(&model->timeline); i++) {
		struct timeline_entry *entry = timeline_at(&model->timeline, i);

		entry->group = model_group(model, entry->group)->first;
	}
	timeline_sort(&model->timeline, 0);
}

static void put_folded(const struct model *model, const uint32_t *frames, size_t count, FILE *file)
{
	for (size_t i = count; i-- > 0;) {
		const struct model_frame *frame = model_frame(model, frames[i]);

		fputc(';', file);
		put_name(file, frame->name, ";");
		if (frame->kind == FRAME_KIND_KERNEL)
			fputs("_[k]", file);
		else if (frame->is_inlined)
			fputs("_[i]", file);
		else if (frame->kind == FRAME_KIND_MANAGED)
			fputs("_[j]", file);
	}
}

int folded_write(struct model *model, const struct convert_options *options, FILE *file)
{
	struct buffer frames = { .pool = POOL_REPORT };
	size_t count;
	int err = 0;

	merge_groups(model);
	for (size_t i = 0; i < timeline_count(&model->timeline) && !err; i++) {
		const struct timeline_entry *entry = timeline_at(&model->timeline, i);
		const struct model_group *group = model_group(model, entry->group);

		if (group->event != options->event)
			continue;
		err = model_stack(model, entry->node, &frames, &count);
		if (err)
			break;
		put_name(file, process_name(group), ";");
		put_folded(model, (const uint32_t *)(const void *)frames.data, count, file);
		fprintf(file, " %" PRIu64 "\n",
			options->by_weight ? entry->weight : entry->samples);
	}
	buffer_free(&frames);
	return err;
}

static void put_script_frame(const struct model_frame *frame, FILE *file)
{
	fprintf(file, "\t%16" PRIx64 " ", frame->address);
	if (frame->is_named)
		put_name(file, frame->name, "");
	else
		fputs("[unknown]", file);
	fprintf(file, " (%s)\n", frame->is_inlined ? "inlined" :
		frame->file[0] ? frame->file : "[unknown]");
}

static int by_time(const void *a, const void *b)
{
	const struct timeline_entry *left = a, *right = b;

	if (left->time != right->time)
		return left->time < right->time ? -1 : 1;
	return (left->group > right->group) - (left->group < right->group);
}

/* COMM PID/TID SECONDS: PERIOD EVENT: and a line per frame, leaf first. */
int perf_script_write(struct model *model, const struct convert_options *options, FILE *file)
{
	const char *event = model_event(model, options->event)->source;
	struct buffer frames = { .pool = POOL_REPORT };
	const uint32_t *numbers;
	size_t count;
	int err = 0;

	if (timeline_count(&model->timeline))
		qsort(model->timeline.entries.data, timeline_count(&model->timeline),
		      sizeof(struct timeline_entry), by_time);
	for (size_t i = 0; i < timeline_count(&model->timeline); i++) {
		const struct timeline_entry *entry = timeline_at(&model->timeline, i);
		const struct model_group *group = model_group(model, entry->group);

		if (group->event != options->event)
			continue;
		err = model_stack(model, entry->node, &frames, &count);
		if (err)
			break;
		put_name(file, group->thread[0] ? group->thread : process_name(group), "");
		fprintf(file, " %u/%u %" PRIu64 ".%09" PRIu64 ": %" PRIu64 " ", group->process.pid,
			group->tid, entry->time / 1000000000, entry->time % 1000000000,
			entry->weight);
		put_name(file, event, " ");
		fputs(":\n", file);
		numbers = (const uint32_t *)(const void *)frames.data;
		for (size_t k = 0; k < count; k++)
			put_script_frame(model_frame(model, numbers[k]), file);
		fputc('\n', file);
	}
	buffer_free(&frames);
	return err;
}
