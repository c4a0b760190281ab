// SPDX-License-Identifier: Apache-2.0
/*
 * How long a fork and an exec take where many processes live: children of this one, which inherit what
 * it has and then sleep. The medians of fork to the child's end, and of the same with an exec in between.
 *
 * usage: workload_fork LIVE ROUNDS [stop [COMMAND]]
 *	stop: stop where others begin and end to sample; COMMAND runs when all of them live
 * prints "live=N fork=NS exec=NS"
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void die(const char *what)
{
	fprintf(stderr, "workload_fork: %s: %s\n", what, strerror(errno));
	exit(1);
}

static uint64_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static void sleep_for_ever(void)
{
	for (;;)
		pause();
}

static pid_t *begin(size_t count)
{
	pid_t *pids = calloc(count + 1, sizeof(*pids));

	if (!pids)
		die("memory");
	for (size_t i = 0; i < count; i++) {
		pids[i] = fork();
		if (pids[i] < 0)
			die("fork");
		if (!pids[i])
			sleep_for_ever();
	}
	return pids;
}

static void end(pid_t *pids, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		int status;

		kill(pids[i], SIGKILL);
		if (waitpid(pids[i], &status, 0) != pids[i] || !WIFSIGNALED(status)) {
			fprintf(stderr, "workload_fork: process %zu of %zu had ended\n", i, count);
			exit(1);
		}
	}
	free(pids);
}

static uint64_t one(char **command)
{
	uint64_t start = now();
	pid_t pid = fork();
	int status;

	if (pid < 0)
		die("fork");
	if (!pid) {
		if (command)
			execv("/proc/self/exe", command);
		_exit(command != NULL);
	}
	if (waitpid(pid, &status, 0) != pid || status)
		die("the child");
	return now() - start;
}

static int compare(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static uint64_t median(char **command, size_t rounds)
{
	uint64_t *took = calloc(rounds, sizeof(*took)), middle;

	if (!took)
		die("memory");
	for (size_t i = 0; i < rounds; i++)
		took[i] = one(command);
	qsort(took, rounds, sizeof(*took), compare);
	middle = took[rounds / 2];
	free(took);
	return middle;
}

int main(int argc, char **argv)
{
	static char *exits[] = { "workload_fork", NULL };
	uint64_t forks, execs;
	size_t live, rounds;
	pid_t *pids;

	if (argc == 1)
		return 0;
	if (argc < 3)
		return 2;
	live = strtoul(argv[1], NULL, 10);
	rounds = strtoul(argv[2], NULL, 10);
	if (!rounds)
		return 2;
	if (argc > 3)
		raise(SIGSTOP);
	pids = begin(live);
	if (argc > 4 && system(argv[4]))
		die(argv[4]);
	forks = median(NULL, rounds);
	execs = median(exits, rounds);
	end(pids, live);
	if (argc > 3)
		raise(SIGSTOP);
	printf("live=%zu fork=%" PRIu64 " exec=%" PRIu64 "\n", live, forks, execs);
	return 0;
}
