// SPDX-License-Identifier: Apache-2.0
/* Cuts of the open window: what is written comes back the same, or not at all. */
#include "unit.h"

#include <string.h>

#include "base/clock.h"
#include "export/cut.h"
#include "export/cut_format.h"
#include "export/cut_reader.h"
#include "export/relabel.h"
#include "synthetic.h"

#define FILE_BYTES (4u << 20)
#define CUTS_MAX 64u

static const struct encode_options plain = { .max_bytes = 2 << 20, .service_name = "shop", .number = 1 };

/* Cuts as a file would have them. */
struct cuts {
	struct buffer bytes[CUTS_MAX];
	struct cut cuts[CUTS_MAX];
	size_t count;
	uint64_t samples;
};

static struct cuts cuts;

static void make_cut(struct cutter *cutter, struct window *window, uint64_t file_bytes, uint64_t named)
{
	struct buffer *bytes = &cuts.bytes[cuts.count];
	struct cut *cut = &cuts.cuts[cuts.count];

	assert_in_range(cuts.count, 0, CUTS_MAX - 1);
	buffer_init(bytes, POOL_QUEUES);
	assert_int_equal(cutter_cut(cutter, window, file_bytes, named, bytes, cut), 0);
	assert_int_equal(cut->window, window->number);
	cuts.samples += cut->samples;
	if (bytes->size)
		cuts.count++;
	else
		buffer_free(bytes);
}

static void free_cuts(void)
{
	for (size_t i = 0; i < cuts.count; i++)
		buffer_free(&cuts.bytes[i]);
	cuts = (struct cuts){ 0 };
}

static int teardown(void **state _unused_)
{
	free_cuts();
	synthetic_check_pools();
	return 0;
}

static int append(void *ctx, struct payload *payload)
{
	int err = buffer_append(ctx, payload->data, payload->size);

	free(payload->data);
	return err;
}

static struct buffer encode(const struct encode_options *options, const struct window *window)
{
	struct buffer bytes = { .pool = POOL_QUEUES };

	assert_int_equal(encode_window(options, window, append, &bytes), 0);
	return bytes;
}

static struct cut_reader *read_cuts(size_t first, size_t end)
{
	struct cut_reader *reader;

	assert_int_equal(cut_reader_new(&reader), 0);
	for (size_t i = first; i < end; i++)
		assert_int_equal(cut_reader_add(reader, cuts.bytes[i].data, cuts.bytes[i].size), 0);
	return reader;
}

/* What was cut of @window from @first to @end is encoded as the window itself would be, had it been recovered. */
static void assert_same(size_t first, size_t end, struct window *window, const struct encode_options *options)
{
	struct cut_reader *reader = read_cuts(first, end);
	const struct window *got = cut_reader_window(reader);
	const struct window saved = *window;
	struct buffer want, have;

	assert_non_null(got);
	assert_int_equal(got->number, window->number);
	assert_true(got->is_recovered);
	memcpy(window->id, got->id, sizeof(got->id));
	window->is_recovered = true;
	window->start = got->start;
	window->end = got->end;
	window->realtime_offset = got->realtime_offset;
	want = encode(options, window);
	have = encode(cut_reader_options(reader), got);
	assert_int_equal(have.size, want.size);
	assert_memory_equal(have.data, want.data, want.size);
	buffer_free(&want);
	buffer_free(&have);
	*window = saved;
	cut_reader_free(reader);
}

/* As if it had never been cut. */
static void forget(struct window *window)
{
	window->news_count = 0;
	for (size_t i = 0; i < window->sample_count; i++) {
		window->samples[i].in_cuts = window->samples[i].journalled = 0;
		window->samples[i].stack->journalled = 0;
		window->news[window->news_count++] = (uint32_t)i;
	}
}

