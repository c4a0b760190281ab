/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef STACKTAP_KMOD_DEFER_H
#define STACKTAP_KMOD_DEFER_H

#include <linux/percpu.h>
#include <linux/types.h>

struct stacktap_session;

/* Have phase 2 of @session run on this CPU as soon as the handler that calls is over. */
void st_defer_drain(struct stacktap_session *session);

/* Let @session's readers and its events work run; any context. */
void st_defer_wake(struct stacktap_session *session);

void st_defer_attach(struct stacktap_session *session);
/* Afterwards nothing per-CPU refers to @session any more. May sleep. */
void st_defer_detach(struct stacktap_session *session);

#ifdef STACKTAP_TEST
/* The session in @slot, or NULL; where st_defer_detach() waits for the caller: in NMI, with IRQs off. */
struct stacktap_session *st_defer_session(unsigned int slot);
#endif

void st_defer_init(void);
void st_defer_exit(void);

/* bit n: the session in slot n has a stash on this CPU that waits for phase 2 */
DECLARE_PER_CPU(u64, st_defer_draining);

/*
 * Phase 2 of all sessions that wait for it on this CPU. IRQs are off, for about @limit_ns in all. What is
 * left then is done as soon as IRQs were on again.
 */
void st_defer_run(u32 limit_ns);

static inline void defer_run_pending(u32 limit_ns)
{
	if (unlikely(this_cpu_read(st_defer_draining)))
		st_defer_run(limit_ns);
}

#endif /* STACKTAP_KMOD_DEFER_H */
