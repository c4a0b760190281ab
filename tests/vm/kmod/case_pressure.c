// SPDX-License-Identifier: Apache-2.0
/*
 * No memory: rings in a control group that has none left for them, and, where the kernel can make
 * allocations fail, each single one of whatever a session does. It is refused and nothing stays.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cases.h"
#include "client.h"
#include "load.h"
#include "module.h"
#include "tables.h"
#include "tap.h"

#define CGROUP "/sys/fs/cgroup/pressure"

enum {
	CGROUP_BYTES = 4 << 20,
	LARGE_BYTES = CGROUP_BYTES, /* and a session takes some more */
	SMALL_BYTES = 1 << 20,
	TRIES = 20,
	MOST_FAILURES = 400,	/* of one call */
};

static const struct source sources[] = {
	{ .name = "cpu-clock", .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_CPU_CLOCK,
	  .rate_hz = 99 },
	{ .name = "cycles", .type = PERF_TYPE_HARDWARE, .config = PERF_COUNT_HW_CPU_CYCLES,
	  .rate_hz = 49, .nominal_hz = 1000000000 },
};

static bool write_number(const char *path, unsigned long number)
{
	char text[32];

	snprintf(text, sizeof(text), "%lu", number);
	return load_write(path, text);
}

/* The value behind @key in the group's memory.events, or -1. */
static long memory_events(const char *key)
{
	FILE *file = fopen(CGROUP "/memory.events", "re");
	char word[32];
	long value, found = -1;

	while (file && fscanf(file, "%31s %ld", word, &value) == 2)
		if (!strcmp(word, key))
			found = value;
	if (file)
		fclose(file);
	return found;
}

/* In the group: what is too large is refused time and again, what fits is still to be had then. */
static int starve(void)
{
	struct stacktap_ring_create large = {
		.size = sizeof(large), .data_bytes = LARGE_BYTES,
	};
	struct client client;
	unsigned int i;

	if (!write_number(CGROUP "/cgroup.procs", getpid()))
		return 1;
	for (i = 0; i < TRIES; i++) {
		if (client_open(&client))
			return 2;
		if (!ioctl(client.fd, STACKTAP_IOC_RING_CREATE, &large))
			return 3;
		if (errno != ENOMEM)
			return 4;
		client_close(&client);
	}
	if (client_open(&client) || client_add_ring(&client, 0, SMALL_BYTES))
		return 5;
	if (client_set_sources(&client, sources, 2) || client_start(&client))
		return 6;
	if (!ioctl(client.fd, STACKTAP_IOC_RING_CREATE, &large) || client_stop(&client))
		return 7;
	client_close(&client);
	return 0;
}

/* Below 5.11 pages that a process maps cannot be charged to its group. */
static bool rings_are_charged(void)
{
	unsigned int major = 0, minor = 0;
	struct utsname name;

	uname(&name);
	return sscanf(name.release, "%u.%u", &major, &minor) == 2 &&
	       (major > 5 || (major == 5 && minor >= 11));
}

static void check_cgroup(void)
{
	int status = -1;
	pid_t child;

	if (!rings_are_charged())
		return;
	load_write("/sys/fs/cgroup/cgroup.subtree_control", "+memory");
	mkdir(CGROUP, 0755);
	if (!write_number(CGROUP "/memory.max", CGROUP_BYTES)) {
		tap_note("this kernel has no memory cgroups");
		rmdir(CGROUP);
		return;
	}
	child = fork();
	if (!child)
		_exit(starve());
	waitpid(child, &status, 0);
	tap(!status, "a ring beyond its control group's memory: ENOMEM, %d times, then a smaller one "
	    "(exit %d, signal %d)", TRIES, WEXITSTATUS(status), WTERMSIG(status));
	tap(!memory_events("oom_kill"), "nobody was killed for it");
	tap(module_is_empty(), "nothing is left");
	rmdir(CGROUP);
}

/* What a session does, step by step; each takes it from where the ones before it led. */
static int step_open(struct client *client)
{
	return client_open(client);
}

static int step_ring(struct client *client)
{
	return client_add_ring(client, 0, STACKTAP_RING_MIN_BYTES);
}

