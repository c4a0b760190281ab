// SPDX-License-Identifier: Apache-2.0
/* Formats that are JSON: speedscope's, and the processed one of the Firefox Profiler. */
#include <inttypes.h>
#include <string.h>

#include "view/convert.h"
#include "view/escape.h"

#include <stacktap/version.h>

enum {
	GECKO_VERSION = 27,
	PROCESSED_VERSION = 48,	/* later ones are made of it when it is opened */
};

static void put_thread_name(const struct model_group *group, FILE *file)
{
	char name[256];

	snprintf(name, sizeof(name), "%.100s (%u), %.100s (%u)",
		 group->process.name[0] ? group->process.name : "[unknown]", group->process.pid,
		 group->thread[0] ? group->thread : "thread", group->tid);
	escape_json(file, name);
}

/* Entries of a group follow each other, in the order of time: [*from, end). False when there are no more. */
static bool next_group(const struct model *model, uint32_t event, size_t *from, size_t *ret_end)
{
	size_t count = timeline_count(&model->timeline), i = *from;

	while (i < count &&
	       model_group(model, timeline_at(&model->timeline, i)->group)->event != event)
		i++;
	*from = i;
	while (i < count && timeline_at(&model->timeline, i)->group ==
	       timeline_at(&model->timeline, *from)->group)
		i++;
	*ret_end = i;
	return *from < count;
}

static uint64_t value_of(const struct timeline_entry *entry, const struct convert_options *options)
{
	return options->by_weight ? entry->weight : entry->samples;
}

static int put_speedscope_thread(const struct model *model, const struct convert_options *options,
				 size_t from, size_t end, struct buffer *frames, FILE *file)
{
	const struct timeline_entry *first = timeline_at(&model->timeline, from);
	const char *unit = model_event(model, options->event)->unit;
	uint64_t sum = 0;
	size_t count;
	int err;

	for (size_t i = from; i < end; i++)
		rows_sum(&sum, value_of(timeline_at(&model->timeline, i), options));
	fputs("{\"type\":\"sampled\",\"name\":", file);
	put_thread_name(model_group(model, first->group), file);
	fprintf(file, ",\"unit\":\"%s\",\"startValue\":0,\"endValue\":%" PRIu64 ",\"samples\":[",
		options->by_weight && !strcmp(unit, "nanoseconds") ? unit : "none", sum);
	for (size_t i = from; i < end; i++) {
		const uint32_t *numbers;

		err = model_stack(model, timeline_at(&model->timeline, i)->node, frames, &count);
		if (err)
			return err;
		numbers = (const uint32_t *)(const void *)frames->data;
		fputs(i > from ? ",\n[" : "\n[", file);
		for (size_t k = count; k-- > 0;)
			fprintf(file, k + 1 < count ? ",%u" : "%u", numbers[k]);
		fputc(']', file);
	}
	fputs("],\"weights\":[", file);
	for (size_t i = from; i < end; i++)
		fprintf(file, i > from ? ",%" PRIu64 : "%" PRIu64,
			value_of(timeline_at(&model->timeline, i), options));
	fputs("]}", file);
	return 0;
}

int speedscope_write(struct model *model, const struct convert_options *options, FILE *file)
{
	struct buffer frames = { .pool = POOL_REPORT };
	bool is_first = true;
	size_t from = 0, end;
	int err = 0;

	fputs("{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\","
	      "\"exporter\":\"stacktap " STACKTAP_VERSION "\",\"name\":", file);
	escape_json(file, options->name);
	fputs(",\"activeProfileIndex\":0,\n\"shared\":{\"frames\":[", file);
	for (uint32_t i = 0; i < model->frames.count; i++) {
		const struct model_frame *frame = model_frame(model, i);

		fputs(i ? ",\n{\"name\":" : "\n{\"name\":", file);
		escape_json(file, frame->name);
		if (frame->file[0] || frame->source[0]) {
			fputs(",\"file\":", file);
			escape_json(file, frame->source[0] ? frame->source : frame->file);
		}
		fputc('}', file);
	}
	fputs("]},\n\"profiles\":[", file);
	for (; !err && next_group(model, options->event, &from, &end); from = end) {
		fputs(is_first ? "\n" : ",\n", file);
		is_first = false;
		err = put_speedscope_thread(model, options, from, end, &frames, file);
	}
	fputs("]}\n", file);
	buffer_free(&frames);
	return err;
}

