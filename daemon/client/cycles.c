// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>

#include "base/file.h"
#include "client/event.h"

enum {
	MEASURE_NS = 5000000,
	NR_MEASURES = 5,
	ROUND_HZ = 10000000,
	NS_PER_S = 1000000000,
	HZ_PER_KHZ = 1000,
};

static uint64_t read_khz(const char *path)
{
	char text[32];

	return file_read_text(AT_FDCWD, path, text, sizeof(text)) > 0 ? strtoull(text, NULL, 10) : 0;
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

struct cycle_count {
	uint64_t value, enabled, running;
};

static int by_size(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* Cycles of a busy loop over this thread's own CPU time, so that being scheduled out is harmless. */
static int burn(int fd, struct cycle_count *ret_count)
{
	uint64_t start = clock_ns(CLOCK_THREAD_CPUTIME_ID);

	while (clock_ns(CLOCK_THREAD_CPUTIME_ID) - start < MEASURE_NS)
		;
	return read(fd, ret_count, sizeof(*ret_count)) == sizeof(*ret_count) ? 0 : -EIO;
}

/*
 * The median of some short measurements: where virtual CPUs have a virtual PMU, a count may lose a
 * part of itself. (QEMU's emulation does so when several CPUs run at once: of 100 measurements one
 * came out as a twentieth.) A wrong rate here is a period that is wrong as many times.
 */
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
	struct cycle_count last = { 0 };
	double rates[NR_MEASURES];
	_cleanup_close_ int fd = -1;

	fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0 || ioctl(fd, PERF_EVENT_IOC_ENABLE, 0) < 0)
		return 0;
	for (size_t i = 0; i < NR_MEASURES; i++) {
		struct cycle_count count;

		if (burn(fd, &count) < 0 || count.running <= last.running)
			return 0;
		rates[i] = (double)(count.value - last.value) * NS_PER_S /
			   (double)(count.running - last.running);
		last = count;
	}
	qsort(rates, NR_MEASURES, sizeof(rates[0]), by_size);
	/* rounded, so that two measurements make one period and so profiles that compare */
	return (uint64_t)(rates[NR_MEASURES / 2] / ROUND_HZ + 0.5) * ROUND_HZ;
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