static int step_sources(struct client *client)
{
	return client_set_sources(client, sources, 2);
}

static int step_filter(struct client *client)
{
	static const uint32_t tgids[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9 };

	return client_set_filter(client, 1, tgids, 9, 0);
}

static int step_start(struct client *client)
{
	return client_start(client);
}

static int step_other_ring(struct client *client)
{
	return client_add_ring(client, 1, STACKTAP_RING_MIN_BYTES);
}

static int step_refilter(struct client *client)
{
	return client_set_filter(client, 3, NULL, 0, 0);
}

static int step_rate(struct client *client)
{
	return client_set_rate(client, 0, 4999);
}

static int step_tables(struct client *client)
{
	return tables_set_frameless(client, getpid(), 1);
}

static int step_stop(struct client *client)
{
	return client_stop(client);
}

static const struct {
	const char *name;
	int (*take)(struct client *client);
} steps[] = {
	{ "open", step_open }, { "RING_CREATE", step_ring }, { "sources", step_sources },
	{ "filter", step_filter }, { "START", step_start }, { "a ring while it runs", step_other_ring },
	{ "another filter", step_refilter }, { "another rate", step_rate },
	{ "a table and a list", step_tables }, { "STOP", step_stop },
};

/*
 * One life up to step @last, of which the @nth allocation fails. Returns false when it has not so
 * many. @ret_err is what the step said.
 */
static bool live_without(unsigned int last, unsigned int nth, int *ret_err)
{
	struct client client = { .fd = -1 };
	char left[16] = "";
	unsigned int i;
	int fail, err;

	for (i = 0; i < last; i++) {
		err = steps[i].take(&client);
		if (err) {
			*ret_err = -EPROTO;
			return true;
		}
	}
	fail = open("/proc/self/fail-nth", O_RDWR | O_CLOEXEC);
	snprintf(left, sizeof(left), "%u", nth);
	if (fail < 0 || write(fail, left, strlen(left)) < 0) {
		*ret_err = -ENOSYS;
		return true;
	}
	*ret_err = steps[last].take(&client);
	if (pread(fail, left, sizeof(left) - 1, 0) < 0 || pwrite(fail, "0", 1, 0) < 0)
		*ret_err = -ENOSYS;
	close(fail);
	/* what client_open() gave up half-way is closed with the process */
	return atoi(left) == 0;
}

static int fork_life(unsigned int last, unsigned int nth)
{
	int status = -1, err = 0;
	pid_t child = fork();

	if (!child) {
		if (!live_without(last, nth, &err))
			_exit(255);
		_exit(-err);
	}
	waitpid(child, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void check_each(void)
{
	static const char *const how[] = { "failslab", "fail_page_alloc" };
	unsigned int step, nth, i;
	char path[96];

	for (i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "/sys/kernel/debug/%s/verbose", how[i]);
		if (!load_write(path, "0")) {
			tap_note("this kernel cannot make allocations fail");
			return;
		}
		snprintf(path, sizeof(path), "/sys/kernel/debug/%s/ignore-gfp-wait", how[i]);
		load_write(path, "N");
	}
	load_write("/sys/kernel/debug/fail_page_alloc/min-order", "0");
	for (step = 0; step < sizeof(steps) / sizeof(steps[0]); step++) {
		unsigned int refused = 0, survived = 0, wrong = 0;
		int status = 0;

		for (nth = 1; nth < MOST_FAILURES; nth++) {
			status = fork_life(step, nth);
			if (status == 255)
				break;
			refused += status == ENOMEM || status == ENOBUFS;
			survived += !status;
			if (status && status != ENOMEM && status != ENOBUFS) {
				tap_note("%s, allocation %u: %d", steps[step].name, nth, status);
				wrong++;
			}
		}
		tap(status == 255 && nth > 1 && !wrong, "%s without one of its %u allocations: "
		    "%u times refused, %u times done all the same, %u otherwise",
		    steps[step].name, nth - 1, refused, survived, wrong);
	}
	tap(module_is_empty(), "nothing is left");
}

void case_pressure(void)
{
	check_cgroup();
	check_each();
	tap(module_is_empty(), "the module serves as before");
}
