/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef STACKTAP_KMOD_CAPTURE_H
#define STACKTAP_KMOD_CAPTURE_H

#include <linux/percpu.h>
#include <linux/perf_event.h>

struct stacktap_cpu;
struct stacktap_session;

/* Of every counter; perf_event::overflow_handler_context is its struct stacktap_counter. */
void capture_overflow(struct perf_event *event, struct perf_sample_data *data,
		      struct pt_regs *regs);

/* Phase 2 for one session on this CPU. IRQs are off. */
void capture_drain_cpu(struct stacktap_cpu *cpu);

/* Let @session's readers and its events work run; any context. */
void capture_wake(struct stacktap_session *session);

void capture_attach(struct stacktap_session *session);
/* Afterwards nothing per-CPU refers to @session any more. May sleep. */
void capture_detach(struct stacktap_session *session);

#ifdef STACKTAP_TEST
/* The session in @slot, or NULL; where capture_detach() waits for the caller: in NMI, with IRQs off. */
struct stacktap_session *capture_session(unsigned int slot);
#endif

void capture_init(void);
void capture_exit(void);

/* bit n: the session in slot n has a stash on this CPU that waits for phase 2 */
DECLARE_PER_CPU(u64, capture_pending);

void capture_drain(void);

static inline void capture_drain_pending(void)
{
	if (unlikely(this_cpu_read(capture_pending)))
		capture_drain();
}

#endif /* STACKTAP_KMOD_CAPTURE_H */