/* Tables of one thread of Firefox: parts of the model's, numbered anew as they are used. */
struct firefox {
	struct model *model;
	FILE *file;
	uint32_t *nodes;	/* of the tree: its stack + 1, 0: not of this thread */
	uint32_t *frames;	/* the same */
	uint32_t *files;	/* by a text's position: its resource + 1 */
	struct buffer node_list, frame_list;	/* uint32_t: what these numbers stand for */
	struct buffer file_list;		/* a frame of each */
};

enum { CATEGORY_NATIVE, CATEGORY_KERNEL, CATEGORY_MANAGED, CATEGORY_UNNAMED };

static int category_of(const struct model_frame *frame)
{
	if (frame->kind == FRAME_KIND_KERNEL)
		return CATEGORY_KERNEL;
	if (frame->kind == FRAME_KIND_MANAGED)
		return CATEGORY_MANAGED;
	return frame->is_named ? CATEGORY_NATIVE : CATEGORY_UNNAMED;
}

static const uint32_t *list_of(const struct buffer *buffer, size_t *ret_count)
{
	*ret_count = buffer->size / sizeof(uint32_t);
	return (const uint32_t *)(const void *)buffer->data;
}

static uint32_t *file_of(const struct firefox *firefox, uint32_t frame)
{
	const struct model *model = firefox->model;

	return &firefox->files[texts_position(&model->texts, model_frame(model, frame)->file)];
}

static int use_file(struct firefox *firefox, uint32_t frame)
{
	uint32_t *number = file_of(firefox, frame);

	if (*number || !model_frame(firefox->model, frame)->file[0])
		return 0;
	if (buffer_append(&firefox->file_list, &frame, sizeof(frame)))
		return -E2BIG;
	*number = (uint32_t)(firefox->file_list.size / sizeof(frame));
	return 0;
}

/* Parents first: the path up to what is known already, put in from there on down. */
static int use_stack(struct firefox *firefox, uint32_t node)
{
	const struct tree *tree = &firefox->model->tree;
	struct buffer path = { .pool = POOL_REPORT };
	const uint32_t *numbers;
	size_t count;
	int err = 0;

	while (node != TREE_ROOT && !firefox->nodes[node] && !err) {
		err = buffer_append(&path, &node, sizeof(node));
		node = tree_node(tree, node)->parent;
	}
	numbers = list_of(&path, &count);
	while (!err && count-- > 0) {
		uint32_t frame = tree_node(tree, numbers[count])->frame;

		if (!firefox->frames[frame]) {
			err = buffer_append(&firefox->frame_list, &frame, sizeof(frame));
			firefox->frames[frame] =
				(uint32_t)(firefox->frame_list.size / sizeof(frame));
			err = err ?: use_file(firefox, frame);
		}
		if (!err)
			err = buffer_append(&firefox->node_list, &numbers[count], sizeof(*numbers));
		firefox->nodes[numbers[count]] =
			(uint32_t)(firefox->node_list.size / sizeof(uint32_t));
	}
	buffer_free(&path);
	return err ? -E2BIG : 0;
}

/* One column: @value of each of a list, or null for below 0. */
static void put_column(struct firefox *firefox, const char *name, const struct buffer *list,
		       int64_t (*value)(const struct firefox *firefox, uint32_t i, size_t place))
{
	size_t count;
	const uint32_t *numbers = list_of(list, &count);

	fprintf(firefox->file, ",\"%s\":[", name);
	for (size_t i = 0; i < count; i++) {
		int64_t number = value(firefox, numbers[i], i);

		if (i)
			fputc(',', firefox->file);
		if (number < 0)
			fputs("null", firefox->file);
		else
			fprintf(firefox->file, "%" PRId64, number);
	}
	fputs("]\n", firefox->file);
}

