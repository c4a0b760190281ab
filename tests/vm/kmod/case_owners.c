// SPDX-License-Identifier: Apache-2.0
/*
 * Owners that are killed wherever they are, and processes that come and go in masses while
 * everybody is sampled. OWNERS_KILLED and FUZZ_SEED in the environment.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cases.h"
#include "client.h"
#include "forge.h"
#include "load.h"
#include "module.h"
#include "tables.h"
#include "tap.h"

enum {
	OWNERS_KILLED = 40,
	LIVES = 3,		/* to know how long one takes */
	RING_BYTES = 65536,
	BREADTH = 4,
	DEPTH = 4,		/* 340 processes */
	EXECS = 25,		/* of each of BREADTH */
	DISTINCT = 40,		/* processes that a storm has to show */
	MOST_STORMS = 20,
};

static const struct source sources[] = {
	{ .name = "cpu-clock", .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_CPU_CLOCK,
	  .rate_hz = 997 },
	{ .name = "page-faults", .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_PAGE_FAULTS,
	  .period = 5 },
	{ .name = "context-switches", .type = PERF_TYPE_SOFTWARE,
	  .config = PERF_COUNT_SW_CONTEXT_SWITCHES, .period = 3 },
};

/* All that an owner does in its life, and then some of it again. */
static int live(void)
{
	struct client client;
	unsigned int i;

	if (client_open(&client) || client_add_rings(&client, RING_BYTES) ||
	    client_set_sources(&client, sources, 3) || tables_set_frameless(&client, getpid(), 1))
		return 1;
	for (i = 0; i < 2; i++) {
		if (client_start(&client))
			return 2;
		load_fault(30);
		client_drain(&client);
		if (client_set_filter(&client, 0, NULL, 0, i ? STACKTAP_FILTER_EXCLUDE_IDLE : 0) ||
		    client_set_rate(&client, 0, 499))
			return 3;
		load_fault(30);
		if (client_stop(&client) || client_flush(&client) || client_set_sources(&client, sources, 3))
			return 4;
		client_drain(&client);
	}
	client_close(&client);
	return 0;
}

static pid_t fork_owner(void)
{
	pid_t pid = fork();

	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		_exit(live());
	}
	return pid;
}

static uint64_t now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000ull + now.tv_nsec / 1000;
}

void case_owners(void)
{
	unsigned long wanted = module_setting("OWNERS_KILLED", OWNERS_KILLED);
	unsigned long seed = module_setting("FUZZ_SEED", 1);
	unsigned int killed = 0, ended = 0, failed = 0;
	uint64_t begun, life = UINT64_MAX;
	struct dice dice;
	int status = 0;

	tap_note("FUZZ_SEED=%lu OWNERS_KILLED=%lu", seed, wanted);
	dice_seed(&dice, seed);
	/* the shortest: where the guest stood still in one of them, hardly any would be killed */
	for (unsigned int i = 0; i < LIVES && !status; i++) {
		begun = now_us();
		waitpid(fork_owner(), &status, 0);
		begun = now_us() - begun;
		life = begun < life ? begun : life;
	}
	if (!tap(!status, "an owner's life takes %" PRIu64 " us (%d)", life, WEXITSTATUS(status)))
		return;
	while (killed < wanted && ended < 10 * wanted && !failed) {
		pid_t pid = fork_owner();

		usleep(dice_roll(&dice, life));
		kill(pid, SIGKILL);
		waitpid(pid, &status, 0);
		if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
			killed++;
		else if (!status)
			ended++;
		else
			failed++;
	}
	tap(killed >= wanted && !failed, "%u owners killed at random points, %u were faster", killed,
	    ended);
	tap(module_is_empty(), "none of them left anything");
}

/* Processes by whom somebody was sampled. */
struct crowd {
	uint64_t seen[65536 / 64];
	unsigned int distinct;
};

static void crowd_visit(const struct sample_view *view, void *arg)
{
	uint32_t tgid = view->sample->tgid % 65536;
	struct crowd *crowd = arg;

	crowd->distinct += !(crowd->seen[tgid / 64] >> tgid % 64 & 1);
	crowd->seen[tgid / 64] |= 1ull << tgid % 64;
}

/* Each process forks so many, down to @depth. */
static _Noreturn void bomb(unsigned int depth)
{
	unsigned int i = 0;

	load_fault(10);
	while (depth && i < BREADTH) {
		i++;
		if (fork())
			continue;
		/* now it is the child's turn */
		load_fault(10);
		depth--;
		i = 0;
	}
	while (wait(NULL) > 0)
		;
	_exit(0);
}

static _Noreturn void exec_often(void)
{
	unsigned int i;
	pid_t pid;

	for (i = 0; i < EXECS; i++) {
		pid = fork();
		if (!pid) {
			/* a case that there is not: it says so and ends */
			execl("/proc/self/exe", "kmodtest", "no-such-case", NULL);
			_exit(1);
		}
		waitpid(pid, NULL, 0);
	}
	_exit(0);
}

/* One storm, while the rings are read. */
static void storm(struct client *client, bool forks)
{
	unsigned int i;

	for (i = 0; i < BREADTH; i++) {
		if (fork())
			continue;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (forks)
			bomb(DEPTH - 1);
		exec_often();
	}
	for (i = 0; i < BREADTH;) {
		pid_t pid = waitpid(-1, NULL, WNOHANG);

		i += pid > 0;
		client_drain(client);
		usleep(1000);
	}
}

static void check_storm(struct client *client, bool forks)
{
	struct crowd crowd = { .distinct = 0 };
	unsigned int storms = 0;

	client->visit_arg = &crowd;
	while (crowd.distinct < DISTINCT && storms < MOST_STORMS) {
		storm(client, forks);
		storms++;
	}
	tap(crowd.distinct >= DISTINCT, "%s: %u processes are seen in %u rounds",
	    forks ? "fork bomb" : "exec storm", crowd.distinct, storms);
}

void case_storms(void)
{
	struct client client;

	if (!tap(!client_open(&client) && !client_add_rings(&client, 1 << 20) &&
		 !client_set_sources(&client, sources, 3), "a session") ||
	    !tap(!tables_set_frameless(&client, getpid(), 1), "whose forks have mapping lists"))
		return;
	client.visit = crowd_visit;
	tap(!client_start(&client), "START");
	check_storm(&client, true);
	check_storm(&client, false);
	tap(tables_wait(&client, 1), "only the parent has a list afterwards");
	tap(!client_stop(&client), "STOP");
	client_drain(&client);
	client_flush(&client);
	client_drain(&client);
	tap(client_balanced(&client), "the ledgers balance");
	client_close(&client);
	tap(module_is_empty(), "the module holds nothing any more");
}
