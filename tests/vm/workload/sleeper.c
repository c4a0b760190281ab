// SPDX-License-Identifier: Apache-2.0
/*
 * A thread that computes for so long, sleeps for so long, and so on. What it prints is its CPU time by
 * the scheduler's clock, in ns.
 *
 * usage: sleeper RUN_US SLEEP_US SECONDS
 */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static int64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void compute(int64_t ns)
{
	int64_t until = clock_ns(CLOCK_MONOTONIC) + ns;

	while (clock_ns(CLOCK_MONOTONIC) < until)
		for (unsigned int i = 0; i < 50; i++)
			__asm__ volatile("");
}

int main(int argc, char **argv)
{
	struct timespec pause = { 0 };
	int64_t until;

	if (argc != 4) {
		fprintf(stderr, "usage: sleeper RUN_US SLEEP_US SECONDS\n");
		return 2;
	}
	pause.tv_nsec = atol(argv[2]) * 1000;
	until = clock_ns(CLOCK_MONOTONIC) + atol(argv[3]) * 1000000000;
	while (clock_ns(CLOCK_MONOTONIC) < until) {
		compute(atol(argv[1]) * 1000);
		nanosleep(&pause, NULL);
	}
	printf("%" PRId64 "\n", clock_ns(CLOCK_PROCESS_CPUTIME_ID));
	return 0;
}
