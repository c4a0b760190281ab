/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef STACKTAP_KMOD_DEGRADE_H
#define STACKTAP_KMOD_DEGRADE_H

#include <linux/types.h>

struct stacktap_session;

/*
 * A session whose overflow handlers take longer than its budget, or that loses samples to the ceiling, gives
 * up something of its samples, a step at a time: kernel depth first, then the rate. Each step is in the stream, announced and
 * counted, and taken back when there is room again. Handlers know nothing of it: what they measure
 * anyway is looked at from outside, by policy.c's work.
 */

void st_degrade_init(struct stacktap_session *session);
/* As for all below, the caller holds the session's mutex. The session is about to run. */
void st_degrade_start(struct stacktap_session *session);
/* No handler runs any more: what was given up is not for the next run. */
void st_degrade_stop(struct stacktap_session *session);
void st_degrade_look(struct stacktap_session *session);
/* 0: none, which takes all steps back at once. */
void st_degrade_set_budget(struct stacktap_session *session, u32 budget_ns);

#endif /* STACKTAP_KMOD_DEGRADE_H */
