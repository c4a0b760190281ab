// SPDX-License-Identifier: Apache-2.0
#include "service/module.h"

#include <inttypes.h>

#include "client/netlink.h"

static void add_counts(struct module_cpu *sum, const struct control_counts *counts)
{
	sum->calls += counts->calls;
	sum->recorded += counts->recorded;
	sum->filtered += counts->filtered;
	sum->throttled += counts->throttled;
	sum->stalled += counts->stalled;
	sum->missed += counts->missed;
	sum->moved += counts->moved;
	sum->stale += counts->stale;
	sum->in_place += counts->in_place;
	sum->put_off += counts->put_off;
	sum->fallback_recorded += counts->fallback_recorded;
	for (size_t i = 0; i < ARRAY_SIZE(counts->lost); i++)
		sum->lost += counts->lost[i];
}

static int add_cpu(void *ctx, const struct control_cpu *cpu)
{
	struct module_cpu sum = {
		.handler_ns = cpu->handler.ns,
		.drain_ns = cpu->drain.ns,
		.ring_used = cpu->ring_used,
		.ring_bytes = cpu->ring_bytes,
	};

	snprintf(sum.name, sizeof(sum.name), "%" PRIu32, cpu->cpu);
	for (size_t i = 0; i < cpu->count_count; i++)
		add_counts(&sum, &cpu->counts[i]);
	return buffer_append(ctx, &sum, sizeof(sum));
}

int module_read(uint64_t session_id, struct buffer *cpus)
{
	struct control *control;
	int err = control_open(&control);

	if (err)
		return err;
	err = control_each_cpu(control, session_id, add_cpu, cpus);
	control_close(control);
	return err;
}
