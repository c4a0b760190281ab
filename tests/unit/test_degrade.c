// SPDX-License-Identifier: Apache-2.0
/* When sessions degrade and recover: the judgement of windows and the order of steps. */
#include "fixture.h"

#include <stacktap/degrade.h>

static enum degrade_load judge(uint32_t budget_ns, uint64_t calls, uint64_t ns, uint64_t longer)
{
	const struct degrade_window from = { .calls = 1000, .ns = 1 << 30, .longer = 7 };
	const struct degrade_window to = {
		.calls = from.calls + calls, .ns = from.ns + ns, .longer = from.longer + longer,
	};

	return degrade_judge(budget_ns, &from, &to);
}

static void test_loads(void **state _unused_)
{
	assert_int_equal(judge(2000, 49, 49000000, 49), DEGRADE_UNKNOWN);
	assert_int_equal(judge(2000, 0, 0, 0), DEGRADE_UNKNOWN);
	assert_int_equal(judge(2000, 50, 50 * 2000 + 1, 26), DEGRADE_OVER);
	assert_int_equal(judge(2000, 50, 50 * 2000, 50), DEGRADE_FAIR);
	assert_int_equal(judge(2000, 50, 50 * 1000, 0), DEGRADE_FAIR);
	assert_int_equal(judge(2000, 50, 50 * 1000 - 1, 0), DEGRADE_LOW);
	/* one call took seconds, the others nothing: the CPU was taken away */
	assert_int_equal(judge(2000, 1000, UINT64_C(5000000000), 1), DEGRADE_FAIR);
	assert_int_equal(judge(2000, 1000, UINT64_C(5000000000), 500), DEGRADE_FAIR);
	assert_int_equal(judge(2000, 1000, UINT64_C(5000000000), 501), DEGRADE_OVER);
	/* the extremes: always, and never */
	assert_int_equal(judge(1, 50, 51, 50), DEGRADE_OVER);
	assert_int_equal(judge(UINT32_MAX, 1u << 31, UINT64_MAX >> 3, 1u << 31), DEGRADE_LOW);
}

static void test_buckets(void **state _unused_)
{
	assert_int_equal(degrade_bucket(0), 0);
	assert_int_equal(degrade_bucket(1), 0);
	for (unsigned int shift = 1; shift < 32; shift++) {
		const uint32_t budgets[] = { 1u << shift, (1u << shift) + 1, (1u << shift) * 2 - 1 };

		for (size_t i = 0; i < ARRAY_SIZE(budgets); i++) {
			unsigned int bucket = degrade_bucket(budgets[i]);
			/* the least that the bucket counts */
			uint64_t least = bucket ? UINT64_C(1) << (STACKTAP_TIME_SHIFT + bucket - 1) : 0;

			assert_true(bucket < STACKTAP_TIME_BUCKETS);
			assert_true(least >= budgets[i] / 2 || bucket == STACKTAP_TIME_BUCKETS - 1);
			/* what exceeds the budget is always counted */
			assert_true(least <= max_of(budgets[i], 1u << STACKTAP_TIME_SHIFT));
		}
	}
}

static void test_what_steps_give_up(void **state _unused_)
{
	static const unsigned int frames[] = { 127, 64, 32, 16, 16, 16, 16, 16 };
	static const unsigned int shifts[] = { 0, 0, 0, 0, 1, 2, 3, 4 };

	assert_int_equal(ARRAY_SIZE(frames), DEGRADE_STEPS + 1);
	for (unsigned int step = 0; step <= DEGRADE_STEPS; step++) {
		assert_int_equal(degrade_kernel_frames(step), frames[step]);
		assert_int_equal(degrade_rate_shift(step), shifts[step]);
	}
	assert_true(DEGRADE_STEPS <= STACKTAP_CONFIG_STEP_MASK >> STACKTAP_CONFIG_STEP_SHIFT);
}

/* How many looks it takes to leave the step that it is at; 0: more than @most. */
static unsigned int looks(struct degrade *degrade, enum degrade_load load, unsigned int most)
{
	for (unsigned int i = 1; i <= most; i++) {
		unsigned int step = degrade_next(degrade, load);

		if (step == degrade->step)
			continue;
		degrade->step = step;
		return i;
	}
	return 0;
}

