// SPDX-License-Identifier: Apache-2.0
/* A host whose processes come and go, for a minute of its time: nothing is lost on the way that is not counted. */
#include "fixture.h"

#include <dirent.h>

#include "base/pool.h"
#include "host.h"
#include "recorded.h"

static struct host_options options_of(uint32_t rate_hz, uint32_t ring_bytes, uint32_t seconds)
{
	const struct host_options options = {
		.load = { .recording = fixture_path("recording"), .cpus = 16, .rate_hz = rate_hz,
			  .processes = 100, .lifetime_s = 10, .ring_bytes = ring_bytes },
		.seconds = seconds,
		.directory = fixture_path("."),
	};

	return options;
}

static void assert_ledger(const struct host_options *options, const struct host_result *result)
{
	const uint64_t overflows = (uint64_t)options->load.cpus * options->load.rate_hz * options->seconds;

	assert_int_equal(result->load.samples + result->load.lost, overflows);
	assert_int_equal(result->pipeline.counts.samples, result->load.samples);
	assert_int_equal(result->pipeline.counts.lost, result->load.lost);
	assert_int_equal(result->samples, result->load.samples);
	assert_int_equal(result->pipeline.samples_dropped, 0);
	assert_int_equal(result->pipeline.windows_dropped, 0);
	assert_int_equal(result->pipeline.parts_refused, 0);
	assert_true(result->journal.samples > 0 && result->journal.samples <= result->load.samples);
	assert_in_range(result->pool_bytes, 1, result->pool_limits);
	for (int id = 0; id < POOL_COUNT; id++)
		assert_int_equal(pool_get((enum pool_id)id)->used, 0);
}

static void nothing_is_lost(void **state)
{
	const struct host_options options = options_of(99, 256 << 10, 60);
	struct host_result result;

	(void)state;
	assert_int_equal(host_run(&options, &result), 0);
	assert_ledger(&options, &result);
	assert_int_equal(result.load.lost, 0);
	assert_in_range(result.load.started, 300, 3000);
	assert_int_equal(result.pipeline.windows, 4); /* of 15 seconds each */
}

/* Rings that are too small for the rate. */
static void what_is_lost_is_counted(void **state)
{
	const struct host_options options = options_of(1000, 32 << 10, 10);
	struct host_result result;

	(void)state;
	assert_int_equal(host_run(&options, &result), 0);
	assert_ledger(&options, &result);
	assert_true(result.load.lost > result.load.samples / 100);
}

/* The same samples in a quarter of the memory: windows end sooner. */
static void memory_is_what_it_is_told_to_be(void **state)
{
	const struct host_options options = options_of(99, 256 << 10, 60);
	struct pool *pool = pool_get(POOL_AGGREGATE);
	const size_t limit = pool->limit;
	struct host_result result;

	(void)state;
	pool->limit = 512 << 10;
	pool->peak = 0;
	assert_int_equal(host_run(&options, &result), 0);
	assert_ledger(&options, &result);
	assert_int_equal(result.load.lost, 0);
	assert_true(result.pipeline.windows > 8);
	assert_in_range(pool->peak, 1, pool->limit);
	pool->limit = limit;
}

static int make_recording(void **state)
{
	(void)state;
	recorded_file(fixture_path("recording"), 4 << 20);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_lost),
		cmocka_unit_test(what_is_lost_is_counted),
		cmocka_unit_test(memory_is_what_it_is_told_to_be),
	};

	return cmocka_run_group_tests(tests, make_recording, NULL);
}
