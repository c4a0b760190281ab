// SPDX-License-Identifier: Apache-2.0
/* Which handlers share a deadline, and that none is left without one for long. */
#include "fixture.h"

#include <stacktap/stretch.h>

#define LIMIT 100000u

struct cpu {
	struct stretch stretch;
	uint64_t now;
};

/* A handler that takes @ns of what it is given, or all of that. Returns how long it took. */
static uint32_t handle(struct cpu *cpu, uint32_t ns)
{
	const uint64_t began = cpu->now;

	ns = min_of(ns, stretch_begin(&cpu->stretch, began, LIMIT));
	cpu->now += ns;
	stretch_end(&cpu->stretch, began, cpu->now);
	return ns;
}

static void test_one_deadline(void **state _unused_)
{
	struct cpu cpu = { .now = 1000000 };
	uint32_t sum = 0;

	for (unsigned int i = 0; i < 8; i++, cpu.now += 4000)
		sum += handle(&cpu, 30000);
	assert_in_range(sum, 1, LIMIT);
}

/* perf's part of a timer takes 20 us there. */
static void test_slow_machine(void **state _unused_)
{
	struct cpu cpu = { .now = 1000000 };
	uint32_t sum = 0;

	for (unsigned int i = 0; i < 8; i++, cpu.now += 20000)
		sum += handle(&cpu, 30000);
	assert_in_range(sum, 1, LIMIT);
}

/* A virtual CPU that its host took away in a handler cuts that stack, and not all that follow. */
static void test_stolen_time(void **state _unused_)
{
	static const uint64_t periods[] = { 100000, 1000000, 10000000 };

	for (size_t i = 0; i < ARRAY_SIZE(periods); i++) {
		struct cpu cpu = { .now = 1000000 };
		const uint64_t began = cpu.now;

		assert_int_equal(stretch_begin(&cpu.stretch, began, LIMIT), LIMIT);
		cpu.now += 300000000;
		stretch_end(&cpu.stretch, began, cpu.now);
		for (unsigned int call = 0; call < 100; call++) {
			cpu.now += periods[i];
			assert_int_equal(handle(&cpu, 10000), 10000);
		}
	}
}

/* Several sessions' handlers, each in an interrupt of its own: a deadline comes back, however close they are. */
static void test_no_starvation(void **state _unused_)
{
	struct cpu cpu = { .now = 1000000 };
	unsigned int whole = 0;

	for (unsigned int call = 0; call < 10000; call++, cpu.now += 5000)
		whole += handle(&cpu, 5000) == 5000;
	assert_in_range(whole, 1000, 10000);
}

/* The clock steps back by a little, as ktime_get_mono_fast_ns() may. */
static void test_step_back(void **state _unused_)
{
	struct cpu cpu = { .now = 1000000 };

	handle(&cpu, 10000);
	cpu.now -= 20;
	assert_int_equal(handle(&cpu, 10000), 10000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_deadline),
		cmocka_unit_test(test_slow_machine),
		cmocka_unit_test(test_stolen_time),
		cmocka_unit_test(test_no_starvation),
		cmocka_unit_test(test_step_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
