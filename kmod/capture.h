/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef STACKTAP_KMOD_CAPTURE_H
#define STACKTAP_KMOD_CAPTURE_H

#include <linux/perf_event.h>

struct stacktap_cpu;

/* Of every counter; perf_event::overflow_handler_context is its struct stacktap_counter. */
void capture_overflow(struct perf_event *event, struct perf_sample_data *data,
		      struct pt_regs *regs);

/* Phase 2 for one session on this CPU. IRQs are off. */
void capture_drain_cpu(struct stacktap_cpu *cpu);

#endif /* STACKTAP_KMOD_CAPTURE_H */