static void test_down_and_back(void **state _unused_)
{
	struct degrade degrade;

	degrade_reset(&degrade);
	assert_int_equal(looks(&degrade, DEGRADE_LOW, 100), 0);
	assert_int_equal(looks(&degrade, DEGRADE_FAIR, 100), 0);
	for (unsigned int step = 1; step <= DEGRADE_STEPS; step++) {
		assert_int_equal(looks(&degrade, DEGRADE_OVER, 1), 1);
		assert_int_equal(degrade.step, step);
	}
	assert_int_equal(looks(&degrade, DEGRADE_OVER, 100), 0);
	assert_int_equal(looks(&degrade, DEGRADE_UNKNOWN, 100), 0);
	assert_int_equal(looks(&degrade, DEGRADE_FAIR, 100), 0);
	for (unsigned int step = DEGRADE_STEPS; step-- > 0;) {
		assert_int_equal(looks(&degrade, DEGRADE_LOW, 100), DEGRADE_PATIENCE);
		assert_int_equal(degrade.step, step);
	}
	/* one that is not low begins the wait anew; one that tells nothing does not */
	degrade.step = 1;
	assert_int_equal(looks(&degrade, DEGRADE_LOW, 2), 0);
	assert_int_equal(looks(&degrade, DEGRADE_FAIR, 1), 0);
	assert_int_equal(looks(&degrade, DEGRADE_LOW, 2), 0);
	assert_int_equal(looks(&degrade, DEGRADE_UNKNOWN, 1), 0);
	assert_int_equal(looks(&degrade, DEGRADE_LOW, 1), 1);
}

/* Handlers that exceed the budget without a step and are far below it with one. */
static void test_to_and_fro(void **state _unused_)
{
	unsigned int wait = DEGRADE_PATIENCE, steps = 0;
	struct degrade degrade;

	degrade_reset(&degrade);
	for (unsigned int round = 0; round < 10; round++) {
		assert_int_equal(looks(&degrade, DEGRADE_OVER, 1), 1);
		assert_int_equal(looks(&degrade, DEGRADE_LOW, 1000), wait);
		wait = min_of(wait * 2, (unsigned int)DEGRADE_PATIENCE_MAX);
	}
	/* in an hour of looks every two seconds */
	for (unsigned int i = 0; i < 1800; i++) {
		unsigned int step = degrade_next(&degrade, degrade.step ? DEGRADE_LOW : DEGRADE_OVER);

		steps += step != degrade.step;
		degrade.step = step;
	}
	assert_true(steps <= 40);
}

/* What the ceiling takes is judged with a budget and without. */
static void test_lost_to_the_ceiling(void **state _unused_)
{
	const struct degrade_window from = { .calls = 1000, .lost = 10 };

	for (uint32_t budget_ns = 0; budget_ns <= 2000; budget_ns += 2000) {
		struct degrade_window to = { .calls = from.calls + 160, .lost = from.lost };

		assert_int_equal(degrade_judge(budget_ns, &from, &to), DEGRADE_LOW);
		to.lost = from.lost + 1;
		assert_int_equal(degrade_judge(budget_ns, &from, &to), DEGRADE_FAIR);
		to.lost = from.lost + 11;
		assert_int_equal(degrade_judge(budget_ns, &from, &to), DEGRADE_OVER);
	}
}

static void test_raised_by_the_handler(void **state _unused_)
{
	struct degrade degrade;

	degrade_reset(&degrade);
	assert_int_equal(degrade_raised(&degrade, 1), DEGRADE_DEPTH_STEPS + 1);
	assert_int_equal(degrade_raised(&degrade, 20), DEGRADE_STEPS);
	degrade.step = DEGRADE_DEPTH_STEPS + 2;
	assert_int_equal(degrade_raised(&degrade, 1), DEGRADE_DEPTH_STEPS + 3);
	degrade.has_recovered = 1;
	degrade_raised(&degrade, 1);
	assert_int_equal(degrade.patience, 2 * DEGRADE_PATIENCE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_loads),
		cmocka_unit_test(test_buckets),
		cmocka_unit_test(test_what_steps_give_up),
		cmocka_unit_test(test_down_and_back),
		cmocka_unit_test(test_to_and_fro),
		cmocka_unit_test(test_lost_to_the_ceiling),
		cmocka_unit_test(test_raised_by_the_handler),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
