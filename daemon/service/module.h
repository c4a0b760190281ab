/* SPDX-License-Identifier: Apache-2.0 */
/* What the module counts for a session, by CPU: its own time, and what became of samples. */
#ifndef STACKTAP_SERVICE_MODULE_H
#define STACKTAP_SERVICE_MODULE_H

#include "base/buffer.h"

struct module_cpu {
	char name[12];			/* its number */
	uint64_t calls, recorded, filtered, lost, throttled, stalled, missed, moved, stale,
		in_place, put_off, fallback_recorded;
	uint64_t handler_ns, drain_ns;	/* 0 of modules before ABI 1.6 */
	uint64_t ring_used, ring_bytes;
};

/* Appends a struct module_cpu for each CPU. -errno: what there is by then is not all. */
int module_read(uint64_t session_id, struct buffer *cpus);

#endif /* STACKTAP_SERVICE_MODULE_H */
