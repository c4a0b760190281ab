/* SPDX-License-Identifier: Apache-2.0 */
/* PMUs that the kernel describes below /sys/bus/event_source/devices. */
#ifndef STACKTAP_CLIENT_PMU_H
#define STACKTAP_CLIENT_PMU_H

#include "base/macro.h"

struct pmu_event {
	uint32_t type;
	uint64_t config[3];	/* perf_event_attr.config, config1, config2 */
};

/*
 * "NAME/term=value,term,.../": terms are config, config1, config2, those of the PMU's format
 * directory, or the name of one of its events. @root is the devices directory. -EINVAL with a
 * sentence in @error.
 */
int pmu_parse(const char *root, const char *text, struct pmu_event *ret_event, char *error,
	      size_t error_size);

#endif /* STACKTAP_CLIENT_PMU_H */
