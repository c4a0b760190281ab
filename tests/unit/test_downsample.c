// SPDX-License-Identifier: Apache-2.0
/* One in N samples of a service: unbiased, the same wherever they are drawn, and true in what is sent. */
#include "unit.h"

#include <math.h>
#include <string.h>

#include "export/cut.h"
#include "export/cut_reader.h"
#include "export/downsample.h"
#include "export/otlp.h"
#include "export/relabel.h"
#include "synthetic.h"

/* Is a count what draws of this chance give, within three standard deviations? */
static bool is_fair(uint64_t count, uint64_t draws, double chance)
{
	return fabs((double)count - (double)draws * chance) <= 3 * sqrt((double)draws * chance * (1 - chance));
}

/* Samples at a fixed rate, of a program that repeats itself every 1 to 16 periods. */
static void draws_follow_no_rhythm(void **state _unused_)
{
	static const uint32_t chosen[] = { 2, 3, 5, 10, 64, 1000 };
	enum { DRAWS = 240000, PHASES = 16 };
	const uint64_t period = 10101010;

	for (size_t i = 0; i < ARRAY_SIZE(chosen); i++) {
		const double chance = 1.0 / chosen[i];
		uint64_t kept = 0, pairs = 0, by_phase[PHASES] = { 0 };
		bool before = false;

		for (uint64_t k = 0; k < DRAWS; k++) {
			const bool keeps = downsample_keeps(chosen[i], 5000000000 + k * period, 4711);

			kept += keeps;
			pairs += keeps && before;
			by_phase[k % PHASES] += keeps;
			before = keeps;
			/* what a larger N keeps a smaller one does */
			assert_true(!keeps || downsample_keeps(chosen[i] - 1, 5000000000 + k * period, 4711));
		}
		assert_true(is_fair(kept, DRAWS, chance));
		assert_true(is_fair(pairs, DRAWS - 1, chance * chance));
		for (size_t k = 0; k < PHASES; k++)
			assert_true(is_fair(by_phase[k], DRAWS / PHASES, chance));
	}
	assert_true(downsample_keeps(1, 5, 6));
}

/* Threads that are sampled in the same nanosecond are drawn each for itself. */
static void threads_are_drawn_apart(void **state _unused_)
{
	enum { DRAWS = 100000 };
	uint64_t both = 0, kept = 0;

	for (uint64_t k = 0; k < DRAWS; k++) {
		const bool keeps = downsample_keeps(10, k * 1000003, 100);

		kept += keeps;
		both += keeps && downsample_keeps(10, k * 1000003, 101);
	}
	assert_true(is_fair(kept, DRAWS, 0.1));
	assert_true(is_fair(both, DRAWS, 0.01));
}

/* What a window's payloads have of one process, by its mode: 0 samples of a period, 1 values. */
struct sent {
	uint64_t samples[2], total[2], times;	/* times: their sum, which tells one choice from another */
	uint64_t downsampled, period;
};

struct payloads {
	struct sent of[4];	/* 100, 200, 300 and the kernel's */
	uint64_t samples;
	size_t locations;
};

static size_t process_of(const OtlpResource *resource)
{
	for (size_t i = 0; i < resource->n_attributes; i++)
		if (!strcmp(resource->attributes[i]->key, "process.pid"))
			return (size_t)resource->attributes[i]->value->int_value / 100 - 1;
	return 3;
}

static void add_profile(struct sent *sent, const OtlpProfile *profile, const OtlpDictionary *dictionary)
{
	const size_t mode = profile->n_samples && profile->samples[0]->n_values;

	if (!mode)
		sent->period = (uint64_t)profile->period;
	else
		assert_int_equal(profile->period, 1);
	for (size_t i = 0; i < profile->n_attribute_indices; i++) {
		const OtlpAttribute *attribute = dictionary->attribute_table[profile->attribute_indices[i]];

		if (!strcmp(dictionary->string_table[attribute->key_strindex], "stacktap.downsampled"))
			sent->downsampled = (uint64_t)attribute->value->int_value;
	}
	for (size_t i = 0; i < profile->n_samples; i++) {
		const OtlpSample *sample = profile->samples[i];

		sent->samples[mode] += sample->n_timestamps_unix_nano;
		for (size_t k = 0; k < sample->n_timestamps_unix_nano; k++)
			sent->times += sample->timestamps_unix_nano[k];
		sent->total[mode] += mode ? (uint64_t)sample->values[0] :
					    sample->n_timestamps_unix_nano * (uint64_t)profile->period;
	}
}

