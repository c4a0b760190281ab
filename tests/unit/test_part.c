// SPDX-License-Identifier: Apache-2.0
/* Parts of an open window: each sample in one of them, and what they say when encoded. */
#include "unit.h"

#include <string.h>

#include "export/encode.h"
#include "synthetic.h"

static struct aggregator *aggregator;
static struct mapped_file *file;
static struct image *image;

static int setup(void **state _unused_)
{
	struct mapped_file *kernel = synthetic_kernel();

	assert_int_equal(aggregator_new(&aggregator), 0);
	aggregator_set_kernel(aggregator, kernel);
	mapped_file_unref(kernel);
	assert_int_equal(aggregator_set_profile(aggregator, &synthetic_clock), 0);
	assert_int_equal(aggregator_set_profile(aggregator, &synthetic_cycles), 0);
	file = synthetic_file("/usr/bin/program", true);
	image = synthetic_image(100, "program", NULL);
	synthetic_map(image, 0x400000, 1, file);
	return 0;
}

static int teardown(void **state _unused_)
{
	aggregator_free(aggregator);
	image_unref(image);
	mapped_file_unref(file);
	synthetic_check_pools();
	return 0;
}

static void add(uint64_t time, uint16_t source, uint64_t address)
{
	const uint64_t kernel[] = { 0xffffffff81000100 };
	struct synthetic_sample sample = {
		.time = time, .period = 7 * time, .source = source, .tid = 101, .comm = "program",
		.image = image, .user = &address, .user_count = 1, .kernel = kernel, .kernel_count = 1,
	};

	assert_int_equal(synthetic_add(aggregator, &sample), 0);
}

static struct window *part(void)
{
	struct window *window;

	assert_int_equal(aggregator_part(aggregator, &window), 0);
	return window;
}

static void each_sample_is_in_one_part(void **state _unused_)
{
	struct window *first, *second, *whole, *next;

	assert_null(part());
	for (uint64_t time = 1000; time < 1100; time++)
		add(time, synthetic_clock.source_id, 0x401000 + time % 3 * 16);
	aggregator_add_losses(aggregator, synthetic_clock.source_id, &(struct window_losses){ .lost = 5 });
	first = part();
	assert_int_equal(first->counts[0].samples, 100);
	assert_int_equal(first->start, 1000);
	assert_int_equal(first->end, 1100);
	assert_null(part());
	add(1200, synthetic_clock.source_id, 0x401000);
	add(1300, synthetic_cycles.source_id, 0x401010);
	second = part();
	assert_int_equal(second->sample_count, 2);
	assert_int_equal(second->samples[0].count, 1);
	assert_int_equal(second->samples[0].times[0], 1200);
	assert_int_equal(second->samples[1].values[0], 7 * 1300);
	assert_int_equal(second->number, first->number);
	assert_memory_not_equal(second->id, first->id, sizeof(first->id));

	/* the window does not know of them, and they outlive it */
	assert_int_equal(aggregator_close(aggregator, 2000, &whole), 0);
	assert_int_equal(whole->counts[0].samples, 101);
	assert_int_equal(whole->counts[0].lost, 5);
	assert_int_equal(whole->number, first->number);
	window_free(whole);
	assert_int_equal(first->samples[0].stack->count, 2);
	assert_null(part());
	add(2100, synthetic_clock.source_id, 0x401000);
	next = part();
	assert_int_equal(next->number, first->number + 1);
	window_free(next);
	window_free(first);
	window_free(second);
}

static int keep(void *ctx, struct payload *payload)
{
	*(struct payload *)ctx = *payload;
	return 0;
}

static struct payload encode(const struct window *window)
{
	const struct encode_options options = { .max_bytes = 1 << 20 };
	struct payload payload = { 0 };

	assert_int_equal(encode_window(&options, window, keep, &payload), 0);
	return payload;
}

static bool says(const struct payload *payload, const char *text)
{
	return memmem(payload->data, payload->size, text, strlen(text));
}