/* As if the window had grown from one cut to the next. */
static void cut_in_steps(struct cutter *cutter, struct window *window, uint32_t steps, uint64_t file_bytes)
{
	const size_t count = window->sample_count;
	uint32_t *counts = calloc(count, sizeof(*counts));

	/* each is new once */
	assert_int_equal(window->news_count, count);
	assert_non_null(counts);
	for (size_t i = 0; i < count; i++)
		counts[i] = window->samples[i].count;
	for (uint32_t step = 1; step <= steps; step++) {
		window->sample_count = count * step / steps;
		window->news_count = 0;
		for (size_t i = 0; i < window->sample_count; i++) {
			const uint32_t some = max_of(window->samples[i].in_cuts, counts[i] * step / steps);

			window->samples[i].count = step == steps ? counts[i] : max_of(some, 1u);
			if (window->samples[i].count > window->samples[i].in_cuts)
				window->news[window->news_count++] = (uint32_t)i;
		}
		make_cut(cutter, window, file_bytes, 0);
	}
	free(counts);
}

static void begin(const struct encode_options *options, struct aggregator **ret_aggregator,
		  struct window **ret_window, struct cutter **ret_cutter)
{
	assert_int_equal(aggregator_new(ret_aggregator), 0);
	*ret_window = synthetic_window(*ret_aggregator);
	assert_int_equal(cutter_new(options, ret_cutter), 0);
}

static void what_was_cut_comes_back(void **state _unused_)
{
	static const struct encode_options many[] = {
		{ .max_bytes = 2 << 20, .service_name = "shop" },
		{ .max_bytes = 2 << 20, .with_cpu = true,
		  .form = { .names_ranges = true, .repeats_functions = true, .kernel_suffix = "_[k]", .max_bytes = 1 << 20 } },
	};
	struct aggregator *aggregator;
	struct window *window;
	struct cutter *cutter;

	for (size_t i = 0; i < ARRAY_SIZE(many); i++)
		for (uint32_t steps = 1; steps < 12; steps += 3) {
			uint64_t samples = 0;

			begin(&many[i], &aggregator, &window, &cutter);
			cut_in_steps(cutter, window, steps, FILE_BYTES);
			for (size_t k = 0; k < window->profile_count; k++)
				samples += window->counts[k].samples;
			assert_int_equal(cuts.samples, samples);
			assert_true(cuts.cuts[0].begins);
			for (size_t k = 1; k < cuts.count; k++)
				assert_false(cuts.cuts[k].begins);
			assert_same(0, cuts.count, window, &many[i]);
			cutter_free(cutter);
			window_free(window);
			aggregator_free(aggregator);
			free_cuts();
		}
}

/* Locations, Functions and images are once in a file; each has the window alone that is asked for. */
static void windows_share_a_file(void **state _unused_)
{
	struct aggregator *aggregator;
	struct window *first, *second;
	struct cutter *cutter;
	size_t of_first, from;

	begin(&plain, &aggregator, &first, &cutter);
	cut_in_steps(cutter, first, 3, FILE_BYTES);
	of_first = cuts.count;
	/* the same again, but for what its files and images are */
	second = synthetic_window(aggregator);
	cut_in_steps(cutter, second, 2, FILE_BYTES);
	assert_false(cuts.cuts[of_first].begins);
	assert_same(0, of_first, first, &plain);
	assert_same(0, cuts.count, second, &plain);

	/* a file that is full ends with its window */
	forget(first);
	from = cuts.count;
	cut_in_steps(cutter, first, 2, 100);
	assert_true(cuts.cuts[from].begins);
	assert_false(cuts.cuts[from + 1].begins);
	assert_same(from, cuts.count, first, &plain);
	/* and what was not written begins another one, in the middle of a window */
	from = cuts.count;
	for (size_t i = 0; i < first->sample_count; i++) {
		first->samples[i].in_cuts = 0;
		first->news[first->news_count++] = (uint32_t)i;
	}
	cutter_begin(cutter);
	cut_in_steps(cutter, first, 2, FILE_BYTES);
	assert_true(cuts.cuts[from].begins);
	assert_same(from, cuts.count, first, &plain);
	cutter_free(cutter);
	window_free(first);
	window_free(second);
	aggregator_free(aggregator);
}

static bool says(const struct buffer *bytes, const char *text)
{
	return memmem(bytes->data, bytes->size, text, strlen(text));
}

