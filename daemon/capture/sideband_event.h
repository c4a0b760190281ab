/* SPDX-License-Identifier: Apache-2.0 */
/* The perf event that a CPU's side band is read from. */
#ifndef STACKTAP_CAPTURE_SIDEBAND_EVENT_H
#define STACKTAP_CAPTURE_SIDEBAND_EVENT_H

#include <stdint.h>

enum {
	/* PERF_FORMAT_LOST, which headers before 6.0 lack */
	SIDEBAND_FORMAT_LOST = 1 << 4,
};

/* @read_format: 0 or SIDEBAND_FORMAT_LOST, -EINVAL: this kernel does not know it. Others: as sideband_open(). */
int sideband_event_open(uint32_t cpu, uint64_t read_format);

#endif /* STACKTAP_CAPTURE_SIDEBAND_EVENT_H */
