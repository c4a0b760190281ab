// SPDX-License-Identifier: Apache-2.0
/* The ceiling's arithmetic: what a bucket lets through, whatever is asked of it. */
#include "fixture.h"

#include <stacktap/ceiling.h>

struct host {
	struct ceiling_rate rate;
	uint64_t now, horizon, spent;
};

static enum ceiling_level look(struct host *host)
{
	int64_t ahead = (int64_t)(host->horizon - host->now);

	if (ahead < 0)
		host->horizon = host->now;
	return ceiling_level(ahead < 0 ? 0 : ahead, host->rate.tolerance);
}

static void spend(struct host *host, uint32_t ns)
{
	host->horizon += ceiling_price(host->rate.scale, ns);
	host->spent += ns;
	host->now += ns;
}

static void test_levels(void **state _unused_)
{
	const uint64_t tolerance = 4000;

	assert_int_equal(ceiling_level(-1, tolerance), CEILING_WHOLE);
	assert_int_equal(ceiling_level(1999, tolerance), CEILING_WHOLE);
	assert_int_equal(ceiling_level(2000, tolerance), CEILING_SHORT);
	assert_int_equal(ceiling_level(3000, tolerance), CEILING_LEAF);
	assert_int_equal(ceiling_level(4000, tolerance), CEILING_NOTHING);
	assert_int_equal(ceiling_level(4124, tolerance), CEILING_NOTHING);
	assert_int_equal(ceiling_level(4125, tolerance), CEILING_SLOWER);
	assert_int_equal(ceiling_level(INT64_MAX, 0), CEILING_WHOLE);
}

static void test_no_ceiling(void **state _unused_)
{
	const uint32_t none[] = { 0, CEILING_WHOLE_CPU, CEILING_WHOLE_CPU + 1, UINT32_MAX };

	for (size_t i = 0; i < ARRAY_SIZE(none); i++) {
		struct host host = { .rate = ceiling_rate(none[i]), .now = 1 };

		for (unsigned int call = 0; call < 1000; call++) {
			assert_int_equal(look(&host), CEILING_WHOLE);
			spend(&host, 100000);
		}
	}
}

/*
 * Calls every @gap_ns that cost @cost_ns by level. From any moment on no more is spent than the ceiling and
 * what may be spent at once; and once that is spent, in each 100 ms a tenth more than the ceiling at most.
 */
static void one_load(uint32_t permille, uint64_t gap_ns, const uint32_t *cost_ns)
{
	struct host host = { .rate = ceiling_rate(permille), .now = 1000 };
	uint64_t window = host.now, before = 0, period = gap_ns;
	/* one stretch more than fits is spent before the bucket knows of it */
	const uint64_t slack = cost_ns[0] * 1000ULL;

	for (unsigned int windows = 0; windows < 120;) {
		uint64_t began = host.now;
		enum ceiling_level level = look(&host);

		if (level == CEILING_SLOWER)
			period *= 2;
		spend(&host, cost_ns[level]);
		if (host.now < began + period)
			host.now = began + period;
		assert_true(host.spent * 1000 <=
			    host.now * permille + CEILING_BURST_NS * 3 / 2 * 1000ULL + slack);
		if (host.now - window < 100000000)
			continue;
		if (++windows > 80)
			assert_true((host.spent - before) * 1000 <=
				    (host.now - window) * permille * 11 / 10 + slack);
		window = host.now;
		before = host.spent;
	}
}

static void test_any_load(void **state _unused_)
{
	const uint32_t costs[][CEILING_SLOWER + 1] = {
		{ 100000, 20000, 3000, 1300, 1300 }, { 8000, 6000, 2500, 1200, 1200 },
		{ 100000, 100000, 100000, 100000, 2000 }, { 1000, 1000, 1000, 1000, 1000 },
	};
	const uint32_t permilles[] = { 1, 5, 10, 33, 100 };
	const uint64_t gaps[] = { 1000, 12500, 100000, 1003009, 10101010, 52631578 };

	for (size_t i = 0; i < ARRAY_SIZE(costs); i++)
		for (size_t j = 0; j < ARRAY_SIZE(permilles); j++)
			for (size_t k = 0; k < ARRAY_SIZE(gaps); k++)
				one_load(permilles[j], gaps[k], costs[i]);
}

/* What fits below the ceiling is never cut. */
static void test_light_load(void **state _unused_)
{
	struct host host = { .rate = ceiling_rate(10), .now = 1 };

	for (unsigned int call = 0; call < 100000; call++) {
		assert_int_equal(look(&host), CEILING_WHOLE);
		spend(&host, 9000);
		host.now += 1000000 - 9000;
	}
}

/* A virtual CPU that its host took away for a second does not silence the session for a minute. */
static void test_stolen_time(void **state _unused_)
{
	struct host host = { .rate = ceiling_rate(10), .now = 1 };

	look(&host);
	spend(&host, 1000000000);
	assert_true(look(&host) < CEILING_LEAF);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_levels),
		cmocka_unit_test(test_no_ceiling),
		cmocka_unit_test(test_any_load),
		cmocka_unit_test(test_light_load),
		cmocka_unit_test(test_stolen_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
