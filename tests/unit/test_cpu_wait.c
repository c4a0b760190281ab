// SPDX-License-Identifier: Apache-2.0
/* Who waited for a CPU, and who had something else to wait for. */
#include "unit.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "helper/cpu_wait.h"
#include "starve.h"

enum { STRETCH_MS = 500, HALF = CPU_WAIT_PERCENT / 2 };

static int wake[2];

static void wait_ms(uint64_t ms)
{
	usleep((useconds_t)(1000 * ms));
}

/* A child that sleeps until a byte comes, each time that it comes to the end of a bit of work. */
static pid_t start_child(bool is_busy_first)
{
	pid_t pid;
	char byte;

	assert_int_equal(pipe(wake), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (uint64_t until = clock_monotonic() + STRETCH_MS / 5 * NSEC_PER_MSEC; is_busy_first && clock_monotonic() < until;)
		;
	if (read(wake[0], &byte, 1) != 1)
		_exit(1);
	for (;;)
		;
}

static void stop_child(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	close(wake[0]);
	close(wake[1]);
}

/* What is left of a stretch whose last moment alone the child, which is woken up for it, wants the CPU for. */
static unsigned int rest_of_sleeper(bool is_busy_first)
{
	const pid_t pid = start_child(is_busy_first);
	struct cpu_wait wait;
	unsigned int rest;

	wait_ms(STRETCH_MS / 10);
	cpu_wait_begin(&wait, pid);
	wait_ms(STRETCH_MS);
	assert_int_equal(write(wake[1], "", 1), 1);
	wait_ms(1);
	rest = cpu_wait_rest(&wait, pid);
	stop_child(pid);
	return rest;
}

static void who_sleeps_does_not_wait_for_a_cpu(void **state)
{
	(void)state;
	assert_true(rest_of_sleeper(false) >= HALF);
	assert_true(rest_of_sleeper(true) >= HALF);
}

static void who_gets_no_cpu_waits_for_it(void **state)
{
	struct cpu_wait wait;
	unsigned int rest;
	pid_t pid;

	(void)state;
	starve_confine();
	pid = start_child(false);
	assert_int_equal(write(wake[1], "", 1), 1);
	wait_ms(STRETCH_MS / 10);
	starve_begin(pid);
	cpu_wait_begin(&wait, pid);
	wait_ms(STRETCH_MS);
	rest = cpu_wait_rest(&wait, pid);
	starve_end();
	stop_child(pid);
	assert_true(rest < HALF);
}

static void nothing_is_known_of_who_is_gone(void **state)
{
	const pid_t pid = start_child(false);
	struct cpu_wait wait;

	(void)state;
	cpu_wait_begin(&wait, pid);
	stop_child(pid);
	assert_int_equal(cpu_wait_rest(&wait, pid), CPU_WAIT_PERCENT);
	cpu_wait_begin(&wait, pid);
	assert_int_equal(wait.began, 0);
	assert_int_equal(cpu_wait_rest(&wait, pid), CPU_WAIT_PERCENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_sleeps_does_not_wait_for_a_cpu),
		cmocka_unit_test(who_gets_no_cpu_waits_for_it),
		cmocka_unit_test(nothing_is_known_of_who_is_gone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