static void add(struct aggregator *aggregator, struct image *image, uint64_t time, uint64_t address)
{
	const uint64_t kernel[] = { 0xffffffff81000100 };
	struct synthetic_sample sample = {
		.time = time, .source = synthetic_clock.source_id, .tid = 101, .comm = "program",
		.image = image, .user = &address, .user_count = 1, .kernel = kernel, .kernel_count = 1,
	};

	assert_int_equal(synthetic_add(aggregator, &sample), 0);
}

/* More kinds of threads than are remembered, and times that are further apart than 32 bits of nanoseconds. */
static void many_threads_and_far_times_come_back(void **state _unused_)
{
	enum { COMMS = 200, FAR = 5 };
	struct mapped_file *file = synthetic_file("/usr/bin/program", true);
	struct image *image = synthetic_image(100, "program", NULL);
	struct aggregator *aggregator;
	struct window *window;
	struct cutter *cutter;
	char comm[16];

	assert_int_equal(aggregator_new(&aggregator), 0);
	assert_int_equal(aggregator_set_profile(aggregator, &synthetic_clock), 0);
	assert_int_equal(cutter_new(&plain, &cutter), 0);
	synthetic_map(image, 0x400000, 1, file);
	for (uint64_t i = 0; i < 3 * COMMS; i++) {
		const uint64_t address = 0x401000 + i % 7 * 16;
		const struct synthetic_sample sample = {
			/* forth and back */
			.time = (i % 3 ? 100 : 200) * NSEC_PER_SEC + i, .source = synthetic_clock.source_id,
			.tid = (uint32_t)(i % COMMS), .cpu = (uint32_t)(i % 300), .comm = comm,
			.image = image, .user = &address, .user_count = 1,
		};

		snprintf(comm, sizeof(comm), "thread %u", (unsigned int)(i % COMMS));
		assert_int_equal(synthetic_add(aggregator, &sample), 0);
		if (i % COMMS == COMMS / 2)
			make_cut(cutter, aggregator_window(aggregator), FILE_BYTES, 0);
	}
	/* of one entry; by more than 31 bits, and by more than 32 */
	for (uint64_t i = 0; i < FAR; i++)
		add(aggregator, image, (300 + 10 * (i / 2) + 3 * (i % 2)) * NSEC_PER_SEC, 0x401000);
	synthetic_resolve(aggregator_window(aggregator));
	make_cut(cutter, aggregator_window(aggregator), FILE_BYTES, 1);
	assert_int_equal(cuts.count, 4);
	assert_int_equal(cuts.samples, 3 * COMMS + FAR);
	assert_int_equal(aggregator_close(aggregator, 400 * NSEC_PER_SEC, &window), 0);
	assert_same(0, cuts.count, window, &plain);
	cutter_free(cutter);
	window_free(window);
	aggregator_free(aggregator);
	image_unref(image);
	mapped_file_unref(file);
}

/* What more becomes known of an image is in the next cut, and in each file from then on; what was made by others' options is not. */
static void a_resource_is_as_known(void **state _unused_)
{
	static const struct encode_options other = { .max_bytes = 2 << 20, .service_name = "stall", .number = 2 };
	struct mapped_file *file = synthetic_file("/usr/bin/program", true);
	struct image *image = synthetic_image(100, "program", NULL);
	struct cutter *cutter, *another;
	struct aggregator *aggregator;
	struct image_context *context;

	assert_int_equal(aggregator_new(&aggregator), 0);
	assert_int_equal(aggregator_set_profile(aggregator, &synthetic_clock), 0);
	assert_int_equal(cutter_new(&plain, &cutter), 0);
	assert_int_equal(cutter_new(&other, &another), 0);
	synthetic_map(image, 0x400000, 1, file);
	for (uint64_t i = 0; i < 4; i++) {
		if (i == 2) {
			context = calloc(1, sizeof(*context));
			assert_non_null(context);
			context->attributes = strdup("service.namespace=ship");
			assert_int_equal(image_set_context(image, context), 0);
		}
		cutter_begin(cutter);
		add(aggregator, image, 1000 + i, 0x401000);
		make_cut(cutter, aggregator_window(aggregator), FILE_BYTES, 0);
		assert_true(cuts.cuts[i].begins);
		assert_true(says(&cuts.bytes[i], "shop"));
		assert_int_equal(says(&cuts.bytes[i], "ship"), i >= 2);
	}
	add(aggregator, image, 2000, 0x401000);
	make_cut(another, aggregator_window(aggregator), FILE_BYTES, 0);
	assert_true(says(&cuts.bytes[4], "stall"));
	assert_true(says(&cuts.bytes[4], "ship"));
	assert_false(says(&cuts.bytes[4], "shop"));
	cutter_free(cutter);
	cutter_free(another);
	aggregator_free(aggregator);
	image_unref(image);
	mapped_file_unref(file);
}

