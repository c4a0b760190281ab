// SPDX-License-Identifier: Apache-2.0
#include "helper/cpu_wait.h"

#include <string.h>

#include "base/clock.h"
#include "base/file.h"

enum { TEXT_MAX = 4096 };

static char *read_proc(pid_t pid, const char *name)
{
	char path[40], *text;

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	return file_read(AT_FDCWD, path, TEXT_MAX, &text, NULL) < 0 ? NULL : text;
}

static bool read_times(pid_t pid, uint64_t *ret_ran, uint64_t *ret_waited)
{
	_cleanup_free_ char *text = read_proc(pid, "schedstat");
	unsigned long long ran, waited;

	if (!text || sscanf(text, "%llu %llu", &ran, &waited) != 2)
		return false;
	*ret_ran = ran;
	*ret_waited = waited;
	return true;
}

/* Running, or waiting for a CPU: neither asleep nor stopped. Behind the name, which may have anything in it. */
static bool is_runnable(pid_t pid)
{
	_cleanup_free_ char *text = read_proc(pid, "stat");
	const char *behind = text ? strrchr(text, ')') : NULL;

	return behind && !strncmp(behind, ") R", 3);
}

/* How often it has gone to sleep; UINT64_MAX: it sleeps, or nobody knows. */
static uint64_t read_sleeps(pid_t pid)
{
	static const char name[] = "\nvoluntary_ctxt_switches:";
	_cleanup_free_ char *text = read_proc(pid, "status");
	const char *at = text ? strstr(text, name) : NULL;
	unsigned long long sleeps;

	return at && is_runnable(pid) && sscanf(at + sizeof(name) - 1, "%llu", &sleeps) == 1 ? sleeps : UINT64_MAX;
}

void cpu_wait_begin(struct cpu_wait *wait, pid_t pid)
{
	*wait = (struct cpu_wait){ 0 };
	if (!read_times(pid, &wait->ran, &wait->waited))
		return;
	wait->sleeps = read_sleeps(pid);
	wait->began = clock_monotonic();
}

unsigned int cpu_wait_rest(const struct cpu_wait *wait, pid_t pid)
{
	const uint64_t length = clock_monotonic() - wait->began;
	uint64_t ran, waited;

	if (!wait->began || !length || !read_times(pid, &ran, &waited))
		return CPU_WAIT_PERCENT;
	ran -= wait->ran;
	waited -= wait->waited;
	/* the kernel counts a wait when it is over; who has slept since may have come to wait a moment ago */
	if (wait->sleeps != UINT64_MAX && read_sleeps(pid) == wait->sleeps && ran < length)
		waited = max_of(waited, length - ran);
	return (unsigned int)(CPU_WAIT_PERCENT * (length - min_of(waited, length)) / length);
}
