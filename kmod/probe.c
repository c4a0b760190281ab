// SPDX-License-Identifier: GPL-2.0-only
#include <linux/mutex.h>
#include <linux/preempt.h>
#include <linux/string.h>
#include <linux/tracepoint.h>
#include <trace/events/sched.h>

#include "capture.h"
#include "ceiling.h"
#include "compat/compat.h"
#include "defer.h"
#include "mappings.h"
#include "probe.h"
#include "session.h"

struct probe {
	const char *name;
	void *callback;
	struct tracepoint *tracepoint;
	unsigned int holders;
};

static DEFINE_MUTEX(probe_lock);

/* Runs with the run queue locked and IRQs off, while the leaving task is still current. */
static void probe_sched_switch(COMPAT_SCHED_SWITCH_ARGS)
{
	defer_run_pending(CAPTURE_SWITCH_LIMIT_NS);
}

/* Runs in the parent before the child is woken for the first time, so both keep their mm. */
static void probe_sched_process_fork(void *data, struct task_struct *parent,
				     struct task_struct *child)
{
	u32 began;

	if (!parent->mm || !child->mm || parent->mm == child->mm)
		return;
	/* newer kernels call tracepoints with preemption on */
	preempt_disable();
	began = cost_ticks();
	st_mappings_inherit(parent->mm, child->mm);
	st_ceiling_charge_all(cost_ns(began));
	preempt_enable();
}

static struct probe probe_switch = { .name = "sched_switch", .callback = probe_sched_switch };
static struct probe probe_fork = {
	.name = "sched_process_fork",
	.callback = probe_sched_process_fork,
};

static int hold(struct probe *probe)
{
	int err = 0;

	mutex_lock(&probe_lock);
	if (!probe->holders)
		err = tracepoint_probe_register(probe->tracepoint, probe->callback, NULL);
	if (!err)
		probe->holders++;
	mutex_unlock(&probe_lock);
	return err;
}

static void drop(struct probe *probe)
{
	mutex_lock(&probe_lock);
	if (!--probe->holders) {
		tracepoint_probe_unregister(probe->tracepoint, probe->callback, NULL);
		tracepoint_synchronize_unregister();
	}
	mutex_unlock(&probe_lock);
}

int st_probe_hold(void)
{
	return hold(&probe_switch);
}

void st_probe_drop(void)
{
	drop(&probe_switch);
}

int st_probe_hold_fork(void)
{
	return hold(&probe_fork);
}

void st_probe_drop_fork(void)
{
	drop(&probe_fork);
}

static void probe_match(struct tracepoint *tracepoint, void *unused)
{
	if (!strcmp(tracepoint->name, probe_switch.name))
		probe_switch.tracepoint = tracepoint;
	else if (!strcmp(tracepoint->name, probe_fork.name))
		probe_fork.tracepoint = tracepoint;
}

int st_probe_init(void)
{
	/* tracepoints are found by name, so the compiler has to be asked to check the callbacks */
	check_trace_callback_type_sched_switch(probe_sched_switch);
	check_trace_callback_type_sched_process_fork(probe_sched_process_fork);
	for_each_kernel_tracepoint(probe_match, NULL);
	return probe_switch.tracepoint && probe_fork.tracepoint ? 0 : -ENOENT;
}
