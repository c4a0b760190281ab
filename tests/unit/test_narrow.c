// SPDX-License-Identifier: Apache-2.0
#include "fixture.h"
#include "synthetic.h"

#include <stdlib.h>

#include "view/narrow.h"

static struct payload message;	/* a window, whole */

static int keep(void *ctx _unused_, struct payload *payload)
{
	assert_null(message.data);
	message = *payload;
	return 0;
}

static int setup(void **state _unused_)
{
	const struct encode_options options = { .max_bytes = 1 << 24, .service_name = "shop" };
	struct aggregator *aggregator;
	struct window *window;

	assert_int_equal(aggregator_new(&aggregator), 0);
	window = synthetic_window(aggregator);
	assert_int_equal(encode_window(&options, window, keep, NULL), 0);
	window_free(window);
	aggregator_free(aggregator);
	return 0;
}

static int teardown(void **state _unused_)
{
	free(message.data);
	synthetic_check_pools();
	return 0;
}

/* What a reader finds. */
struct found {
	uint64_t profiles, samples, weight, frames, with_quality;
	char process[64], thread[64];	/* of the last Sample */
};

static int count_profile(void *ctx, const struct view_profile *profile)
{
	struct found *found = ctx;

	found->profiles++;
	found->with_quality += profile->has_quality;
	return 0;
}

static int count_sample(void *ctx, const struct view_profile *profile,
			const struct view_sample *sample)
{
	struct found *found = ctx;

	found->samples += sample->samples;
	found->weight += sample->weight;
	found->frames += sample->frame_count;
	snprintf(found->process, sizeof(found->process), "%s", profile->process.name);
	snprintf(found->thread, sizeof(found->thread), "%s", sample->thread);
	return 0;
}

static struct found read_all(const uint8_t *data, size_t size, const struct selection *selection)
{
	struct found found = { 0 };
	const struct reader_sink sink = { .ctx = &found, .profile = count_profile,
					  .sample = count_sample };
	struct texts texts;
	struct reader *reader;

	texts_init(&texts);
	assert_int_equal(reader_new(&texts, selection, false, &sink, &reader), 0);
	assert_int_equal(reader_add(reader, data, size), 0);
	reader_free(reader);
	texts_free(&texts);
	return found;
}

static int narrow(const struct selection *selection, const uint8_t *data, size_t size,
		  struct buffer *ret_message)
{
	struct texts texts;
	struct reader *reader;
	int ret;

	texts_init(&texts);
	assert_int_equal(reader_new(&texts, selection, false, &(struct reader_sink){ 0 }, &reader), 0);
	ret = narrow_message(reader, data, size, ret_message);
	reader_free(reader);
	texts_free(&texts);
	return ret;
}

/* The rest of a message is what a reader with the selection finds in the whole one. */
static struct found assert_narrowed(const struct selection *selection)
{
	const struct found all = read_all(message.data, message.size, NULL);
	struct found want = read_all(message.data, message.size, selection), have;
	struct buffer rest = { .pool = POOL_REPORT };

	assert_int_equal(narrow(selection, message.data, message.size, &rest), 0);
	have = read_all(rest.data, rest.size, NULL);
	assert_int_equal(have.profiles, want.profiles);
	assert_int_equal(have.samples, want.samples);
	assert_int_equal(have.weight, want.weight);
	assert_int_equal(have.frames, want.frames);
	assert_true(have.samples && have.samples < all.samples && rest.size < message.size);
	buffer_free(&rest);
	return have;
}

static void a_part_is_what_a_reader_selects(void **state _unused_)
{
	const struct found all = read_all(message.data, message.size, NULL);
	struct found part;

	part = assert_narrowed(&(struct selection){ .process = all.process });
	assert_string_equal(part.process, all.process);
	assert_int_equal(part.with_quality, part.profiles);
}

static void a_part_of_a_profile_has_no_counts_of_the_whole(void **state _unused_)
{
	const struct found all = read_all(message.data, message.size, NULL);
	struct selection selection = { .thread = all.thread };
	struct buffer rest = { .pool = POOL_REPORT };
	struct found part;

	part = assert_narrowed(&selection);
	assert_string_equal(part.thread, all.thread);
	assert_int_equal(narrow(&selection, message.data, message.size, &rest), 0);
	part = read_all(rest.data, rest.size, NULL);
	assert_true(part.with_quality < part.profiles);
	buffer_free(&rest);
}

static void what_selects_all_changes_nothing(void **state _unused_)
{
	struct found all = read_all(message.data, message.size, NULL), have;
	struct buffer rest = { .pool = POOL_REPORT };

	assert_int_equal(narrow(&(struct selection){ 0 }, message.data, message.size, &rest), 0);
	have = read_all(rest.data, rest.size, NULL);
	assert_memory_equal(&have, &all, sizeof(all));
	buffer_free(&rest);
}

static void nothing_is_left_of_what_has_none(void **state _unused_)
{
	struct buffer rest = { .pool = POOL_REPORT };

	assert_int_equal(narrow(&(struct selection){ .process = "none" }, message.data, message.size,
				&rest), 0);
	assert_int_equal(rest.size, 0);
	assert_int_equal(narrow(&(struct selection){ .thread = "none" }, message.data, message.size,
				&rest), 0);
	assert_int_equal(rest.size, 0);
	assert_int_equal(narrow(&(struct selection){ .event = "none" }, message.data, message.size,
				&rest), 0);
	assert_int_equal(rest.size, 0);
	buffer_free(&rest);
}

static void damage_is_told(void **state _unused_)
{
	struct selection selection = { .thread = "none" };
	struct buffer rest = { .pool = POOL_REPORT };
	uint8_t *bytes = malloc(message.size);

	assert_non_null(bytes);
	assert_int_equal(narrow(&selection, (const uint8_t *)"\xff\xff\xff", 3, &rest), -EBADMSG);
	/* no byte that is another one does more than fail */
	for (size_t i = 0; i < message.size; i += 251) {
		memcpy(bytes, message.data, message.size);
		bytes[i] ^= 0x55;
		narrow(&selection, bytes, message.size, &rest);
	}
	free(bytes);
	buffer_free(&rest);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_part_is_what_a_reader_selects),
		cmocka_unit_test(a_part_of_a_profile_has_no_counts_of_the_whole),
		cmocka_unit_test(what_selects_all_changes_nothing),
		cmocka_unit_test(nothing_is_left_of_what_has_none),
		cmocka_unit_test(damage_is_told),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