/* What is kept of it for the next time takes nothing of the half that processes themselves may need, and asks for nothing. */
static void a_kept_resource_leaves_room_for_processes(void **state _unused_)
{
	struct mapped_file *file = synthetic_file("/usr/bin/program", true);
	struct image *image = synthetic_image(100, "program", NULL);
	struct pool *pool = pool_get(POOL_PROCESSES);
	const uint64_t refused = atomic_load(&pool->refused);
	const size_t limit = pool->limit;
	struct aggregator *aggregator;
	struct cutter *cutter;

	assert_int_equal(aggregator_new(&aggregator), 0);
	assert_int_equal(aggregator_set_profile(aggregator, &synthetic_clock), 0);
	assert_int_equal(cutter_new(&plain, &cutter), 0);
	synthetic_map(image, 0x400000, 1, file);
	for (uint64_t i = 0; i < 3; i++) {
		const size_t used = pool->used;

		/* of less than half in use hardly anything is left, but much of all */
		pool->limit = i < 2 ? 2 * used + 100 : 2 * used + 10000;
		cutter_begin(cutter);
		add(aggregator, image, 1000 + i, 0x401000);
		make_cut(cutter, aggregator_window(aggregator), FILE_BYTES, 0);
		assert_true(says(&cuts.bytes[i], "shop"));
		assert_int_equal(atomic_load(&image->resource) != NULL, i == 2);
		assert_int_equal(pool->used > used, i == 2);
	}
	pool->limit = limit;
	assert_int_equal(atomic_load(&pool->refused), refused);
	cutter_free(cutter);
	aggregator_free(aggregator);
	image_unref(image);
	mapped_file_unref(file);
}

