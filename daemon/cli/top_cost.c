// SPDX-License-Identifier: Apache-2.0
#include "cli/top_cost.h"

#include <dirent.h>
#include <sys/stat.h>
#include <time.h>

#include "base/clock.h"

struct look {
	uint64_t sessions[STACKTAP_MAX_SESSIONS];
	uint32_t owners[STACKTAP_MAX_SESSIONS];	/* each once */
	size_t session_count, owner_count;
	uint64_t module, programs;
};

static int add_session(void *ctx, const struct control_session *session)
{
	struct look *look = ctx;
	size_t i = 0;

	if (look->session_count == STACKTAP_MAX_SESSIONS)
		return -EOVERFLOW;
	look->sessions[look->session_count++] = session->id;
	while (i < look->owner_count && look->owners[i] != session->owner_tgid)
		i++;
	look->owners[i] = session->owner_tgid;
	look->owner_count = max_of(look->owner_count, i + 1);
	return 0;
}

static int add_cpu(void *ctx, const struct control_cpu *cpu)
{
	struct look *look = ctx;

	look->module += cpu->handler.ns + cpu->drain.ns;
	return 0;
}

static uint64_t cpu_time_of(pid_t pid)
{
	clockid_t clock;

	return clock_getcpuclockid(pid, &clock) ? 0 : clock_read(clock);
}

/* A helper is the same executable once more; the command that `record' runs is none. */
static bool is_helper(uint32_t tgid, pid_t pid)
{
	struct stat owner, child;
	char path[32];

	snprintf(path, sizeof(path), "/proc/%u/exe", tgid);
	if (stat(path, &owner))
		return false;
	snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	return !stat(path, &child) && child.st_dev == owner.st_dev && child.st_ino == owner.st_ino;
}

/* Of helpers, which are children of the thread that asks them. */
static uint64_t cpu_time_of_children(uint32_t tgid, const char *tid)
{
	_cleanup_fclose_ FILE *file = NULL;
	char path[64];
	uint64_t sum = 0;
	int pid;

	snprintf(path, sizeof(path), "/proc/%u/task/%.16s/children", tgid, tid);
	file = fopen(path, "re");
	while (file && fscanf(file, "%d", &pid) == 1)
		if (is_helper(tgid, pid))
			sum += cpu_time_of(pid);
	return sum;
}

static uint64_t cpu_time_of_program(uint32_t tgid)
{
	uint64_t sum = cpu_time_of((pid_t)tgid);
	const struct dirent *entry;
	char path[32];
	DIR *tasks;

	snprintf(path, sizeof(path), "/proc/%u/task", tgid);
	tasks = opendir(path);
	if (!tasks)
		return sum;
	while ((entry = readdir(tasks)))
		if (entry->d_name[0] != '.')
			sum += cpu_time_of_children(tgid, entry->d_name);
	closedir(tasks);
	return sum;
}

static void take(struct top_cost *cost, struct look *look)
{
	if (!cost->control && control_open(&cost->control) < 0)
		return;
	if (control_each_session(cost->control, add_session, look) < 0)
		return;
	/* one that has ended since has no CPUs any more */
	for (size_t i = 0; i < look->session_count; i++)
		control_each_cpu(cost->control, look->sessions[i], add_cpu, look);
	for (size_t i = 0; i < look->owner_count; i++)
		look->programs += cpu_time_of_program(look->owners[i]);
}

/* What ended meanwhile takes its sum along. */
static uint64_t difference(uint64_t now, uint64_t before)
{
	return now > before ? now - before : 0;
}

void top_cost_measure(struct top_cost *cost)
{
	const uint64_t now = clock_monotonic();
	struct look look = { 0 };
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	double all;

	take(cost, &look);
	cost->cpus = cpus > 0 ? (unsigned int)cpus : 1;
	cost->is_measured = cost->time && now > cost->time;
	if (cost->is_measured) {
		cost->span_ns = now - cost->time;
		cost->module_ns = difference(look.module, cost->module_sum);
		cost->programs_ns = difference(look.programs, cost->programs_sum);
		all = (double)cost->span_ns * cost->cpus;
		cost->module = 100 * (double)cost->module_ns / all;
		cost->programs = 100 * (double)cost->programs_ns / all;
	}
	cost->time = now;
	cost->module_sum = look.module;
	cost->programs_sum = look.programs;
}

void top_cost_done(struct top_cost *cost)
{
	control_close(cost->control);
}
