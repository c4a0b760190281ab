// SPDX-License-Identifier: Apache-2.0
#include "starve.h"

#include "unit.h"

#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static cpu_set_t before;
static pid_t spinning[3];

void starve_confine(void)
{
	cpu_set_t one;

	assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
	CPU_ZERO(&one);
	for (int cpu = 0; cpu < CPU_SETSIZE && !CPU_COUNT(&one); cpu++)
		if (CPU_ISSET(cpu, &before))
			CPU_SET(cpu, &one);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
}

/* Keeps the CPU busy until it is killed, or the test has ended. */
static pid_t start_spinning(void)
{
	const pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (!pid)
		;
	return pid;
}

void starve_begin(pid_t pid)
{
	static const struct sched_param idle;

	assert_int_equal(sched_setscheduler(pid, SCHED_IDLE, &idle), 0);
	for (size_t i = 0; i < ARRAY_SIZE(spinning); i++)
		spinning[i] = start_spinning();
}

void starve_end(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(spinning); i++) {
		kill(spinning[i], SIGKILL);
		waitpid(spinning[i], NULL, 0);
	}
	assert_int_equal(sched_setaffinity(0, sizeof(before), &before), 0);
}