/* As thread B comes to know: no names at first, then those that it has for the window before. */
static void names_come_when_they_are_known(void **state _unused_)
{
	struct mapped_file *file = synthetic_file("/usr/bin/program", true), *kernel = synthetic_kernel();
	struct image *image = synthetic_image(100, "program", NULL);
	struct window *first, *second;
	struct aggregator *aggregator;
	struct cut_reader *reader;
	struct cutter *cutter;
	struct buffer bytes;

	assert_int_equal(aggregator_new(&aggregator), 0);
	aggregator_set_kernel(aggregator, kernel);
	assert_int_equal(aggregator_set_profile(aggregator, &synthetic_clock), 0);
	assert_int_equal(cutter_new(&plain, &cutter), 0);
	synthetic_map(image, 0x400000, 1, file);
	add(aggregator, image, 1000, 0x401000);
	make_cut(cutter, aggregator_window(aggregator), FILE_BYTES, 0);
	make_cut(cutter, aggregator_window(aggregator), FILE_BYTES, 0);
	assert_int_equal(cuts.count, 1);
	reader = read_cuts(0, 1);
	bytes = encode(cut_reader_options(reader), cut_reader_window(reader));
	assert_true(says(&bytes, "stacktap.recovered"));
	assert_true(says(&bytes, "stacktap.unnamed"));
	assert_true(says(&bytes, "/usr/bin/program"));
	assert_false(says(&bytes, "stacktap.lost"));
	assert_false(says(&bytes, "f_40"));
	/* 0xffffffff81000100, as a varint: where the kernel lies is nobody's business */
	assert_false(says(&bytes, "\x80\x82\x80\x88\xf8\xff\xff\xff\xff\x01"));
	assert_false(says(&cuts.bytes[0], "\x80\x82\x80\x88\xf8\xff\xff\xff\xff\x01"));
	buffer_free(&bytes);
	cut_reader_free(reader);

	/* the next window has begun, and its first cut is made, when the one before gets its names */
	assert_int_equal(aggregator_close(aggregator, 2000, &first), 0);
	add(aggregator, image, 2100, 0x401000);
	make_cut(cutter, aggregator_window(aggregator), FILE_BYTES, 0);
	synthetic_resolve(first);
	add(aggregator, image, 2200, 0x401000);
	make_cut(cutter, aggregator_window(aggregator), FILE_BYTES, 1);
	assert_int_equal(cuts.count, 3);
	assert_true(cuts.bytes[2].size > cuts.bytes[1].size);
	assert_int_equal(aggregator_close(aggregator, 3000, &second), 0);
	assert_same(0, 3, second, &plain);
	reader = read_cuts(0, 3);
	bytes = encode(cut_reader_options(reader), cut_reader_window(reader));
	assert_true(says(&bytes, "f_40"));
	assert_false(says(&bytes, "stacktap.unnamed"));
	buffer_free(&bytes);
	cut_reader_free(reader);
	cutter_free(cutter);
	window_free(first);
	window_free(second);
	aggregator_free(aggregator);
	image_unref(image);
	mapped_file_unref(file);
	mapped_file_unref(kernel);
}

/* The file is begun anew in the middle of the window, and has a draft of the one before only later. */
static void names_come_into_the_next_file(void **state _unused_)
{
	struct mapped_file *file = synthetic_file("/usr/bin/program", true);
	struct image *image = synthetic_image(100, "program", NULL);
	struct aggregator *aggregator;
	struct window *first, *second;
	struct cut_reader *reader;
	struct cutter *cutter;
	struct buffer bytes;

	assert_int_equal(aggregator_new(&aggregator), 0);
	assert_int_equal(aggregator_set_profile(aggregator, &synthetic_clock), 0);
	assert_int_equal(cutter_new(&plain, &cutter), 0);
	synthetic_map(image, 0x400000, 1, file);
	add(aggregator, image, 1000, 0x401000);
	assert_int_equal(aggregator_close(aggregator, 2000, &first), 0);
	add(aggregator, image, 2100, 0x401000);
	make_cut(cutter, aggregator_window(aggregator), FILE_BYTES, 0);
	cutter_begin(cutter);
	add(aggregator, image, 2200, 0x402000);
	make_cut(cutter, aggregator_window(aggregator), FILE_BYTES, 1);
	add(aggregator, image, 2300, 0x401000);
	make_cut(cutter, aggregator_window(aggregator), FILE_BYTES, 1);
	synthetic_resolve(first);
	add(aggregator, image, 2400, 0x402000);
	make_cut(cutter, aggregator_window(aggregator), FILE_BYTES, 2);
	assert_int_equal(cuts.count, 4);
	reader = read_cuts(1, 4);
	bytes = encode(cut_reader_options(reader), cut_reader_window(reader));
	assert_true(says(&bytes, "f_402000"));
	buffer_free(&bytes);
	cut_reader_free(reader);
	cutter_free(cutter);
	assert_int_equal(aggregator_close(aggregator, 3000, &second), 0);
	window_free(first);
	window_free(second);
	aggregator_free(aggregator);
	image_unref(image);
	mapped_file_unref(file);
}

