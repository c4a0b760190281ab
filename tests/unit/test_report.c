// SPDX-License-Identifier: Apache-2.0
#include "fixture.h"
#include "recorded.h"

#include <stdlib.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "export/relabel.h"
#include "export/store_file.h"
#include "view/report_load.h"

static struct buffer good;		/* a file of two messages */
static size_t first_size;		/* of the first one, with its length */
static const char *path;

static int setup(void **state)
{
	size_t size;
	uint8_t *data;

	(void)state;
	path = strdup(fixture_path("report.otlp"));
	recorded_file(path, 1 << 24);
	data = fixture_load(path, &size);
	assert_non_null(data);
	good = (struct buffer){ .data = data, .size = size };
	first_size = 4 + ((size_t)data[0] << 24 | (size_t)data[1] << 16 | data[2] << 8 | data[3]);
	assert_true(first_size < size);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	free(good.data);
	free((char *)(uintptr_t)path);
	synthetic_check_pools();
	return 0;
}

static const struct report_process *find(const struct report_event *event, uint32_t pid)
{
	for (size_t i = 0; i < event->process_count; i++)
		if (event->processes[i].pid == pid)
			return &event->processes[i];
	fail_msg("no process %u", pid);
	return NULL;
}

static void totals_are_those_of_the_windows(void **state)
{
	const struct report_process *process;
	const struct report_event *event;
	struct report *report;
	uint64_t self = 0, samples = 0;

	(void)state;
	recorded_bytes(path, good.data, good.size);
	assert_int_equal(report_load(path, NULL, REPORT_FUNCTIONS, &report, NULL, 0), 0);
	assert_int_equal(report->messages, 2);
	assert_int_equal(report->bytes, good.size - 8);
	assert_false(report->is_cut);
	assert_true(report->end > report->start);
	assert_int_equal(report->event_count, 2);
	event = &report->events[0];
	assert_string_equal(event->source, "cycles");
	assert_string_equal(event->event, "cpu-clock");
	assert_string_equal(event->unit, "nanoseconds");
	assert_int_equal(event->fallback_errno, ENOENT);
	assert_int_equal(event->samples, 2 * 2020);
	assert_int_equal(event->weight, event->samples * 10000000);
	assert_true(event->has_quality);
	assert_int_equal(event->quality.complete, 2 * 1708);
	assert_int_equal(event->quality.stale, 2 * 84);
	assert_int_equal(event->quality.lost, 2 * 7);
	assert_int_equal(event->quality.throttled, 0);
	assert_int_equal(report->events[1].quality.throttled, 2 * 2);
	assert_string_equal(report->events[1].event, "cycles");
	assert_string_equal(report->events[1].unit, "count");

	assert_int_equal(event->process_count, 4);
	for (size_t i = 0; i < event->process_count; i++) {
		if (i)
			assert_true(event->processes[i].weight <= event->processes[i - 1].weight);
		samples += event->processes[i].samples;
		self = 0;
		for (size_t k = 0; k < event->processes[i].function_count; k++) {
			const struct report_function *f = &event->processes[i].functions[k];

			self += f->self;
			assert_true(f->total >= f->self);
			assert_true(f->total <= event->processes[i].weight);
			if (k)
				assert_true(f->self <= f[-1].self);
		}
		/* each sample has one leaf */
		assert_int_equal(self, event->processes[i].weight);
	}
	assert_int_equal(samples, event->samples);
	process = find(event, 200);
	assert_string_equal(process->name, "program");
	assert_string_equal(process->container_id, "0123456789abcdef");
	assert_string_equal(process->service_name, "shop");
	/* a quarter of them were in the kernel, all at one place */
	assert_string_equal(process->functions[0].name, "f_ffffffff81000100");
	assert_string_equal(process->functions[0].file, "[kernel]");
	assert_true(process->functions[0].is_kernel && process->functions[0].is_named);
	process = find(event, 0);
	assert_string_equal(process->name, "[kernel]");
	assert_int_equal(process->samples, 2 * 100);
	report_free(report);
}