static int64_t stack_prefix(const struct firefox *firefox, uint32_t node, size_t place)
{
	uint32_t parent = tree_node(&firefox->model->tree, node)->parent;

	(void)place;
	return parent == TREE_ROOT ? -1 : (int64_t)firefox->nodes[parent] - 1;
}

static int64_t stack_frame(const struct firefox *firefox, uint32_t node, size_t place)
{
	(void)place;
	return (int64_t)firefox->frames[tree_node(&firefox->model->tree, node)->frame] - 1;
}

static int64_t frame_category(const struct firefox *firefox, uint32_t frame, size_t place)
{
	(void)place;
	return category_of(model_frame(firefox->model, frame));
}

static int64_t stack_category(const struct firefox *firefox, uint32_t node, size_t place)
{
	return frame_category(firefox, tree_node(&firefox->model->tree, node)->frame, place);
}

static int64_t own_place(const struct firefox *firefox, uint32_t number, size_t place)
{
	(void)firefox;
	(void)number;
	return (int64_t)place;
}

/* Strings of the thread are two of each frame, its name and its source, and then the files. */
static int64_t frame_name(const struct firefox *firefox, uint32_t frame, size_t place)
{
	(void)firefox;
	(void)frame;
	return (int64_t)place * 2;
}

static int64_t frame_source(const struct firefox *firefox, uint32_t frame, size_t place)
{
	return model_frame(firefox->model, frame)->source[0] ? (int64_t)place * 2 + 1 : -1;
}

static int64_t file_name(const struct firefox *firefox, uint32_t frame, size_t place)
{
	(void)frame;
	return (int64_t)(firefox->frame_list.size / sizeof(uint32_t) * 2 + place);
}

static int64_t nothing(const struct firefox *firefox, uint32_t number, size_t place)
{
	(void)firefox;
	(void)number;
	(void)place;
	return -1;
}

static int64_t zero(const struct firefox *firefox, uint32_t number, size_t place)
{
	(void)firefox;
	(void)number;
	(void)place;
	return 0;
}

static int64_t one(const struct firefox *firefox, uint32_t number, size_t place)
{
	(void)firefox;
	(void)number;
	(void)place;
	return 1;
}

