// SPDX-License-Identifier: Apache-2.0
/* Stratified sampling: where samples fall, how many there are, and what one says of the next. */
#include "fixture.h"

#include <inttypes.h>
#include <math.h>
#include <stacktap/jitter.h>

enum { SAMPLES = 200000, BINS = 64 };

static const uint64_t periods[] = {
	JITTER_MIN_PERIOD, 65, 99, 1000, 65537, 10101010, 1u << 31, UINT32_MAX,
	UINT64_C(3000000000) * 7, JITTER_MAX_PERIOD - 1, JITTER_MAX_PERIOD,
};

static void test_bounds(void **state _unused_)
{
	assert_false(jitter_takes(0));
	assert_false(jitter_takes(1));
	assert_false(jitter_takes(JITTER_MIN_PERIOD - 1));
	assert_true(jitter_takes(JITTER_MIN_PERIOD));
	assert_true(jitter_takes(JITTER_MAX_PERIOD));
	assert_false(jitter_takes(JITTER_MAX_PERIOD + 1));
	assert_false(jitter_takes(INT64_MAX));
	assert_false(jitter_takes(UINT64_MAX));
	for (size_t i = 0; i < ARRAY_SIZE(periods); i++) {
		uint64_t least = UINT64_MAX, most = 0;
		struct jitter jitter;

		jitter_begin(&jitter, periods[i], i);
		for (size_t n = 0; n < SAMPLES; n++) {
			uint64_t period = jitter_next(&jitter, periods[i]);
			double exact = (double)period / (double)periods[i] * JITTER_WHOLE;

			least = min_of(least, period);
			most = max_of(most, period);
			/* offsets, 16ths and the share are rounded down, each by itself */
			assert_true(fabs(jitter.share - exact) <= 2 + JITTER_WHOLE * 2.0 / (double)periods[i]);
		}
		assert_true(least >= periods[i] >> JITTER_MIN_SHIFT);
		assert_true(most < 2 * periods[i]);
		/* both ends are reached, where there are that many between */
		assert_true(least < periods[i] / 8 && most > periods[i] / 8 * 15);
	}
}

/* After n periods n samples, one in each. */
static void test_sums(void **state _unused_)
{
	for (size_t i = 0; i < ARRAY_SIZE(periods); i++) {
		struct jitter jitter;
		uint64_t into;

		jitter_begin(&jitter, periods[i], 77 * i);
		into = jitter_next(&jitter, periods[i]);
		for (size_t n = 1; n < SAMPLES; n++) {
			assert_true(into - 1 == jitter.offset && into <= periods[i]);
			/* modulo 2^64, as the sum of the longest is */
			into += jitter_next(&jitter, periods[i]) - periods[i];
		}
	}
}

/* Nor do those come short that are counted for less than a period: half of half periods have a sample. */
static void test_first(void **state _unused_)
{
	for (size_t i = 0; i < ARRAY_SIZE(periods); i++) {
		unsigned int halves = 0, least = 0;

		for (uint64_t seed = 0; seed < SAMPLES; seed++) {
			struct jitter jitter;
			uint64_t first;

			jitter_begin(&jitter, periods[i], seed);
			first = jitter_next(&jitter, periods[i]);
			assert_true(first >= periods[i] >> JITTER_MIN_SHIFT && first <= periods[i]);
			halves += first <= periods[i] / 2;
			least += first <= (periods[i] >> JITTER_MIN_SHIFT) + 1;
		}
		/* four standard deviations, and an event of the least period */
		assert_true(fabs(halves - SAMPLES / 2.0) < 2 * sqrt(SAMPLES) + SAMPLES / 64.0);
		assert_true(least < SAMPLES / 8);
	}
}