static void a_split_file_says_the_same(void **state)
{
	const char *split = fixture_path("split.otlp");
	struct report *one, *many;

	(void)state;
	recorded_bytes(path, good.data, good.size);
	recorded_file(split, 65536);
	assert_int_equal(report_load(path, NULL, REPORT_FUNCTIONS, &one, NULL, 0), 0);
	assert_int_equal(report_load(split, NULL, REPORT_FUNCTIONS, &many, NULL, 0), 0);
	assert_true(many->messages > 10);
	assert_int_equal(one->event_count, many->event_count);
	for (size_t i = 0; i < one->event_count; i++) {
		const struct report_event *a = &one->events[i], *b = &many->events[i];

		assert_int_equal(a->samples, b->samples);
		assert_int_equal(a->weight, b->weight);
		assert_int_equal(a->quality.named, b->quality.named);
		assert_int_equal(a->quality.lost, b->quality.lost);
		assert_int_equal(a->process_count, b->process_count);
		for (size_t k = 0; k < a->process_count; k++) {
			const struct report_process *p = &a->processes[k];
			const struct report_process *q = find(b, p->pid);

			assert_int_equal(p->weight, q->weight);
			assert_int_equal(p->function_count, q->function_count);
			for (size_t f = 0; f < p->function_count; f++) {
				assert_int_equal(p->functions[f].self, q->functions[f].self);
				assert_int_equal(p->functions[f].total, q->functions[f].total);
			}
		}
	}
	report_free(one);
	report_free(many);
}

/* Of two stacks one has a frame that its window could not wait for; one that got a name after all is none. */
static void names_that_come_too_late_are_told(void **state)
{
	static const uint64_t late[] = { 0x7f0000000010, 0x7f0000000020 }, named[] = { 0x7f0000000030 };
	const struct encode_options options = { .max_bytes = 1 << 20 };
	struct mapped_file *file = synthetic_file("/usr/bin/program", true);
	struct image *image = synthetic_image(7, "program", NULL);
	struct aggregator *aggregator;
	struct store_file *out;
	struct report *report;
	struct window *window;

	(void)state;
	assert_int_equal(aggregator_new(&aggregator), 0);
	assert_int_equal(aggregator_set_profile(aggregator, &synthetic_clock), 0);
	synthetic_map(image, 0x7f0000000000, 0, file);
	for (int i = 0; i < 2; i++)
		assert_int_equal(synthetic_add(aggregator, &(struct synthetic_sample){
			.time = 5, .image = image, .user = i ? named : late,
			.user_count = i ? ARRAY_SIZE(named) : ARRAY_SIZE(late),
			.user_end = STACKTAP_END_COMPLETE }), 0);
	assert_int_equal(aggregator_close(aggregator, 10, &window), 0);
	for (size_t i = 0; i < window->location_count; i++) {
		window->locations[i]->is_late = (window->locations[i]->offset & 0xff) != 0x10;
		if ((window->locations[i]->offset & 0xff) == 0x30)
			assert_int_equal(location_set_function(window->locations[i], function_new("late", "late")), 0);
		atomic_store(&window->locations[i]->is_resolved, true);
	}
	window->counts[0].names_late = 1;
	assert_int_equal(store_file_create(path, &out), 0);
	assert_int_equal(encode_window(&options, window, recorded_append, out), 0);
	assert_int_equal(store_file_close(out, NULL), 0);
	window_free(window);
	aggregator_free(aggregator);
	image_unref(image);
	mapped_file_unref(file);
	assert_int_equal(report_load(path, NULL, REPORT_FUNCTIONS, &report, NULL, 0), 0);
	assert_int_equal(report->events[0].samples, 2);
	assert_int_equal(report->events[0].quality.names_late, 1);
	assert_int_equal(report->events[0].quality.named, 1);
	report_free(report);
}

