/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef STACKTAP_KMOD_COUNTING_H
#define STACKTAP_KMOD_COUNTING_H

#include "session.h"

/*
 * The counters of a session: on which CPUs there are some, and what their rings say of that. Callers hold the
 * session's mutex.
 */

bool st_counting_wants(struct stacktap_session *session, unsigned int cpu);
/* Make counters exist exactly where they should. The first error is returned, the rest goes on. */
int st_counting_reconcile(struct stacktap_session *session);
/* The same for a session that goes on if it fails: then the CPUs that lack counters are told. */
int st_counting_follow(struct stacktap_session *session);
/* Tell why counters or stashes could not be had, and return what the user gets. */
int st_counting_refuse(int err, struct netlink_ext_ack *extack);

/* All of a CPU's counters that can fail; they do not count before st_counting_begin(). */
int st_counting_prepare(struct stacktap_session *session, struct stacktap_cpu *cpu);
void st_counting_begin(struct stacktap_session *session, struct stacktap_cpu *cpu);
/* Have what phase 2 needs on @cpu, if any of its counters goes through it, or @more will. */
int st_counting_prepare_phases(struct stacktap_session *session, struct stacktap_cpu *cpu,
			       const struct stacktap_counter *more);
void st_counting_disarm(struct stacktap_cpu *cpu);

/* Phase 2 of what waits for it on @cpu, with IRQs on now and then. */
void st_counting_drain(struct stacktap_cpu *cpu);
/* CONFIG of @counter, or of all of @cpu's when that is NULL, behind what they sampled before. */
void st_counting_announce(struct stacktap_cpu *cpu, struct stacktap_counter *counter);
/* The last records of a CPU that is disarmed, and again while they find no room. */
void st_counting_finish(struct stacktap_cpu *cpu);
void st_counting_flush(struct stacktap_cpu *cpu);

#endif /* STACKTAP_KMOD_COUNTING_H */