/* What a rule leaves out is not written, nor what it could leave out once more is known of it. */
static void rules_hold_for_cuts(void **state _unused_)
{
	struct encode_options options = plain;
	struct aggregator *aggregator;
	struct window *window;
	struct cutter *cutter;
	uint64_t all = 0, some;
	char error[256];

	begin(&plain, &aggregator, &window, &cutter);
	cut_in_steps(cutter, window, 1, FILE_BYTES);
	all = cuts.samples;
	assert_true(says(&cuts.bytes[0], "0123456789abcdef"));
	cutter_free(cutter);
	free_cuts();

	/* of the third process nothing is known */
	options.number = 2;
	assert_int_equal(relabel_new(&options.relabel), 0);
	assert_int_equal(relabel_add(options.relabel, "drop process.executable.name other", error, sizeof(error)), 0);
	assert_int_equal(cutter_new(&options, &cutter), 0);
	forget(window);
	cut_in_steps(cutter, window, 2, FILE_BYTES);
	some = cuts.samples;
	assert_in_range(some, 1, all - 1);
	cutter_free(cutter);
	free_cuts();

	options.number = 3;
	assert_int_equal(relabel_add(options.relabel, "drop container.id 0123.*", error, sizeof(error)), 0);
	assert_int_equal(cutter_new(&options, &cutter), 0);
	forget(window);
	cut_in_steps(cutter, window, 2, FILE_BYTES);
	assert_in_range(cuts.samples, 1, some - 1);
	/* what could be left out later is still new, and makes no cut and no file by itself */
	assert_true(window->news_count > 0);
	some = cuts.count;
	make_cut(cutter, window, FILE_BYTES, 0);
	assert_int_equal(cuts.count, some);
	for (size_t i = 0; i < cuts.count; i++)
		assert_false(says(&cuts.bytes[i], "0123456789abcdef"));
	assert_int_equal(relabel_samples(options.relabel), 0);
	cutter_free(cutter);
	relabel_free(options.relabel);
	window_free(window);
	aggregator_free(aggregator);
}

/* The same samples of a service are sent, and stand for as much, whether its daemon is killed or not. */
static void downsampling_is_the_same(void **state _unused_)
{
	struct encode_options options = plain;
	struct aggregator *aggregator;
	struct window *window;
	struct cutter *cutter;
	char error[256];

	assert_int_equal(relabel_new(&options.relabel), 0);
	assert_int_equal(relabel_add(options.relabel, "downsample process.pid 100 3", error, sizeof(error)), 0);
	assert_int_equal(relabel_add(options.relabel, "downsample container.id .+ 7", error, sizeof(error)), 0);
	/* of which nothing is known, so that it is not cut */
	assert_int_equal(relabel_add(options.relabel, "drop process.pid 300", error, sizeof(error)), 0);
	begin(&options, &aggregator, &window, &cutter);
	cut_in_steps(cutter, window, 1, FILE_BYTES);
	assert_same(0, cuts.count, window, &options);
	cutter_free(cutter);
	window_free(window);
	aggregator_free(aggregator);
	relabel_free(options.relabel);
}

/* Where memory ends the cut does, and the next one has what it lacks. */
static void little_memory_loses_nothing(void **state _unused_)
{
	struct pool *pool = pool_get(POOL_ENCODE);
	const size_t limit = pool->limit;
	struct aggregator *aggregator;
	struct window *window;
	struct cutter *cutter;
	struct cut_reader *reader;
	struct buffer bytes = { .pool = POOL_ENCODE };
	uint64_t samples = 0, read = 0;
	struct cut cut;
	unsigned int files = 0;

	begin(&plain, &aggregator, &window, &cutter);
	for (size_t i = 0; i < window->profile_count; i++)
		samples += window->counts[i].samples;
	pool->limit = 100;
	assert_int_equal(cutter_cut(cutter, window, FILE_BYTES, 0, &bytes, &cut), -ENOBUFS);
	assert_int_equal(bytes.size, 0);
	pool->limit = 16 << 10;
	assert_int_equal(cut_reader_new(&reader), 0);
	for (unsigned int i = 0; i < 100; i++) {
		assert_int_equal(cutter_cut(cutter, window, FILE_BYTES, 0, &bytes, &cut), 0);
		if (!bytes.size)
			break;
		if (cut.begins) {
			cut_reader_free(reader);
			assert_int_equal(cut_reader_new(&reader), 0);
			files++;
		}
		assert_int_equal(cut_reader_add(reader, bytes.data, bytes.size), 0);
		read += cut.samples;
		buffer_free(&bytes);
	}
	assert_true(files > 1);
	assert_int_equal(read, samples);
	cut_reader_free(reader);
	pool->limit = limit;
	cutter_free(cutter);
	window_free(window);
	aggregator_free(aggregator);
}