static void recursion_counts_once(void **state)
{
	static const uint64_t ips[] = { 0x7f0000000010, 0x7f0000000020, 0x7f0000000010,
					0x7f0000000020, 0x7f0000000020 };
	const struct encode_options options = { .max_bytes = 1 << 20 };
	struct mapped_file *file = synthetic_file("/usr/bin/program", true);
	struct image *image = synthetic_image(7, "program", NULL);
	const struct report_process *process;
	struct aggregator *aggregator;
	struct store_file *out;
	struct report *report;
	struct window *window;

	(void)state;
	assert_int_equal(aggregator_new(&aggregator), 0);
	assert_int_equal(aggregator_set_profile(aggregator, &synthetic_clock), 0);
	synthetic_map(image, 0x7f0000000000, 0, file);
	assert_int_equal(synthetic_add(aggregator, &(struct synthetic_sample){
		.time = 5, .image = image, .user = ips, .user_count = ARRAY_SIZE(ips),
		.user_end = STACKTAP_END_COMPLETE }), 0);
	assert_int_equal(aggregator_close(aggregator, 10, &window), 0);
	synthetic_resolve(window);
	assert_int_equal(store_file_create(path, &out), 0);
	assert_int_equal(encode_window(&options, window, recorded_append, out), 0);
	assert_int_equal(store_file_close(out, NULL), 0);
	window_free(window);
	aggregator_free(aggregator);
	image_unref(image);
	mapped_file_unref(file);

	assert_int_equal(report_load(path, NULL, REPORT_FUNCTIONS, &report, NULL, 0), 0);
	process = &report->events[0].processes[0];
	assert_int_equal(process->function_count, 2);
	assert_string_equal(process->functions[0].name, "f_401010");
	assert_int_equal(process->functions[0].self, process->weight);
	assert_int_equal(process->functions[0].total, process->weight);
	assert_int_equal(process->functions[1].self, 0);
	assert_int_equal(process->functions[1].total, process->weight);
	report_free(report);
}

/*
 * Samples of a stripped library, and one of an address in no mapping; @with_functions: the library's functions are
 * known to begin at 0x401000 and 0x401020.
 */
static void record_stripped(bool with_functions, bool names_ranges)
{
	static const uint64_t ips[][2] = { { 0x7f0000000010, 0x7f0000000020 },
					   { 0x7f0000000030, 0x7f0000000020 },
					   { 0x100, 0x7f0000000010 } };
	const struct encode_options options = {
		.max_bytes = 1 << 20, .form.names_ranges = names_ranges,
	};
	struct mapped_file *file = synthetic_file("/usr/lib/stripped.so", true);
	struct image *image = synthetic_image(7, "program", NULL);
	struct aggregator *aggregator;
	struct store_file *out;
	struct window *window;

	assert_int_equal(aggregator_new(&aggregator), 0);
	assert_int_equal(aggregator_set_profile(aggregator, &synthetic_clock), 0);
	synthetic_map(image, 0x7f0000000000, 0, file);
	for (size_t i = 0; i < ARRAY_SIZE(ips); i++)
		assert_int_equal(synthetic_add(aggregator, &(struct synthetic_sample){
			.time = 5 + i, .image = image, .user = ips[i], .user_count = 2,
			.user_end = STACKTAP_END_COMPLETE }), 0);
	assert_int_equal(aggregator_close(aggregator, 10, &window), 0);
	/* looked at, and nothing found */
	for (size_t i = 0; i < window->location_count; i++) {
		struct location *location = window->locations[i];
		struct object *object = location->file ? mapped_file_object(location->file) : NULL;

		location->object = object ? object_ref(object) : NULL;
		location->is_resolved = true;
		location->address = location->offset + (object ? 0x400000 : 0);
		location->has_function = with_functions && object;
		location->function_start = location->address & ~0x1fULL;
		/* all that a Location can have at once */
		location->is_refused = with_functions;
	}
	assert_int_equal(store_file_create(path, &out), 0);
	assert_int_equal(encode_window(&options, window, recorded_append, out), 0);
	assert_int_equal(store_file_close(out, NULL), 0);
	window_free(window);
	aggregator_free(aggregator);
	image_unref(image);
	mapped_file_unref(file);
}