static int take(void *ctx, struct payload *payload)
{
	struct payloads *payloads = ctx;
	OtlpProfilesData *data = (void *)protobuf_c_message_unpack(OTLP_DATA_DESCRIPTOR, NULL, payload->size,
								   payload->data);

	assert_non_null(data);
	payloads->samples += payload->samples;
	payloads->locations += data->dictionary->n_location_table;
	for (size_t i = 0; i < data->n_resource_profiles; i++) {
		const OtlpResourceProfiles *resource = data->resource_profiles[i];

		for (size_t k = 0; k < resource->scope_profiles[0]->n_profiles; k++)
			add_profile(&payloads->of[process_of(resource->resource)],
				    resource->scope_profiles[0]->profiles[k], data->dictionary);
	}
	protobuf_c_message_free_unpacked(&data->base, NULL);
	free(payload->data);
	return 0;
}

static struct payloads encode(const struct window *window, struct relabel *relabel, bool is_again)
{
	const struct encode_options options = { .max_bytes = 1 << 20, .relabel = relabel, .is_again = is_again };
	struct payloads payloads = { 0 };

	assert_int_equal(encode_window(&options, window, take, &payloads), 0);
	return payloads;
}

static struct relabel *rules(const char *const *texts)
{
	struct relabel *relabel;
	char error[256];

	assert_int_equal(relabel_new(&relabel), 0);
	for (; *texts; texts++)
		if (relabel_add(relabel, *texts, error, sizeof(error)))
			fail_msg("%s", error);
	return relabel;
}

static struct window *window;
static struct payloads whole;

static int setup(void **state)
{
	struct aggregator *aggregator;

	assert_int_equal(aggregator_new(&aggregator), 0);
	window = synthetic_window(aggregator);
	whole = encode(window, NULL, false);
	*state = aggregator;
	return 0;
}

static int teardown(void **state)
{
	window_free(window);
	aggregator_free(*state);
	synthetic_check_pools();
	return 0;
}

/* Totals are those of all samples: by the period where samples are counted, by the values where these are summed up. */
static void totals_stay_what_they_are(void **state _unused_)
{
	struct relabel *relabel = rules((const char *const[]){ "downsample process.pid 100 4", NULL });
	const struct payloads part = encode(window, relabel, false);
	const struct sent *all = &whole.of[0], *some = &part.of[0];

	assert_int_equal(some->downsampled, 4);
	assert_int_equal(some->period, 4 * all->period);
	for (size_t mode = 0; mode < 2; mode++) {
		assert_in_range(some->samples[mode], 1, all->samples[mode] - 1);
		assert_true(is_fair(some->samples[mode], all->samples[mode], 0.25));
	}
	assert_int_equal(some->total[0], some->samples[0] * 4 * all->period);
	/* periods of the synthetic window's values differ by 0.04 % */
	assert_true(fabs((double)some->total[1] / (4e6 * (double)some->samples[1]) - 1) < 0.001);
	assert_memory_equal(&part.of[1], &whole.of[1], 3 * sizeof(part.of[1]));
	assert_int_equal(whole.of[1].downsampled, 0);
	assert_int_equal(relabel_samples(relabel), whole.samples - part.samples);
	assert_int_equal(relabel_count(relabel, 0).matched, 1);
	relabel_free(relabel);
}

/* For receivers that want another form, which is counted once. */
static void each_form_has_the_same_samples(void **state _unused_)
{
	struct relabel *relabel = rules((const char *const[]){ "downsample process.pid .* 3", "drop process.pid 300", NULL });
	const struct payloads first = encode(window, relabel, false), second = encode(window, relabel, true);

	assert_memory_equal(&first, &second, sizeof(first));
	assert_int_equal(relabel_samples(relabel), whole.samples - first.samples);
	assert_int_equal(relabel_count(relabel, 1).samples, whole.of[2].samples[0] + whole.of[2].samples[1]);
	relabel_free(relabel);
}

static void the_last_rule_that_matches_holds(void **state _unused_)
{
	struct relabel *relabel = rules((const char *const[]){
		"downsample process.pid .* 8", "rename process\\.pid pid", "downsample process.pid 200 2",
		"rename pid process.pid", "downsample process.pid 100 1", "drop process.pid 300", NULL });
	const struct payloads part = encode(window, relabel, false);

	/* 1 is all of them; where a rule looks at a key that another has renamed, it is not there */
	assert_memory_equal(&part.of[0], &whole.of[0], sizeof(part.of[0]));
	assert_int_equal(part.of[1].downsampled, 8);
	assert_int_equal(part.of[2].samples[0], 0);
	/* the kernel's has no process id, which is empty */
	assert_int_equal(part.of[3].downsampled, 8);
	relabel_free(relabel);
}

