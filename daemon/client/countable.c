// SPDX-License-Identifier: Apache-2.0
#include <linux/perf_event.h>
#include <string.h>
#include <sys/syscall.h>

#include "base/cpulist.h"
#include "broker/broker.h"
#include "broker/protocol.h"
#include "client/event.h"
#include "client/name.h"

enum {
	RARE = 1 << 30,		/* a period that no limit on rates can object to */
	NO_ANSWER = -EAGAIN,
};

int event_try(const struct broker_event *event)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = event->type,
		.config = event->config,
		.config1 = event->config1,
		.config2 = event->config2,
		.sample_period = RARE,
		.exclude_user = event->exclude_user != 0,
		.exclude_kernel = event->exclude_kernel != 0,
		.exclude_hv = 1,
		.exclude_guest = 1,
		.disabled = 1,
	};
	int fd = (int)syscall(SYS_perf_event_open, &attr, -1, (int)event->cpu, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd < 0)
		return -errno;
	close(fd);
	return 0;
}

static int try_source(const struct control_source *source, uint32_t cpu)
{
	const struct broker_event event = {
		.config = source->config, .config1 = source->config1, .config2 = source->config2,
		.type = source->type, .cpu = cpu,
		.exclude_user = !!(source->flags & STACKTAP_SRC_EXCLUDE_USER),
		.exclude_kernel = !!(source->flags & STACKTAP_SRC_EXCLUDE_KERNEL),
	};

	return broker_is_there() ? broker_try_event(&event) : event_try(&event);
}

/* On any CPU: those of a mixed machine count different things. */
static int try_everywhere(const struct control_source *source)
{
	_cleanup_(cpulist_done) struct cpulist cpus = { 0 };
	int ret = NO_ANSWER;

	if (cpulist_read_online(&cpus) < 0)
		return NO_ANSWER;
	for (uint32_t cpu = 0; ret && cpu < cpulist_limit(&cpus); cpu++)
		if (cpulist_has(&cpus, cpu))
			ret = try_source(source, cpu);
	return ret;
}

static const char *reason_of(int error)
{
	switch (error) {
	case -ENOENT:
		return "no PMU of these CPUs has this event";
	case -EOPNOTSUPP:
		return "the PMU cannot sample it, or not with these modifiers";
	case -EINVAL:
		return "the PMU rejects this configuration";
	default:
		return "this host has no such PMU";
	}
}

static const char *nearest_name(void)
{
	const struct control_source cycles = {
		.type = PERF_TYPE_HARDWARE, .config = PERF_COUNT_HW_CPU_CYCLES,
	};

	return try_everywhere(&cycles) ? "cpu-clock" : "cycles";
}

int event_check_countable(const struct control_source *source, char *error, size_t error_size)
{
	int ret;

	/* cpu-clock says the same in another unit, so it may stand in */
	if (event_is_cpu_time(source->type, source->config))
		return 0;
	ret = try_everywhere(source);
	if (ret != -ENOENT && ret != -EOPNOTSUPP && ret != -EINVAL && ret != -ENODEV &&
	    ret != -ENXIO)
		return 0;
	snprintf(error, error_size, "%s cannot be counted here: %s (%s); %s works",
		 source->name, reason_of(ret), name_of_errno((unsigned int)-ret), nearest_name());
	return -EOPNOTSUPP;
}
