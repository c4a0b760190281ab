// SPDX-License-Identifier: Apache-2.0
/* Which handlers share a deadline, and that none is left without one for long. */
#include "fixture.h"

#include <stacktap/jitter.h>
#include <stacktap/stretch.h>

#define LIMIT 100000u

struct cpu {
	struct stretch stretch;
	uint64_t now;
};

static const struct stretch_cause timer = { .is_timer = true }, page_fault = { .is_timer = false };

/* A handler that takes @ns of what it is given, or all of that. Returns how long it took. */
static uint32_t handle(struct cpu *cpu, uint32_t ns)
{
	const uint64_t began = cpu->now;

	ns = min_of(ns, stretch_begin(&cpu->stretch, began, LIMIT, timer));
	cpu->now += ns;
	stretch_end(&cpu->stretch, began, cpu->now, timer);
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

		assert_int_equal(stretch_begin(&cpu.stretch, began, LIMIT, timer), LIMIT);
		cpu.now += 300000000;
		stretch_end(&cpu.stretch, began, cpu.now, timer);
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

enum { TIMERS_MAX = 8 };

/* Timers of one CPU whose periods are drawn; a walk takes @walk_ns unless it is cut, all else @rest_ns. */
struct timers {
	struct jitter jitter[TIMERS_MAX];
	uint64_t next[TIMERS_MAX];
	unsigned int count;
	uint64_t period_ns, walk_ns, rest_ns;
};

static unsigned int first_of(const struct timers *timers)
{
	unsigned int first = 0;

	for (unsigned int i = 1; i < timers->count; i++)
		if (timers->next[i] < timers->next[first])
			first = i;
	return first;
}

/* Of @handlers, how many had nothing left. */
static uint64_t starved(struct timers *timers, uint64_t handlers)
{
	struct cpu cpu = { .now = 1000000000 };
	uint64_t without = 0;

	for (unsigned int i = 0; i < timers->count; i++) {
		jitter_begin(&timers->jitter[i], timers->period_ns, i);
		timers->next[i] = cpu.now + timers->jitter[i].offset;
	}
	for (uint64_t n = 0; n < handlers; n++) {
		const unsigned int i = first_of(timers);
		uint64_t began;
		uint32_t left;

		began = cpu.now = max_of(cpu.now, timers->next[i]);
		left = stretch_begin(&cpu.stretch, began, LIMIT, timer);
		without += !left;
		cpu.now += timers->rest_ns + min_of(timers->walk_ns, (uint64_t)left);
		stretch_end(&cpu.stretch, began, cpu.now, timer);
		timers->next[i] += jitter_next(&timers->jitter[i], timers->period_ns);
	}
	return without;
}

/* However often handlers of several sessions come close to each other: what is between them is what else the CPU does. */
static void test_sessions(void **state _unused_)
{
	struct timers slow = { .count = 1, .period_ns = 1000000, .walk_ns = 150000, .rest_ns = 100000 };
	struct timers fast = { .count = 1, .period_ns = 100000, .walk_ns = 15000, .rest_ns = 10000 };
	struct timers many = { .count = 8, .period_ns = 1000000, .walk_ns = 15000, .rest_ns = 5000 };
	struct timers *const all[] = { &slow, &fast, &many };

	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		assert_in_range(starved(all[i], 1000000), 0, 1000000 / 20);
}

/* One page fault after the other: between two handlers the program runs, and interrupts are on. */
static void test_faults(void **state _unused_)
{
	struct stretch stretch = { 0 };
	uint64_t now = 1000000000;

	for (unsigned int i = 0; i < 1000; i++) {
		assert_int_equal(stretch_begin(&stretch, now, LIMIT, page_fault), LIMIT);
		stretch_end(&stretch, now, now + 20000, page_fault);
		now += 20000 + STRETCH_GAP_NS + 1;
	}
}

/* A timer that comes soon behind a page fault that took long. */
static void test_timer_behind_fault(void **state _unused_)
{
	struct stretch stretch = { 0 };
	const uint64_t began = 1000000000;

	assert_int_equal(stretch_begin(&stretch, began, LIMIT, page_fault), LIMIT);
	stretch_end(&stretch, began, began + 50000, page_fault);
	assert_int_equal(stretch_begin(&stretch, began + 50000 + 40000, LIMIT, timer), LIMIT);
}

/* In one interrupt, between two timers of ours, another one that takes long. */
static void test_timer_between(void **state _unused_)
{
	struct stretch_cause cause = { .is_timer = true, .interrupt = 7 };
	struct stretch stretch = { 0 };
	uint64_t now = 1000000000;

	assert_int_equal(stretch_begin(&stretch, now, LIMIT, cause), LIMIT);
	stretch_end(&stretch, now, now + 80000, cause);
	now += 80000 + 70000;
	assert_int_equal(stretch_begin(&stretch, now, LIMIT, cause), 0);
	stretch_end(&stretch, now, now + 1000, cause);
	now += 1000 + 70000;
	cause.interrupt++;
	assert_int_equal(stretch_begin(&stretch, now, LIMIT, cause), LIMIT);
}

/* A kernel that has its timers in the tick never counts on. */
static void test_interrupts_not_counted(void **state _unused_)
{
	const struct stretch_cause cause = { .is_timer = true, .interrupt = 7 };
	struct stretch stretch = { 0 };
	uint64_t now = 1000000000;

	for (unsigned int i = 0; i < 1000; i++, now += 1000000) {
		assert_int_equal(stretch_begin(&stretch, now, LIMIT, cause), LIMIT);
		stretch_end(&stretch, now, now + 20000, cause);
	}
}

/* A page fault's handler that follows a timer's is of no interrupt. */
static void test_fault_behind_timer(void **state _unused_)
{
	const struct stretch_cause cause = { .is_timer = true, .interrupt = 7 };
	struct stretch stretch = { 0 };
	uint64_t now = 1000000000;

	assert_int_equal(stretch_begin(&stretch, now, LIMIT, cause), LIMIT);
	stretch_end(&stretch, now, now + 80000, cause);
	now += 80000 + 2 * STRETCH_GAP_NS;
	assert_int_equal(stretch_begin(&stretch, now, LIMIT, page_fault), LIMIT);
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
		cmocka_unit_test(test_sessions),
		cmocka_unit_test(test_faults),
		cmocka_unit_test(test_timer_behind_fault),
		cmocka_unit_test(test_timer_between),
		cmocka_unit_test(test_interrupts_not_counted),
		cmocka_unit_test(test_fault_behind_timer),
		cmocka_unit_test(test_step_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
