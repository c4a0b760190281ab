// SPDX-License-Identifier: Apache-2.0
#include <linux/perf_event.h>
#include <stdio.h>

#include "nmi.h"

const struct source nmi_sources[NMI_SOURCES] = {
	[NMI_CLOCK] = { .name = "cpu-clock", .type = PERF_TYPE_SOFTWARE,
			.config = PERF_COUNT_SW_CPU_CLOCK, .rate_hz = 997 },
	[NMI_NMI] = { .name = "nmi", .type = PERF_TYPE_SOFTWARE,
		      .config = PERF_COUNT_SW_ALIGNMENT_FAULTS, .period = 1 },
};

const struct source nmi_slow_clock = {
	.name = "cpu-clock", .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_CPU_CLOCK,
	.rate_hz = 1,
};

static bool nmi_set(const char *path, unsigned int value)
{
	FILE *file = fopen(path, "we");
	bool good = file && fprintf(file, "%u", value) > 0;

	return file && !fclose(file) && good;
}

bool nmi_set_interval(unsigned int us)
{
	return nmi_set(NMI_PARAMETERS "interval_us", us);
}

bool nmi_burst(unsigned int count)
{
	return nmi_set(NMI_BURST, count);
}
