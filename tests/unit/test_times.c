// SPDX-License-Identifier: Apache-2.0
/* Times in what is sent: rounded down to a part of the time between samples that nobody misses. */
#include "unit.h"

#include "export/otlp.h"
#include "synthetic.h"

#define START UINT64_C(5000000123)
#define OFFSET 1000000000000000	/* to Unix time */
#define COUNT 200u

static int keep(void *ctx, struct payload *payload)
{
	*(struct payload *)ctx = *payload;
	return 0;
}

/* The @number-th time: the first one is the window's, others have bits in all places. */
static uint64_t time_of(uint32_t number)
{
	return START + number * UINT64_C(10234567);
}

static OtlpProfilesData *encode(const struct profile_config *config, bool rounds_times)
{
	static const uint64_t ips[] = { 0x7f0000000010 };
	const struct encode_options options = { .max_bytes = 1 << 20, .rounds_times = rounds_times };
	struct mapped_file *file = synthetic_file("/usr/bin/program", true);
	struct image *image = synthetic_image(7, "program", NULL);
	struct aggregator *aggregator;
	struct payload payload;
	struct window *window;
	OtlpProfilesData *data;

	assert_int_equal(aggregator_new(&aggregator), 0);
	assert_int_equal(aggregator_set_profile(aggregator, config), 0);
	synthetic_map(image, 0x7f0000000000, 0, file);
	for (uint32_t i = 0; i < COUNT; i++)
		assert_int_equal(synthetic_add(aggregator, &(struct synthetic_sample){
			.time = time_of(i), .period = 1, .source = config->source_id, .tid = 8, .comm = "thread",
			.image = image, .user = ips, .user_count = 1, .user_end = STACKTAP_END_COMPLETE }), 0);
	assert_int_equal(aggregator_close(aggregator, time_of(COUNT), &window), 0);
	synthetic_resolve(window);
	window->realtime_offset = OFFSET;
	assert_int_equal(encode_window(&options, window, keep, &payload), 0);
	data = (void *)protobuf_c_message_unpack(OTLP_DATA_DESCRIPTOR, NULL, payload.size, payload.data);
	assert_non_null(data);
	free(payload.data);
	window_free(window);
	aggregator_free(aggregator);
	image_unref(image);
	mapped_file_unref(file);
	return data;
}

/* Every one is the largest multiple of @grain up to what it was, but inside the Profile's span; 0: what it was. */
static void check(const struct profile_config *config, uint64_t grain)
{
	OtlpProfilesData *data = encode(config, grain > 0);
	const OtlpProfile *profile = data->resource_profiles[0]->scope_profiles[0]->profiles[0];
	uint32_t number = 0;

	assert_int_equal(profile->time_unix_nano, START + OFFSET);
	for (size_t i = 0; i < profile->n_samples; i++) {
		const OtlpSample *sample = profile->samples[i];

		for (size_t k = 0; k < sample->n_timestamps_unix_nano; k++, number++) {
			const uint64_t exact = time_of(number) + OFFSET;

			assert_int_equal(sample->timestamps_unix_nano[k],
					 number && grain ? exact - exact % grain : exact);
		}
	}
	assert_int_equal(number, COUNT);
	protobuf_c_message_free_unpacked(&data->base, NULL);
}

static void a_rate_says_how_fine_times_are(void **state _unused_)
{
	struct profile_config config = synthetic_clock;

	config.rate_hz = 19;
	check(&config, 32768);
	config.rate_hz = 99;
	check(&config, 8192);
	config.rate_hz = 1000;
	check(&config, 512);
	config.rate_hz = 100000;
	check(&config, 8);
	check(&synthetic_cycles, 8192);
}

static void so_does_a_clocks_period(void **state _unused_)
{
	struct profile_config config = synthetic_clock;

	config.rate_hz = 0;
	config.period = 1000000;
	check(&config, 512);
	config.period = 1000;
	check(&config, 1);
}

/* Nobody knows how far samples of so many events are apart. */
static void times_of_other_events_are_exact(void **state _unused_)
{
	struct profile_config config = synthetic_clock;

	config.rate_hz = 0;
	config.is_clock = config.is_cpu_time = false;
	check(&config, 1);
}

static void a_recording_has_them_as_they_were(void **state _unused_)
{
	check(&synthetic_clock, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_rate_says_how_fine_times_are),
		cmocka_unit_test(so_does_a_clocks_period),
		cmocka_unit_test(times_of_other_events_are_exact),
		cmocka_unit_test(a_recording_has_them_as_they_were),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