/* Phases against a program that repeats itself @loops times in a period. */
static void check_phases(uint64_t period, unsigned int loops, uint64_t seed)
{
	double sum = 0, squares = 0, product[3] = { 0 }, before[3] = { 0 }, chi = 0;
	uint64_t bins[BINS] = { 0 }, loop = period / loops, at = 0;
	struct jitter jitter;

	jitter_begin(&jitter, period, seed);
	at = jitter.offset;
	for (size_t n = 0; n < SAMPLES; n++) {
		double phase;

		at += jitter_next(&jitter, period);
		bins[at % loop * BINS / loop]++;
		phase = (double)(at % loop) / (double)loop - 0.5;
		sum += phase;
		squares += phase * phase;
		for (size_t lag = 0; lag < ARRAY_SIZE(product); lag++)
			product[lag] += phase * before[lag];
		before[2] = before[1];
		before[1] = before[0];
		before[0] = phase;
	}
	for (size_t i = 0; i < BINS; i++)
		chi += (bins[i] - 1.0 * SAMPLES / BINS) * (bins[i] - 1.0 * SAMPLES / BINS) * BINS / SAMPLES;
	/* 63 degrees of freedom: less than once in 10^6 beyond */
	if (chi > 130)
		fail_msg("%u loops in %" PRIu64 ": chi-square %f", loops, period, chi);
	/* four standard deviations, and what the least period moves */
	assert_true(fabs(sum / SAMPLES) < 4 * sqrt(1.0 / 12 / SAMPLES) + 0.001);
	for (size_t lag = 0; lag < ARRAY_SIZE(product); lag++)
		if (fabs(product[lag] / squares) > 4 / sqrt(SAMPLES) + 0.005)
			fail_msg("%u loops in %" PRIu64 ": autocorrelation %f at lag %zu", loops, period,
				 product[lag] / squares, lag + 1);
}

static void test_phases(void **state _unused_)
{
	static const unsigned int loops[] = { 1, 2, 3, 5, 10, 100 };

	for (size_t i = 0; i < ARRAY_SIZE(loops); i++)
		for (uint64_t seed = 0; seed < 4; seed++) {
			check_phases(10101000, loops[i], seed);
			check_phases(UINT64_C(30000000000), loops[i], ~seed);
		}
}

static void test_seeds(void **state _unused_)
{
	struct jitter a, b, c;
	unsigned int equal = 0;

	jitter_begin(&a, 1000000, 1);
	jitter_begin(&b, 1000000, 1);
	jitter_begin(&c, 1000000, 2);
	for (size_t n = 0; n < 1000; n++) {
		uint64_t period = jitter_next(&a, 1000000);

		assert_true(period == jitter_next(&b, 1000000));
		equal += period == jitter_next(&c, 1000000);
	}
	assert_true(equal < 10);
}

/* A clock's timer that was late, or ran without us: it is found again where it is. */
static void test_found_again(void **state _unused_)
{
	static const uint64_t offsets[] = { 0, 1, 63, 250, 1u << 31, UINT64_MAX >> 1, UINT64_MAX };

	for (size_t i = 0; i < ARRAY_SIZE(periods); i++)
		for (size_t n = 0; n < ARRAY_SIZE(offsets); n++) {
			struct jitter jitter;
			uint64_t next;
			double exact;

			jitter_begin(&jitter, periods[i], n);
			jitter_place(&jitter, periods[i], offsets[n]);
			assert_true(jitter.offset == offsets[n] % periods[i]);
			exact = (double)jitter.offset / (double)periods[i] * JITTER_WHOLE;
			assert_true(jitter.phase < JITTER_WHOLE && fabs(jitter.phase - exact) <= 1.001);
			/* and goes on from there, into the next period */
			next = jitter_next(&jitter, periods[i]);
			assert_true(next >= periods[i] >> JITTER_MIN_SHIFT);
			assert_true(offsets[n] % periods[i] + next == periods[i] + jitter.offset);
			assert_true(jitter.offset < periods[i]);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bounds), cmocka_unit_test(test_sums), cmocka_unit_test(test_first),
		cmocka_unit_test(test_phases), cmocka_unit_test(test_seeds),
		cmocka_unit_test(test_found_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
