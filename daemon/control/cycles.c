// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>

#include "control/event.h"

enum {
	MEASURE_NS = 20000000,
	ROUND_HZ = 10000000,
	NS_PER_S = 1000000000,
	HZ_PER_KHZ = 1000,
};

static uint64_t read_khz(const char *path)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	char text[32];
	ssize_t length;

	if (fd < 0)
		return 0;
	length = read(fd, text, sizeof(text) - 1);
	if (length <= 0)
		return 0;
	text[length] = '\0';
	return strtoull(text, NULL, 10);
}

/* The fastest CPU's, so that no CPU of a mixed machine is sampled faster than asked for. */
static uint64_t read_cpufreq(const char *file)
{
	long cpus = sysconf(_SC_NPROCESSORS_CONF);
	uint64_t fastest = 0;

	for (long cpu = 0; cpu < cpus; cpu++) {
		char path[96];

		snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%ld/cpufreq/%s", cpu, file);
		fastest = max_of(fastest, read_khz(path));
	}
	return fastest * HZ_PER_KHZ;
}

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

/* Cycles of a busy loop over this thread's own CPU time, so that being scheduled out is harmless. */
static uint64_t measure(void)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_HARDWARE,
		.config = PERF_COUNT_HW_CPU_CYCLES,
		.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
		.disabled = 1,
		.exclude_hv = 1,
		.exclude_guest = 1,
	};
	struct {
		uint64_t value, enabled, running;
	} count;
	_cleanup_close_ int fd = -1;
	uint64_t start;

	fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0)
		return 0;
	start = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	if (ioctl(fd, PERF_EVENT_IOC_ENABLE, 0) < 0)
		return 0;
	while (clock_ns(CLOCK_THREAD_CPUTIME_ID) - start < MEASURE_NS)
		;
	if (read(fd, &count, sizeof(count)) != sizeof(count) || !count.running)
		return 0;
	/* rounded, so that two measurements make one period and so profiles that compare */
	return (uint64_t)((double)count.value * NS_PER_S / (double)count.running / ROUND_HZ + 0.5) *
	       ROUND_HZ;
}

uint64_t event_nominal_cycles(void)
{
	/* what the machine has does not change while we run */
	static _Atomic uint64_t known;
	uint64_t hz = known;

	if (hz)
		return hz;
	hz = read_cpufreq("base_frequency");
	if (!hz)
		hz = read_cpufreq("cpuinfo_max_freq");
	if (!hz)
		hz = measure();
	known = hz;
	return hz;
}