/* Losses are the source's, so that they are held against all samples, sent or not. */
static void losses_are_of_what_was_drawn_of(void **state)
{
	enum { ONE_IN = 4 };
	struct encode_options options = { .max_bytes = 1 << 24 };
	struct aggregator *aggregator;
	struct report *report;
	struct window *window;
	struct store_file *out;
	char error[256];

	(void)state;
	assert_int_equal(aggregator_new(&aggregator), 0);
	window = synthetic_window(aggregator);
	assert_int_equal(relabel_new(&options.relabel), 0);
	assert_int_equal(relabel_add(options.relabel, "downsample process.pid .* 4", error, sizeof(error)), 0);
	assert_int_equal(store_file_create(path, &out), 0);
	assert_int_equal(encode_window(&options, window, recorded_append, out), 0);
	assert_int_equal(store_file_close(out, NULL), 0);
	assert_int_equal(report_load(path, NULL, REPORT_FUNCTIONS, &report, NULL, 0), 0);
	assert_in_range(report->events[0].samples, 1, 2020 / 2);
	assert_int_equal(report->events[0].drawn, report->events[0].samples * ONE_IN);
	assert_int_equal(report->events[0].quality.lost, 7);
	report_free(report);
	relabel_free(options.relabel);
	window_free(window);
	aggregator_free(aggregator);
}

static void what_has_no_name_is_grouped_by_mapping(void **state)
{
	const struct report_process *process;
	struct report *report;

	(void)state;
	record_stripped(false, false);
	assert_int_equal(report_load(path, NULL, REPORT_FUNCTIONS, &report, NULL, 0), 0);
	process = &report->events[0].processes[0];
	assert_int_equal(process->function_count, 2);
	assert_string_equal(process->functions[0].name, "[no symbol]");
	assert_string_equal(process->functions[0].file, "/usr/lib/stripped.so");
	assert_int_equal(process->functions[0].self_samples, 2);
	assert_int_equal(process->functions[0].total, process->weight);
	assert_false(process->functions[0].is_named);
	assert_string_equal(process->functions[1].name, "[no mapping]");
	assert_int_equal(process->functions[1].self_samples, 1);
	report_free(report);

	assert_int_equal(report_load(path, NULL, REPORT_ADDRESSES, &report, NULL, 0), 0);
	process = &report->events[0].processes[0];
	assert_true(process->function_count >= 4);
	for (size_t i = 0; i < process->function_count; i++)
		assert_memory_equal(process->functions[i].name, "0x", 2);
	report_free(report);
}

static void functions_of_stripped_files_are_told_apart(void **state)
{
	const struct report_process *process;
	struct report *report;

	(void)state;
	record_stripped(true, false);
	assert_int_equal(report_load(path, NULL, REPORT_FUNCTIONS, &report, NULL, 0), 0);
	process = &report->events[0].processes[0];
	assert_int_equal(process->function_count, 3);
	for (size_t i = 0; i < 3; i++) {
		const struct report_function *function = &process->functions[i];

		assert_false(function->is_named);
		assert_int_equal(function->self_samples, 1);
		/* the last stack's caller is in the first of them as well */
		if (!strcmp(function->name, "stripped.so+0x401000"))
			assert_int_equal(function->total, 2 * (process->weight / 3));
		else if (!strcmp(function->name, "stripped.so+0x401020"))
			assert_int_equal(function->total, 2 * (process->weight / 3));
		else
			assert_string_equal(function->name, "[no mapping]");
	}
	/* the one that has an address in no mapping has neither */
	assert_int_equal(report->events[0].quality.named, 0);
	assert_int_equal(report->events[0].quality.by_range, 2);
	report_free(report);
}

/* For backends that drop frames without a Function. What is known of them does not change. */
static void frames_without_a_name_can_be_given_one(void **state)
{
	const struct report_process *process;
	struct report *report;

	(void)state;
	for (int with_functions = 0; with_functions < 2; with_functions++) {
		unsigned int named = 0;

		record_stripped(with_functions, true);
		assert_int_equal(report_load(path, NULL, REPORT_ADDRESSES, &report, NULL, 0), 0);
		process = &report->events[0].processes[0];
		assert_int_equal(process->function_count, with_functions ? 3 : 2);
		for (size_t i = 0; i < process->function_count; i++) {
			const struct report_function *function = &process->functions[i];

			named += function->is_named;
			if (!function->is_named)
				assert_memory_equal(function->name, "0x", 2);
			else if (with_functions)
				assert_memory_equal(function->name, "stripped.so+0x4010", 18);
			else
				assert_string_equal(function->name, "[stripped.so]");
		}
		assert_int_equal(named, with_functions ? 2 : 1);
		assert_int_equal(report->events[0].quality.named, 0);
		assert_int_equal(report->events[0].quality.by_range, with_functions ? 2 : 0);
		report_free(report);
	}
}

