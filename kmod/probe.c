// SPDX-License-Identifier: GPL-2.0-only
#include <linux/mutex.h>
#include <linux/string.h>
#include <linux/tracepoint.h>
#include <trace/events/sched.h>

#include "capture.h"
#include "compat/compat.h"
#include "probe.h"

static DEFINE_MUTEX(probe_lock);
static unsigned int probe_holders;
static struct tracepoint *probe_tracepoint;

/* Runs with the run queue locked and IRQs off, while the leaving task is still current. */
static void probe_sched_switch(COMPAT_SCHED_SWITCH_ARGS)
{
	capture_drain_pending();
}

int probe_hold(void)
{
	int err = 0;

	mutex_lock(&probe_lock);
	if (!probe_holders)
		err = tracepoint_probe_register(probe_tracepoint, probe_sched_switch, NULL);
	if (!err)
		probe_holders++;
	mutex_unlock(&probe_lock);
	return err;
}

void probe_drop(void)
{
	mutex_lock(&probe_lock);
	if (!--probe_holders) {
		tracepoint_probe_unregister(probe_tracepoint, probe_sched_switch, NULL);
		tracepoint_synchronize_unregister();
	}
	mutex_unlock(&probe_lock);
}

static void probe_match(struct tracepoint *tracepoint, void *unused)
{
	if (!strcmp(tracepoint->name, "sched_switch"))
		probe_tracepoint = tracepoint;
}

int probe_init(void)
{
	/* the tracepoint is found by name, so the compiler has to be asked to check the callback */
	check_trace_callback_type_sched_switch(probe_sched_switch);
	for_each_kernel_tracepoint(probe_match, NULL);
	return probe_tracepoint ? 0 : -ENOENT;
}