static void put_tables(struct firefox *firefox)
{
	const struct buffer *nodes = &firefox->node_list, *frames = &firefox->frame_list;
	const struct buffer *files = &firefox->file_list;
	FILE *file = firefox->file;
	size_t node_count, count;
	const uint32_t *numbers;

	list_of(nodes, &node_count);
	numbers = list_of(frames, &count);
	fprintf(file, "\"stackTable\":{\"length\":%zu", node_count);
	put_column(firefox, "prefix", nodes, stack_prefix);
	put_column(firefox, "frame", nodes, stack_frame);
	put_column(firefox, "category", nodes, stack_category);
	put_column(firefox, "subcategory", nodes, zero);
	fprintf(file, "},\n\"frameTable\":{\"length\":%zu", count);
	put_column(firefox, "address", frames, nothing);
	put_column(firefox, "inlineDepth", frames, zero);
	put_column(firefox, "category", frames, frame_category);
	put_column(firefox, "subcategory", frames, zero);
	put_column(firefox, "func", frames, own_place);
	put_column(firefox, "nativeSymbol", frames, nothing);
	put_column(firefox, "innerWindowID", frames, zero);
	put_column(firefox, "implementation", frames, nothing);
	put_column(firefox, "line", frames, nothing);
	put_column(firefox, "column", frames, nothing);
	fprintf(file, "},\n\"funcTable\":{\"length\":%zu", count);
	put_column(firefox, "name", frames, frame_name);
	put_column(firefox, "fileName", frames, frame_source);
	put_column(firefox, "lineNumber", frames, nothing);
	put_column(firefox, "columnNumber", frames, nothing);
	/* -1, not null, is a function of no file */
	fputs(",\"resource\":[", file);
	for (size_t i = 0; i < count; i++)
		fprintf(file, i ? ",%" PRId64 : "%" PRId64,
			(int64_t)*file_of(firefox, numbers[i]) - 1);
	fputs("],\"isJS\":[", file);
	for (size_t i = 0; i < count; i++)
		fputs(i ? ",false" : "false", file);
	fputs("],\"relevantForJS\":[", file);
	for (size_t i = 0; i < count; i++)
		fputs(i ? ",false" : "false", file);
	fprintf(file, "]},\n\"resourceTable\":{\"length\":%zu", files->size / sizeof(uint32_t));
	put_column(firefox, "lib", files, nothing);
	put_column(firefox, "name", files, file_name);
	put_column(firefox, "host", files, nothing);
	put_column(firefox, "type", files, one);
	fputs("},\n\"nativeSymbols\":{\"length\":0,\"address\":[],\"functionSize\":[],"
	      "\"libIndex\":[],\"name\":[]},\n\"markers\":{\"length\":0,\"category\":[],"
	      "\"data\":[],\"endTime\":[],\"name\":[],\"phase\":[],\"startTime\":[]},\n"
	      "\"stringArray\":[", file);
	for (size_t i = 0; i < count; i++) {
		const struct model_frame *frame = model_frame(firefox->model, numbers[i]);

		fputs(i ? ",\n" : "", file);
		escape_json(file, frame->name);
		fputc(',', file);
		escape_json(file, frame->source);
	}
	numbers = list_of(files, &count);
	for (size_t i = 0; i < count; i++) {
		fputc(',', file);
		escape_json(file, model_frame(firefox->model, numbers[i])->file);
	}
	fputc(']', file);
}

static void put_time(FILE *file, uint64_t time, uint64_t start)
{
	uint64_t passed = time > start ? time - start : 0;

	fprintf(file, "%" PRIu64 ".%06" PRIu64, passed / 1000000, passed % 1000000);
}

static void put_thread_head(const struct model_group *group, FILE *file)
{
	fputs("{\"processType\":\"default\",\"processStartupTime\":0,\"processShutdownTime\":null,"
	      "\"registerTime\":0,\"unregisterTime\":null,\"pausedRanges\":[],\"name\":", file);
	escape_json(file, group->thread[0] ? group->thread : "thread");
	fputs(",\"processName\":", file);
	escape_json(file, group->process.name);
	fprintf(file, ",\"isMainThread\":%s,\"pid\":\"%u\",\"tid\":%u,\n",
		group->tid == group->process.pid ? "true" : "false", group->process.pid,
		group->tid);
}

static int put_firefox_thread(struct firefox *firefox, size_t from, size_t end)
{
	const struct timeline *timeline = &firefox->model->timeline;
	uint64_t start = firefox->model->totals.start;
	FILE *file = firefox->file;
	int err = 0;

	memset(firefox->nodes, 0, tree_count(&firefox->model->tree) * sizeof(*firefox->nodes));
	memset(firefox->frames, 0, firefox->model->frames.count * sizeof(*firefox->frames));
	memset(firefox->files, 0, firefox->model->texts.rows.count * sizeof(*firefox->files));
	firefox->node_list.size = firefox->frame_list.size = firefox->file_list.size = 0;
	for (size_t i = from; i < end && !err; i++)
		err = use_stack(firefox, timeline_at(timeline, i)->node);
	if (err)
		return err;
	put_thread_head(model_group(firefox->model, timeline_at(timeline, from)->group), file);
	fprintf(file, "\"samples\":{\"length\":%zu,\"weightType\":\"samples\",\"stack\":[",
		end - from);
	for (size_t i = from; i < end; i++)
		fprintf(file, i > from ? ",%u" : "%u",
			firefox->nodes[timeline_at(timeline, i)->node] - 1);
	fputs("],\"time\":[", file);
	for (size_t i = from; i < end; i++) {
		if (i > from)
			fputc(',', file);
		put_time(file, timeline_at(timeline, i)->time, start);
	}
	fputs("],\"weight\":[", file);
	for (size_t i = from; i < end; i++)
		fprintf(file, i > from ? ",%" PRIu64 : "%" PRIu64,
			timeline_at(timeline, i)->samples);
	fputs("]},\n", file);
	put_tables(firefox);
	fputc('}', file);
	return 0;
}

