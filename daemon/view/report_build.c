// SPDX-License-Identifier: Apache-2.0
#include "view/report_build.h"

#include "view/report_slices.h"

/* The row that a frame of the message at hand had last. */
struct near_row {
	uint32_t process, function;
};

struct report_builder {
	struct report_tables tables;
	struct reader *reader, *again;
	struct report_slices slices;
	struct selection selection;
	enum report_detail detail;
	uint64_t stamp;
	struct buffer near;		/* of each frame: struct near_row */
	uint64_t message;		/* that these are of */
	uint32_t event, process;	/* of the Profile at hand */
};

static struct report_event event_of(const struct view_profile *profile)
{
	return (struct report_event){
		.source = profile->source, .event = profile->event, .unit = profile->unit,
	};
}

static struct report_process process_of(const struct view_profile *profile)
{
	return (struct report_process){
		.pid = profile->process.pid,
		.name = profile->process.name,
		.container_id = profile->process.container_id,
		.service_name = profile->process.service_name,
		.cgroup = profile->process.cgroup,
	};
}

static struct report_function function_of(const struct report_builder *builder,
					  const struct view_frame *frame)
{
	const bool with_lines = builder->detail == REPORT_LINES;

	return (struct report_function){
		.name = frame->name, .file = frame->mapping->file,
		.source = with_lines ? frame->source : NULL, .line = with_lines ? frame->line : 0,
		.is_kernel = frame->kind == FRAME_KIND_KERNEL, .is_named = frame->is_named,
		.self_error.error95 = -1, .total_error.error95 = -1,
	};
}

static int add_profile(void *ctx, const struct view_profile *profile)
{
	struct report_builder *builder = ctx;
	struct report_tables *tables = &builder->tables;
	const struct report_event found = event_of(profile);
	struct report_process process = process_of(profile);
	struct report_event *event;
	struct process_row *row;
	int err;

	process.error.error95 = -1;
	err = report_event_find(tables, &found, &builder->event) ?:
	      report_process_find(tables, builder->event, &process, &builder->process);
	if (err)
		return err;
	row = report_process_row(tables, builder->process);
	if (!row->process.service_name[0])
		row->process.service_name = process.service_name;
	if (!row->process.cgroup[0])
		row->process.cgroup = process.cgroup;
	event = &report_event_row(tables, builder->event)->event;
	quality_add(&event->quality, &profile->quality);
	rows_sum(&event->drawn, profile->drawn);
	event->has_quality |= profile->has_quality;
	event->is_default |= profile->default_type == profile->source;
	if (profile->fallback_errno)
		event->fallback_errno = profile->fallback_errno;
	return 0;
}

static int number_frame(struct report_builder *builder, const struct reader *reader, struct view_frame *frame)
{
	const struct near_row none = { INDEX_NONE, INDEX_NONE };

	if (builder->message != reader_totals(reader)->messages)
		builder->near.size = 0;
	builder->message = reader_totals(reader)->messages;
	frame->number = (uint32_t)(builder->near.size / sizeof(none));
	return buffer_append(&builder->near, &none, sizeof(none)) ? -E2BIG : 0;
}

static int add_frame(void *ctx, struct view_frame *frame)
{
	struct report_builder *builder = ctx;

	return number_frame(builder, builder->reader, frame);
}

static struct near_row *near_of(const struct report_builder *builder, const struct view_frame *frame)
{
	return (struct near_row *)(void *)builder->near.data + frame->number;
}

/* Most frames are met again and again in the Samples of a process. */
static int find_function(struct report_builder *builder, const struct view_frame *frame,
			 uint32_t *ret_position)
{
	struct near_row *near = near_of(builder, frame);
	struct report_function key;
	int err;

	if (near->process != builder->process) {
		key = function_of(builder, frame);
		err = report_function_find(&builder->tables, builder->process, &key, &near->function);
		if (err)
			return err;
		near->process = builder->process;
	}
	*ret_position = near->function;
	return 0;
}

static int add_function(struct report_builder *builder, const struct view_frame *frame, bool is_leaf,
			const struct view_sample *sample)
{
	struct function_row *row;
	uint32_t position;
	int err;

	err = find_function(builder, frame, &position);
	if (err)
		return err;
	row = report_function_row(&builder->tables, position);
	if (is_leaf) {
		rows_sum(&row->function.self, sample->weight);
		rows_sum(&row->function.self_samples, sample->samples);
	}
	if (row->stamp != builder->stamp)
		rows_sum(&row->function.total, sample->weight);
	row->stamp = builder->stamp;
	return 0;
}

static int add_sample(void *ctx, const struct view_profile *profile,
		      const struct view_sample *sample)
{
	struct report_builder *builder = ctx;
	struct process_row *process;
	struct event_row *event;
	int err = 0;

	builder->stamp++;
	for (size_t i = 0; i < sample->frame_count && !err; i++)
		err = add_function(builder, sample->frames[i], !i, sample);
	if (err)
		return err;
	process = report_process_row(&builder->tables, builder->process);
	rows_sum(&process->process.samples, sample->samples);
	rows_sum(&process->process.weight, sample->weight);
	report_whole_add(&process->whole, profile, sample);
	event = report_event_row(&builder->tables, builder->event);
	rows_sum(&event->event.samples, sample->samples);
	rows_sum(&event->event.weight, sample->weight);
	report_whole_add(&event->whole, profile, sample);
	return 0;
}