static void a_cut_file_gives_what_is_whole(void **state)
{
	struct report *report;
	char error[256];
	int err;

	(void)state;
	for (size_t size = 0; size < good.size; size += size < 300 ? 1 : 997) {
		recorded_bytes(path, good.data, size);
		err = report_load(path, NULL, REPORT_FUNCTIONS, &report, error, sizeof(error));
		if (size < first_size) {
			assert_int_equal(err, size ? -EBADMSG : -ENODATA);
			assert_non_null(strstr(error, path));
			continue;
		}
		assert_int_equal(err, 0);
		assert_int_equal(report->messages, 1);
		assert_int_equal(report->is_cut, size != first_size);
		assert_int_equal(report->events[0].samples, 2020);
		report_free(report);
	}
}

/* A store's directory is its files, one after the other; only those that a span of time needs are read. */
static void a_store_is_read_as_one(void **state)
{
	const char *store = fixture_path("store");
	struct selection selection = { .from = { .base = MOMENT_UNIX } };
	struct report *one, *report;
	char error[256] = "";

	(void)state;
	recorded_bytes(path, good.data, good.size);
	assert_int_equal(report_load(path, NULL, REPORT_FUNCTIONS, &one, NULL, 0), 0);
	fixture_run("mkdir store");
	assert_int_equal(report_load(store, NULL, REPORT_FUNCTIONS, &report, error, sizeof(error)), -ENODATA);
	for (int i = 1; i <= 3; i++)
		fixture_run("cp '%s' store/profiles-000000000%d000.otlp", path, i);
	fixture_run("echo foreign > store/notes");
	assert_int_equal(report_load(store, NULL, REPORT_FUNCTIONS, &report, NULL, 0), 0);
	assert_int_equal(report->messages, 3 * one->messages);
	assert_false(report->is_cut);
	report_free(report);

	/* the daemon may be writing the last one; another that is cut off is told */
	fixture_run("truncate --size=-1 store/profiles-0000000003000.otlp");
	assert_int_equal(report_load(store, NULL, REPORT_FUNCTIONS, &report, NULL, 0), 0);
	assert_int_equal(report->messages, 3 * one->messages - 1);
	assert_false(report->is_cut);
	report_free(report);
	fixture_run("truncate --size=-1 store/profiles-0000000002000.otlp");
	assert_int_equal(report_load(store, NULL, REPORT_FUNCTIONS, &report, NULL, 0), 0);
	assert_int_equal(report->messages, 3 * one->messages - 2);
	assert_true(report->is_cut);
	report_free(report);

	/* all of the first one is from before the second one was begun */
	fixture_run("echo damaged > store/profiles-0000000001000.otlp");
	assert_int_equal(report_load(store, NULL, REPORT_FUNCTIONS, &report, error, sizeof(error)), -EBADMSG);
	selection.from.ns = 2001 * NSEC_PER_MSEC;
	assert_int_equal(report_load(store, &selection, REPORT_FUNCTIONS, &report, error, sizeof(error)), 0);
	assert_int_equal(report->messages, 2 * one->messages - 2);
	report_free(report);
	report_free(one);
}