/* What thread B has not named yet has no name, and where the kernel is stays unsaid. */
static void parts_say_what_they_are(void **state _unused_)
{
	/* 0xffffffff81000100, as a varint */
	static const char kernel_address[] = "\x80\x82\x80\x88\xf8\xff\xff\xff\xff\x01";
	struct window *first, *second, *whole;
	struct payload payload;

	add(1000, synthetic_clock.source_id, 0x401000);
	first = part();
	payload = encode(first);
	assert_int_equal(payload.samples, 1);
	assert_int_equal(payload.window, first->number);
	assert_true(payload.is_last);
	assert_true(says(&payload, "stacktap.recovered"));
	assert_true(says(&payload, "stacktap.unnamed"));
	assert_false(says(&payload, "stacktap.lost"));
	assert_true(says(&payload, "/usr/bin/program"));
	assert_false(says(&payload, "f_40"));
	assert_false(says(&payload, kernel_address));
	free(payload.data);
	assert_int_equal(aggregator_close(aggregator, 2000, &whole), 0);
	synthetic_resolve(whole);
	payload = encode(whole);
	assert_false(says(&payload, "stacktap.recovered"));
	assert_false(says(&payload, "stacktap.unnamed"));
	assert_true(says(&payload, "stacktap.lost"));
	free(payload.data);

	/* names that an earlier window has got are there */
	add(2100, synthetic_clock.source_id, 0x401000);
	second = part();
	payload = encode(second);
	assert_true(says(&payload, "f_40"));
	assert_false(says(&payload, "stacktap.unnamed"));
	free(payload.data);
	window_free(second);
	window_free(whole);
	window_free(first);
}

static struct payload add_to(struct encoder *encoder)
{
	struct payload payload = { 0 };
	struct window *window = part();

	assert_int_equal(encoder_add(encoder, window, keep, &payload), 0);
	window_free(window);
	return payload;
}

/* A part has what the ones before it have not: keys once, and a name when thread B has published it. */
static void parts_continue_each_other(void **state _unused_)
{
	const struct encode_options options = { .max_bytes = 1 << 20, .is_draft = true };
	struct payload first, second, third, fourth;
	struct window *whole, *next;
	struct encoder *encoder;

	add(1000, synthetic_clock.source_id, 0x401000);
	assert_int_equal(aggregator_close(aggregator, 2000, &whole), 0);
	assert_int_equal(encoder_new(&options, &encoder), 0);
	for (uint64_t address = 0x401000; address < 0x401400; address += 16)
		add(2100, synthetic_clock.source_id, address);
	first = add_to(encoder);
	assert_false(first.continues);
	assert_true(says(&first, "profile.frame.type"));
	assert_true(says(&first, "stacktap.unnamed"));
	assert_false(says(&first, "f_40"));
	add(2200, synthetic_clock.source_id, 0x401000);
	add(2200, synthetic_clock.source_id, 0x401010);
	second = add_to(encoder);
	assert_true(second.continues);
	assert_int_equal(second.samples, 2);
	assert_true(second.size < first.size / 2);
	assert_false(says(&second, "profile.frame.type"));
	assert_false(says(&second, "f_40"));
	synthetic_resolve(whole);
	add(2300, synthetic_clock.source_id, 0x401000);
	third = add_to(encoder);
	assert_true(third.continues);
	assert_int_equal(third.samples, 1);
	assert_true(says(&third, "f_40"));
	assert_false(says(&third, "profile.frame.type"));
	/* of the next window, whose Locations may be where others were */
	assert_int_equal(aggregator_close(aggregator, 3000, &next), 0);
	window_free(next);
	add(3100, synthetic_clock.source_id, 0x401000);
	fourth = add_to(encoder);
	assert_false(fourth.continues);
	assert_true(says(&fourth, "profile.frame.type"));
	free(fourth.data);
	encoder_free(encoder);
	free(first.data);
	free(second.data);
	free(third.data);
	window_free(whole);
}

/* Nothing is lost to a part that there is no memory for. */
static void a_part_without_room_is_in_the_next(void **state _unused_)
{
	struct pool *pool = pool_get(POOL_AGGREGATE);
	const size_t limit = pool->limit;
	struct window *window;

	add(1000, synthetic_clock.source_id, 0x401000);
	pool->limit = pool->used;
	assert_int_equal(aggregator_part(aggregator, &window), -ENOBUFS);
	assert_null(window);
	pool->limit = limit;
	window = part();
	assert_int_equal(window->counts[0].samples, 1);
	window_free(window);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(each_sample_is_in_one_part),
		T(parts_say_what_they_are),
		T(parts_continue_each_other),
		T(a_part_without_room_is_in_the_next),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