static void put_firefox_head(const struct model *model, const struct convert_options *options,
			     FILE *file)
{
	const struct model_event *event = model_event(model, options->event);
	bool is_time = !strcmp(event->unit, "nanoseconds") && event->period;

	fprintf(file, "{\"meta\":{\"version\":%d,\"preprocessedProfileVersion\":%d,\"interval\":",
		GECKO_VERSION, PROCESSED_VERSION);
	put_time(file, is_time ? event->period : 1000000, 0);
	fputs(",\"startTime\":", file);
	put_time(file, model->totals.start, 0);
	fputs(",\"processType\":0,\"product\":", file);
	escape_json(file, options->name);
	fputs(",\"importedFrom\":\"stacktap " STACKTAP_VERSION "\",\"stackwalk\":1,\"debug\":false,"
	      "\"symbolicated\":true,\"usesOnlyOneStackType\":true,\"doesNotUseFrameImplementation\":true,"
	      "\"sourceCodeIsNotOnSearchfox\":true,\"markerSchema\":[],"
	      "\"extensions\":{\"length\":0,\"id\":[],\"name\":[],\"baseURL\":[]},\n\"categories\":["
	      "{\"name\":\"Native\",\"color\":\"yellow\",\"subcategories\":[\"Other\"]},"
	      "{\"name\":\"Kernel\",\"color\":\"orange\",\"subcategories\":[\"Other\"]},"
	      "{\"name\":\"JIT, runtime\",\"color\":\"blue\",\"subcategories\":[\"Other\"]},"
	      "{\"name\":\"No name\",\"color\":\"grey\",\"subcategories\":[\"Other\"]}]},\n"
	      "\"libs\":[],\"pages\":[],\"threads\":[", file);
}

int firefox_write(struct model *model, const struct convert_options *options, FILE *file)
{
	struct firefox firefox = { .model = model, .file = file };
	size_t bytes = ((size_t)tree_count(&model->tree) + model->frames.count +
			model->texts.rows.count) * sizeof(uint32_t);
	_cleanup_free_ uint32_t *numbers = NULL;
	size_t from = 0, end;
	bool is_first = true;
	int err = 0;

	if (!pool_charge(POOL_REPORT, bytes))
		return -E2BIG;
	numbers = malloc(bytes);
	if (!numbers)
		err = -E2BIG;
	firefox.nodes = numbers;
	firefox.frames = numbers + tree_count(&model->tree);
	firefox.files = firefox.frames + model->frames.count;
	buffer_init(&firefox.node_list, POOL_REPORT);
	buffer_init(&firefox.frame_list, POOL_REPORT);
	buffer_init(&firefox.file_list, POOL_REPORT);
	put_firefox_head(model, options, file);
	for (; !err && next_group(model, options->event, &from, &end); from = end) {
		fputs(is_first ? "\n" : ",\n", file);
		is_first = false;
		err = put_firefox_thread(&firefox, from, end);
	}
	fputs("]}\n", file);
	buffer_free(&firefox.node_list);
	buffer_free(&firefox.frame_list);
	buffer_free(&firefox.file_list);
	pool_uncharge(POOL_REPORT, bytes);
	return err;
}