static int slice_profile(void *ctx, const struct view_profile *profile)
{
	struct report_builder *builder = ctx;
	const struct report_process process = process_of(profile);
	const struct report_event event = event_of(profile);

	builder->event = report_event_look_up(&builder->tables, &event);
	builder->process = builder->event == INDEX_NONE ? INDEX_NONE :
			   report_process_look_up(&builder->tables, builder->event, &process);
	return 0;
}

static int slice_frame(void *ctx, struct view_frame *frame)
{
	struct report_builder *builder = ctx;

	return number_frame(builder, builder->again, frame);
}

static uint32_t look_up_function(struct report_builder *builder, const struct view_frame *frame)
{
	struct near_row *near = near_of(builder, frame);
	struct report_function key;

	if (near->process != builder->process) {
		key = function_of(builder, frame);
		near->function = report_function_look_up(&builder->tables, builder->process, &key);
		near->process = builder->process;
	}
	return near->function;
}

static int slice_sample(void *ctx, const struct view_profile *profile _unused_,
			const struct view_sample *sample)
{
	struct report_builder *builder = ctx;

	if (builder->process == INDEX_NONE ||
	    !report_slices_sample(&builder->slices, builder->process, sample))
		return 0;
	builder->stamp++;
	for (size_t i = 0; i < sample->frame_count; i++) {
		const uint32_t position = look_up_function(builder, sample->frames[i]);
		struct function_row *row;

		if (position == INDEX_NONE)
			continue;
		row = report_function_row(&builder->tables, position);
		if (!i)
			report_slices_function(&builder->slices, position, REPORT_SELF);
		if (row->stamp != builder->stamp)
			report_slices_function(&builder->slices, position, REPORT_TOTAL);
		row->stamp = builder->stamp;
	}
	return 0;
}

int report_builder_new(const struct selection *selection, enum report_detail detail,
		       struct report_builder **ret_builder)
{
	struct report_builder *builder = calloc(1, sizeof(*builder));
	const struct reader_sink sink = { .ctx = builder, .profile = add_profile,
					  .frame = add_frame, .sample = add_sample };
	int err;

	if (!builder)
		return -ENOMEM;
	report_tables_init(&builder->tables);
	buffer_init(&builder->near, POOL_REPORT);
	builder->detail = detail;
	if (selection)
		builder->selection = *selection;
	err = reader_new(&builder->tables.texts, selection, detail == REPORT_ADDRESSES, &sink,
			 &builder->reader);
	if (err) {
		report_builder_free(builder);
		return err;
	}
	*ret_builder = builder;
	return 0;
}

void report_builder_free(struct report_builder *builder)
{
	if (!builder)
		return;
	reader_free(builder->reader);
	reader_free(builder->again);
	report_slices_done(&builder->slices);
	buffer_free(&builder->near);
	report_tables_free(&builder->tables);
	free(builder);
}

struct reader *report_builder_reader(struct report_builder *builder)
{
	return builder->reader;
}

int report_builder_again(struct report_builder *builder, struct reader **ret_reader)
{
	const struct reader_sink sink = { .ctx = builder, .profile = slice_profile,
					  .frame = slice_frame, .sample = slice_sample };
	int err = report_slices_init(&builder->slices, &builder->tables);

	builder->message = 0;
	if (!err && report_slices_needed(&builder->slices))
		err = reader_new(&builder->tables.texts, &builder->selection,
				 builder->detail == REPORT_ADDRESSES, &sink, &builder->again);
	*ret_reader = builder->again;
	return err;
}

void report_builder_give_up(struct report_builder *builder)
{
	reader_free(builder->again);
	builder->again = NULL;
	report_slices_done(&builder->slices);
}

struct report_owner {
	struct report report;
	struct arena arena;
};

int report_builder_finish(struct report_builder *builder, bool is_cut, struct report **ret_report)
{
	const struct reader_totals *totals = reader_totals(builder->reader);
	struct report_owner *owner = calloc(1, sizeof(*owner));

	if (!owner)
		return -ENOMEM;
	owner->report = (struct report){
		.messages = totals->messages, .bytes = totals->bytes, .start = totals->start,
		.end = totals->end, .is_cut = is_cut,
	};
	if (!builder->slices.tested) {
		report_slices_done(&builder->slices);
		builder->slices.tables = &builder->tables;
		owner->report.without_errors = REPORT_NO_PASS;
	}
	if (!report_slices_measure(&builder->slices) && !owner->report.without_errors)
		owner->report.without_errors = REPORT_CHANGED;
	report_slices_done(&builder->slices);
	if (report_tables_finish(&builder->tables, &owner->report)) {
		free(owner);
		return -E2BIG;
	}
	if (!owner->report.event_count)
		owner->report.start = 0;
	owner->arena = builder->tables.texts.arena;
	arena_init(&builder->tables.texts.arena, POOL_REPORT);
	*ret_report = &owner->report;
	return 0;
}

void report_free(struct report *report)
{
	struct report_owner *owner;

	if (!report)
		return;
	owner = container_of(report, struct report_owner, report);
	arena_free(&owner->arena);
	free(owner);
}
