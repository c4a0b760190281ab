// SPDX-License-Identifier: Apache-2.0
/* For how long PMU interrupts may walk, and that perf's governor has no reason to act on what they do. */
#include "fixture.h"

#include <stacktap/allowance.h>

/* kernel/events/core.c */
#define PERF_SAMPLES 128u
#define PERF_ALLOWED_NS 2500u

/* what its driver takes */
#define PERF_OWN_NS 1300u
/* what a walk may be late by */
#define LATE_NS 20000u

struct cpu {
	struct allowance allowance;
	uint64_t now;
	uint64_t perf_sum;	/* perf_sample_event_took()'s running_sample_length */
	uint64_t perf_spent;	/* in the interrupt so far */
	uint64_t in_place, put_off, stashed;
};

/*
 * A handler in whose time its stack is walked, which takes @walk ns, unless that is more than it may, and what it does
 * beside, @front ns.
 */
static void handle(struct cpu *cpu, uint32_t front, uint32_t walk)
{
	const uint32_t left = allowance_left(&cpu->allowance, cpu->now, ALLOWANCE_DEFAULT_NS);
	uint32_t ns = front;

	if (!left) {
		cpu->stashed++;
	} else if (walk > left) {
		ns += left + LATE_NS;
		cpu->put_off++;
	} else {
		ns += walk;
		cpu->in_place++;
	}
	allowance_note(&cpu->allowance, cpu->now, ns);
	cpu->now += ns;
	cpu->perf_spent += ns;
}

/* perf's part ends the interrupt. Returns the mean that perf goes by. */
static uint64_t interrupt_end(struct cpu *cpu, uint64_t pause)
{
	cpu->perf_sum -= cpu->perf_sum / PERF_SAMPLES;
	cpu->perf_sum += cpu->perf_spent + PERF_OWN_NS;
	cpu->perf_spent = 0;
	cpu->now += pause;
	return cpu->perf_sum / PERF_SAMPLES;
}

static void test_usual_stacks(void **state _unused_)
{
	struct cpu cpu = { .now = 1000000 };

	for (unsigned int i = 0; i < 10000; i++) {
		handle(&cpu, 300, 550);
		assert_true(interrupt_end(&cpu, 100000) <= PERF_ALLOWED_NS);
	}
	assert_int_equal(cpu.in_place, 10000);
}

/* Whatever they take, perf does not see a mean that it acts on; what has no time in place is put off, not cut. */
static void test_any_stacks(void **state _unused_)
{
	const uint32_t most = ALLOWANCE_DEFAULT_NS * ALLOWANCE_WALK;
	const uint32_t walks[] = { 1000, 1500, 4000, most - 1, most, most + 1, 40000, 1000000 };

	for (size_t i = 0; i < ARRAY_SIZE(walks); i++) {
		struct cpu cpu = { .now = 1000000 };

		for (unsigned int n = 0; n < 100000; n++) {
			handle(&cpu, 300, walks[i]);
			assert_true(interrupt_end(&cpu, 100000) < PERF_ALLOWED_NS);
		}
		assert_int_equal(cpu.in_place + cpu.put_off + cpu.stashed, 100000);
		assert_true(cpu.stashed > 0);
		assert_int_equal(cpu.put_off > 0, walks[i] > most);
		assert_int_equal(cpu.in_place > 0, walks[i] <= most);
	}
}

/* Counters that overflow together share what there is: one interrupt, to perf. */
static void test_one_interrupt(void **state _unused_)
{
	struct cpu cpu = { .now = 1000000 };

	for (unsigned int n = 0; n < 100000; n++) {
		for (unsigned int i = 0; i < 8; i++, cpu.now += 200)
			handle(&cpu, 100, 2000);
		assert_true(interrupt_end(&cpu, 100000) < PERF_ALLOWED_NS);
	}
	assert_true(cpu.in_place > 1000 && cpu.stashed > 1000);
}

/* Two-phase handlers bring the mean down, and stacks that fit are walked in place again. */
static void test_goes_and_comes_back(void **state _unused_)
{
	struct cpu cpu = { .now = 1000000 };
	unsigned int n;

	for (n = 0; n < 10000; n++) {
		handle(&cpu, 300, 5000);
		interrupt_end(&cpu, 100000);
	}
	assert_true(cpu.stashed > 5000);
	cpu.stashed = cpu.in_place = 0;
	for (n = 0; n < 10000; n++) {
		handle(&cpu, 300, 500);
		interrupt_end(&cpu, 100000);
	}
	assert_true(cpu.stashed < PERF_SAMPLES);
}

/* Interrupts that follow each other without a pause never walk for long, and do not count as one for ever. */
static void test_no_pause(void **state _unused_)
{
	struct cpu cpu = { .now = 1000000 };

	for (unsigned int n = 0; n < 1000000; n++) {
		handle(&cpu, 300, 1000);
		cpu.now += 1000;
		assert_true(allowance_spent(&cpu.allowance, cpu.now) <= ALLOWANCE_LONGEST_NS);
		assert_true(cpu.allowance.sum < UINT32_MAX / 2);
	}
	assert_true(cpu.stashed > 900000);
	cpu.now += 1000000;
	for (unsigned int n = 0; n < 10000; n++, cpu.now += 100000)
		handle(&cpu, 300, 500);
	assert_true(cpu.in_place > 9000);
}

/* The end of a handler is by another clock than the next one's beginning, and may be the later of the two. */
static void test_clock_ahead(void **state _unused_)
{
	struct cpu cpu = { .now = 1000000 };

	handle(&cpu, 300, 5000);
	assert_int_equal(allowance_spent(&cpu.allowance, cpu.now - 1000), 5300);
	assert_int_equal(allowance_left(&cpu.allowance, cpu.now - 1000, ALLOWANCE_DEFAULT_NS),
			 ALLOWANCE_DEFAULT_NS * ALLOWANCE_WALK - 5300);
	assert_int_equal(allowance_spent(&cpu.allowance, cpu.now + ALLOWANCE_GAP_NS + 1), 0);
}

static void test_never(void **state _unused_)
{
	const struct allowance none = { 0 };

	assert_int_equal(allowance_left(&none, 1000000, 0), 0);
	assert_int_equal(allowance_left(&none, 1000000, 1000000), 13000000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_usual_stacks),
		cmocka_unit_test(test_any_stacks),
		cmocka_unit_test(test_one_interrupt),
		cmocka_unit_test(test_goes_and_comes_back),
		cmocka_unit_test(test_no_pause),
		cmocka_unit_test(test_clock_ahead),
		cmocka_unit_test(test_never),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