/* What nothing refers to any more is not sent. */
static void nothing_is_left_of_a_process_without_samples(void **state _unused_)
{
	struct relabel *relabel = rules((const char *const[]){ "downsample process.pid [123]00 10000",
							       "downsample process.pid 300 1", NULL });
	const struct payloads part = encode(window, relabel, false);
	struct relabel *drop = rules((const char *const[]){ "drop process.pid 100", "drop process.pid 200", NULL });
	const struct payloads others = encode(window, drop, false);

	assert_int_equal(part.of[0].samples[0] + part.of[1].samples[0], 0);
	assert_int_equal(part.locations, others.locations);
	assert_in_range(part.locations, 1, whole.locations - 1);
	relabel_free(relabel);
	relabel_free(drop);
}

/* All samples of @window, in two cuts. */
static struct cut_reader *recover(const struct encode_options *options)
{
	uint32_t *counts = calloc(window->sample_count, sizeof(*counts));
	struct cut_reader *reader;
	struct cutter *cutter;
	struct cut cut;

	assert_non_null(counts);
	assert_int_equal(cutter_new(options, &cutter), 0);
	assert_int_equal(cut_reader_new(&reader), 0);
	for (int step = 0; step < 2; step++) {
		struct buffer bytes = { .pool = POOL_QUEUES };

		window->news_count = 0;
		for (size_t i = 0; i < window->sample_count; i++) {
			struct window_sample *sample = &window->samples[i];

			if (!step) {
				counts[i] = sample->count;
				sample->count = max_of(counts[i] / 2, 1u);
			} else {
				sample->count = counts[i];
			}
			window->news[window->news_count++] = (uint32_t)i;
		}
		assert_int_equal(cutter_cut(cutter, window, 4 << 20, 0, &bytes, &cut), 0);
		assert_int_equal(cut_reader_add(reader, bytes.data, bytes.size), 0);
		buffer_free(&bytes);
	}
	free(counts);
	cutter_free(cutter);
	return reader;
}

/* The daemon that takes the window out of the journal draws the same samples, which stand for as much. */
static void a_recovered_window_has_the_same_samples(void **state _unused_)
{
	struct relabel *relabel = rules((const char *const[]){
		"downsample process.pid .* 5", "downsample container.id .+ 2", "drop process.pid 300", NULL });
	const struct encode_options options = { .max_bytes = 1 << 20, .relabel = relabel };
	struct cut_reader *reader = recover(&options);
	struct payloads want, have = { 0 };

	window->realtime_offset = cut_reader_window(reader)->realtime_offset;
	want = encode(window, relabel, false);
	assert_int_equal(encode_window(cut_reader_options(reader), cut_reader_window(reader), take, &have), 0);
	assert_int_equal(have.of[0].downsampled, 5);
	assert_int_equal(have.of[1].downsampled, 2);
	assert_memory_equal(&have, &want, sizeof(have));
	cut_reader_free(reader);
	relabel_free(relabel);
}

/* What cannot be told in the message's numbers is as much as they can tell. */
static void large_values_do_not_overflow(void **state _unused_)
{
	uint64_t time = 0, value = INT64_MAX / 2;
	const struct window_sample sample = { .count = 1, .times = &time, .values = &value };
	const struct profile_part part = { .sample = &sample, .count = 1 };
	struct downsample downsample;

	while (!downsample_keeps(DOWNSAMPLE_MAX, time, 0))
		time++;
	downsample_init(&downsample);
	assert_int_equal(downsample_choose(&downsample, DOWNSAMPLE_MAX, &part, 1), 0);
	assert_int_equal(downsample.count, 1);
	assert_int_equal(downsample_parts(&downsample)->sample->values[0], INT64_MAX);
	downsample_free(&downsample);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(draws_follow_no_rhythm),
		cmocka_unit_test(threads_are_drawn_apart),
		cmocka_unit_test_setup_teardown(totals_stay_what_they_are, setup, teardown),
		cmocka_unit_test_setup_teardown(each_form_has_the_same_samples, setup, teardown),
		cmocka_unit_test_setup_teardown(the_last_rule_that_matches_holds, setup, teardown),
		cmocka_unit_test_setup_teardown(nothing_is_left_of_a_process_without_samples, setup, teardown),
		cmocka_unit_test_setup_teardown(a_recovered_window_has_the_same_samples, setup, teardown),
		cmocka_unit_test(large_values_do_not_overflow),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