static void damage_is_told_and_does_no_harm(void **state)
{
	uint8_t *bytes = malloc(good.size);
	unsigned int refused = 0, taken = 0;
	struct report *report;
	char error[256];

	(void)state;
	assert_non_null(bytes);
	srand(20);
	for (int round = 0; round < 250; round++) {
		int changes = 1 + rand() % 4;

		memcpy(bytes, good.data, good.size);
		for (int i = 0; i < changes; i++)
			bytes[(size_t)rand() * 31 % good.size] = (uint8_t)rand();
		recorded_bytes(path, bytes, good.size);
		if (report_load(path, NULL, REPORT_FUNCTIONS, &report, error, sizeof(error))) {
			refused++;
			assert_true(strlen(error) > 10);
		} else {
			taken++;
			report_free(report);
		}
		synthetic_check_pools();
	}
	assert_true(refused > 20 && taken > 20);
	free(bytes);
}

/* Message and its length into the file. */
static int load_message(const uint8_t *data, size_t size, struct report **ret_report)
{
	FILE *file = fopen(path, "w");
	uint8_t length[4] = { (uint8_t)(size >> 24), (uint8_t)(size >> 16), (uint8_t)(size >> 8),
			      (uint8_t)size };

	assert_non_null(file);
	assert_int_equal(fwrite(length, 1, 4, file), 4);
	assert_int_equal(fwrite(data, 1, size, file), size);
	assert_int_equal(fclose(file), 0);
	return report_load(path, NULL, REPORT_FUNCTIONS, ret_report, NULL, 0);
}

static void other_files_are_refused(void **state)
{
	static const uint8_t foreign[] = { 0x7f, 'E', 'L', 'F', 2, 1, 1, 0, 0, 0, 0, 0 };
	/* a message with fields that nobody knows, and no dictionary */
	static const uint8_t unknown[] = { 0x7a, 0x01, 0x00 };
	struct report *report;

	(void)state;
	recorded_bytes(path, foreign, sizeof(foreign));
	assert_int_equal(report_load(path, NULL, REPORT_FUNCTIONS, &report, NULL, 0), -EBADMSG);
	assert_int_equal(load_message(unknown, sizeof(unknown), &report), -EBADMSG);
	assert_int_equal(report_load("/nowhere", NULL, REPORT_FUNCTIONS, &report, NULL, 0), -ENOENT);
	assert_int_equal(report_load(fixture_directory(), NULL, REPORT_FUNCTIONS, &report, NULL, 0), -ENODATA);
}

/* Resource attributes nested so deep that an unpacker which follows them runs out of stack. */
static void depth_does_no_harm(void **state)
{
	const size_t size = 4 << 20;
	uint8_t *data = calloc(1, size);
	struct report *report;
	size_t at = size, length = 0;
	int err;

	(void)state;
	assert_non_null(data);
	/* from the inside out: AnyValue { kvlist_value { values { value { ... } } } } */
	while (at > 64) {
		static const uint8_t tags[] = { 0x12, 0x0a, 0x32 };

		for (size_t i = 0; i < ARRAY_SIZE(tags); i++) {
			uint8_t header[8];
			size_t n = 0, value = length;

			header[n++] = tags[i];
			for (; value >= 0x80; value >>= 7)
				header[n++] = (uint8_t)value | 0x80;
			header[n++] = (uint8_t)value;
			at -= n;
			memcpy(data + at, header, n);
			length += n;
		}
	}
	/* as the value of an attribute of a resource, behind an empty dictionary */
	{
		uint8_t whole[32] = { 0x12, 0x00 };
		struct buffer message = { .pool = POOL_ENCODE };
		uint8_t *body = data + at;

		assert_int_equal(buffer_append(&message, whole, 2), 0);
		assert_int_equal(buffer_field(&message, 1, length + 18), 0);
		assert_int_equal(buffer_field(&message, 1, length + 12), 0);
		assert_int_equal(buffer_field(&message, 1, length + 6), 0);
		assert_int_equal(buffer_field(&message, 2, length), 0);
		assert_int_equal(buffer_append(&message, body, length), 0);
		err = load_message(message.data, message.size, &report);
		buffer_free(&message);
	}
	if (!err)
		report_free(report);
	free(data);
}

/* Two bytes on the wire for each of millions of empty messages. */
static void amplification_is_bounded(void **state)
{
	const size_t size = 60 << 20;
	uint8_t *data = malloc(size);
	struct report *report;

	(void)state;
	assert_non_null(data);
	for (size_t i = 0; i < size; i += 2) {
		data[i] = 0x0a;
		data[i + 1] = 0;
	}
	assert_int_equal(load_message(data, size, &report), -E2BIG);
	free(data);
}

