/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef STACKTAP_KMOD_CAPTURE_H
#define STACKTAP_KMOD_CAPTURE_H

#include <linux/perf_event.h>
#include <linux/types.h>

#include "cost.h"

struct stacktap_cpu;

/* Of every counter; perf_event::overflow_handler_context is its struct stacktap_counter. */
void st_capture_overflow(struct perf_event *event, struct perf_sample_data *data,
			 struct pt_regs *regs);

/*
 * How long phase 2 may keep IRQs off at a time, over all sessions: SESSION_WALK_LIMIT_NS, or this under
 * the lock of a run queue. The stack that is being walked by then is cut with STACKTAP_END_TIME, what
 * waits in the stash goes on waiting.
 */
#define CAPTURE_SWITCH_LIMIT_NS (SESSION_WALK_LIMIT_NS < 20000 ? SESSION_WALK_LIMIT_NS : 20000)

/*
 * Phase 2 for one session on this CPU, in a section with IRQs off that began at @began and may take
 * @limit_ns. Returns whether something is left in the stash for which there was no time.
 */
bool st_capture_drain_cpu(struct stacktap_cpu *cpu, struct cost_moment began, u32 limit_ns);

#endif /* STACKTAP_KMOD_CAPTURE_H */
