// SPDX-License-Identifier: Apache-2.0
/* Who wants all of a credit that several draw on. */
#include "unit.h"

#include "base/clock.h"
#include "base/fair.h"
#include "base/hash.h"

enum {
	LIMIT_S = 30, PART = 4,
	STEP_MS = 100,	/* that each piece of work takes */
	MODEST = 7, HUNGRY = 1000,
};

static struct fair fair;
static uint64_t now;

static int setup(void **state _unused_)
{
	now = 15 * NSEC_PER_SEC;
	fair_init(&fair, LIMIT_S * NSEC_PER_SEC, PART, now);
	return 0;
}

static bool work(uint32_t who)
{
	const uint64_t began = now;

	if (!fair_may(&fair, who, now))
		return false;
	now += STEP_MS * NSEC_PER_MSEC;
	fair_spend(&fair, who, began, now, 0);
	return true;
}

/* As much as it can until @until, in steps in which it has nothing else to do; in ms. */
static uint64_t gorge(uint32_t who, uint64_t until)
{
	uint64_t taken = 0;

	while (now < until)
		if (work(who))
			taken += STEP_MS;
		else
			now += STEP_MS * NSEC_PER_MSEC;
	return taken;
}

/* Works for so long, and has no CPU for a part of that. */
static void spend(unsigned int ms, unsigned int starved_ms)
{
	const uint64_t began = now;

	now += ms * NSEC_PER_MSEC;
	fair_spend(&fair, MODEST, began, now, starved_ms * NSEC_PER_MSEC);
}

/* But for half of the time: others wait for all of it. */
static void time_without_a_cpu_is_not_paid_for(void **state _unused_)
{
	spend(4000, 1000);
	assert_int_equal(fair_spent(&fair, MODEST, now), 3 * NSEC_PER_SEC);
	spend(4000, 3000);
	assert_int_equal(fair_spent(&fair, MODEST, now), 5 * NSEC_PER_SEC);
	assert_int_equal(credit_left(&fair.credit, now), (LIMIT_S - 5) * NSEC_PER_SEC);
	/* clocks may differ */
	spend(4000, 5000);
	assert_int_equal(fair_spent(&fair, MODEST, now), 7 * NSEC_PER_SEC);
}

static void one_takes_half_at_first_and_others_the_rest(void **state _unused_)
{
	uint64_t taken = 0, others = 0;

	/* less than a window's time */
	fair_init(&fair, LIMIT_S * NSEC_PER_SEC / 6, PART, now);
	while (work(HUNGRY))
		taken += STEP_MS;
	assert_in_range(taken, 2500, 2500 + STEP_MS);
	while (work(MODEST))
		others += STEP_MS;
	assert_in_range(others, 1250 - STEP_MS, 1250 + STEP_MS);
}

/* Whatever it takes for however long, there is time for another's files in each window. */
static void the_hungry_never_take_what_is_left(void **state _unused_)
{
	const uint64_t began = now;
	uint64_t taken = 0;

	for (int window = 0; window < 200; window++) {
		taken += gorge(HUNGRY, now + 14 * NSEC_PER_SEC);
		for (int i = 0; i < 10; i++)
			assert_true(work(MODEST));
	}
	assert_true(taken <= LIMIT_S * 1000 + (now - began) / NSEC_PER_MSEC / PART);
}

/* Many of them leave little, but in the next window everyone begins anew, and nobody gets all of it. */
static void many_share_it(void **state _unused_)
{
	enum { MANY = 8 };
	uint64_t taken[MANY] = { 0 }, least = UINT64_MAX, most = 0;

	for (uint64_t i = 0; now < 3600 * NSEC_PER_SEC; i++) {
		if (work(HUNGRY + (uint32_t)(i % MANY)))
			taken[i % MANY] += STEP_MS;
		else
			now += STEP_MS * NSEC_PER_MSEC;
	}
	for (size_t i = 0; i < MANY; i++) {
		least = min_of(least, taken[i]);
		most = max_of(most, taken[i]);
	}
	assert_true(most < 2 * least);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(time_without_a_cpu_is_not_paid_for, setup),
		cmocka_unit_test_setup(one_takes_half_at_first_and_others_the_rest, setup),
		cmocka_unit_test_setup(the_hungry_never_take_what_is_left, setup),
		cmocka_unit_test_setup(many_share_it, setup),
	};

	/* which of these share slots is the same each time */
	hash_set_key(1, 2);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