/* One deep stack that very many samples share: more work than bytes can justify. */
static void work_is_bounded(void **state)
{
	enum { FRAMES = 50000, SAMPLES = 50000 };
	struct buffer message = { .pool = POOL_REPORT }, dictionary = { .pool = POOL_REPORT };
	struct buffer profile = { .pool = POOL_REPORT };
	static const uint8_t zeroes[] = { 0x12, 0, 0x12, 0, 0x2a, 0, 0x3a, 0 };
	uint8_t *frames = malloc(FRAMES);
	struct report *report;

	(void)state;
	assert_non_null(frames);
	memset(frames, 1, FRAMES);
	assert_int_equal(buffer_append(&dictionary, zeroes, sizeof(zeroes)), 0);
	/* stack_table[1] = { location_indices: 1, 1, 1, ... } */
	assert_int_equal(buffer_field(&dictionary, 7, buffer_field_size(FRAMES)), 0);
	assert_int_equal(buffer_field(&dictionary, 1, FRAMES), 0);
	assert_int_equal(buffer_append(&dictionary, frames, FRAMES), 0);
	for (int i = 0; i < SAMPLES; i++)
		assert_int_equal(buffer_append(&profile, "\x12\x02\x08\x01", 4), 0);
	assert_int_equal(buffer_field(&message, 2, dictionary.size), 0);
	assert_int_equal(buffer_append(&message, dictionary.data, dictionary.size), 0);
	{
		size_t scope = buffer_field_size(profile.size);

		assert_int_equal(buffer_field(&message, 1, buffer_field_size(scope)), 0);
		assert_int_equal(buffer_field(&message, 2, scope), 0);
		assert_int_equal(buffer_field(&message, 2, profile.size), 0);
		assert_int_equal(buffer_append(&message, profile.data, profile.size), 0);
	}
	assert_int_equal(load_message(message.data, message.size, &report), -EBADMSG);
	buffer_free(&message);
	buffer_free(&dictionary);
	buffer_free(&profile);
	free(frames);
}

/* What Profiles have and adds up; neither what holds at one moment alone, nor other attributes. */
static void shared_counters_are_read(void **state _unused_)
{
	struct view_quality quality = { .stalled = 3, .lost = UINT64_MAX }, sum = { .stalled = 1, .lost = 1 };

	assert_ptr_equal(quality_find(&quality, "stacktap.stalled"), &quality.stalled);
	assert_ptr_equal(quality_find(&quality, "stacktap.deferred_failed"), &quality.deferred_failed);
	assert_null(quality_find(&quality, "stacktap.degraded"));
	assert_null(quality_find(&quality, "stacktap.source"));
	assert_null(quality_find(&quality, "stalled"));
	quality_add(&sum, &quality);
	assert_int_equal(sum.stalled, 4);
	assert_true(sum.lost == UINT64_MAX);
	assert_int_equal(sum.complete, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(totals_are_those_of_the_windows),
		cmocka_unit_test(a_split_file_says_the_same),
		cmocka_unit_test(names_that_come_too_late_are_told),
		cmocka_unit_test(recursion_counts_once),
		cmocka_unit_test(what_has_no_name_is_grouped_by_mapping),
		cmocka_unit_test(functions_of_stripped_files_are_told_apart),
		cmocka_unit_test(frames_without_a_name_can_be_given_one),
		cmocka_unit_test(a_cut_file_gives_what_is_whole),
		cmocka_unit_test(a_store_is_read_as_one),
		cmocka_unit_test(damage_is_told_and_does_no_harm),
		cmocka_unit_test(other_files_are_refused), cmocka_unit_test(depth_does_no_harm),
		cmocka_unit_test(amplification_is_bounded), cmocka_unit_test(work_is_bounded),
		cmocka_unit_test(shared_counters_are_read), cmocka_unit_test(losses_are_of_what_was_drawn_of),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