static uint64_t random_state = 88172645463325252;

static uint64_t random_below(uint64_t limit)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state % limit;
}

/* All cuts, one of them with other bytes: whatever that is taken for, it is encoded or refused. */
static void read_damaged(size_t which, const uint8_t *data, size_t size)
{
	struct cut_reader *reader;
	struct buffer bytes;
	int err = 0;

	assert_int_equal(cut_reader_new(&reader), 0);
	for (size_t i = 0; !err && i < cuts.count; i++)
		err = i == which ? cut_reader_add(reader, data, size) :
				   cut_reader_add(reader, cuts.bytes[i].data, cuts.bytes[i].size);
	assert_true(!err || err == -EBADMSG || err == -ENOBUFS);
	if (cut_reader_window(reader)) {
		bytes = encode(cut_reader_options(reader), cut_reader_window(reader));
		buffer_free(&bytes);
	}
	cut_reader_free(reader);
}

/* Behind its checksum, which a file that somebody made has right: no byte of it is trusted. */
static void no_byte_is_trusted(void **state _unused_)
{
	struct mapped_file *file = synthetic_file("/usr/bin/program", true), *kernel = synthetic_kernel();
	struct image *image = synthetic_image(100, "program", NULL);
	struct aggregator *aggregator;
	struct window *window;
	struct cutter *cutter;

	assert_int_equal(aggregator_new(&aggregator), 0);
	aggregator_set_kernel(aggregator, kernel);
	assert_int_equal(aggregator_set_profile(aggregator, &synthetic_clock), 0);
	assert_int_equal(cutter_new(&plain, &cutter), 0);
	synthetic_map(image, 0x400000, 1, file);
	for (uint64_t i = 0; i < 3; i++)
		add(aggregator, image, 1000 + i, 0x401000 + i % 2 * 16);
	assert_int_equal(aggregator_close(aggregator, 2000, &window), 0);
	synthetic_resolve(window);
	cut_in_steps(cutter, window, 2, FILE_BYTES);
	assert_int_equal(cuts.count, 2);
	for (size_t which = 0; which < cuts.count; which++) {
		const size_t size = cuts.bytes[which].size;
		uint8_t *data = malloc(size);

		assert_non_null(data);
		for (size_t at = 0; at < size; at++) {
			memcpy(data, cuts.bytes[which].data, size);
			/* none behind its end is there to be read */
			read_damaged(which, memcpy(data + size - at, cuts.bytes[which].data, at), at);
			for (unsigned int bit = 0; bit < 8; bit++) {
				memcpy(data, cuts.bytes[which].data, size);
				data[at] ^= (uint8_t)(1 << bit);
				read_damaged(which, data, size);
			}
		}
		for (unsigned int i = 0; i < 2000; i++) {
			memcpy(data, cuts.bytes[which].data, size);
			for (unsigned int k = 0; k < 3; k++)
				data[random_below(size)] = (uint8_t)random_below(256);
			read_damaged(which, data, size);
		}
		free(data);
	}
	cutter_free(cutter);
	window_free(window);
	aggregator_free(aggregator);
	image_unref(image);
	mapped_file_unref(file);
	mapped_file_unref(kernel);
}

int main(void)
{
#define T(name) cmocka_unit_test_teardown(name, teardown)
	const struct CMUnitTest tests[] = {
		T(what_was_cut_comes_back),
		T(windows_share_a_file),
		T(many_threads_and_far_times_come_back),
		T(a_resource_is_as_known),
		T(a_kept_resource_leaves_room_for_processes),
		T(names_come_when_they_are_known),
		T(names_come_into_the_next_file),
		T(rules_hold_for_cuts),
		T(downsampling_is_the_same),
		T(little_memory_loses_nothing),
		T(no_byte_is_trusted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
