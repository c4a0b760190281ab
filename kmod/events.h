/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef STACKTAP_KMOD_EVENTS_H
#define STACKTAP_KMOD_EVENTS_H

#include "session.h"

/*
 * Multicast of what happened, at most one message per kind, session and 100 ms.
 */

/* True if @kind was not noted yet, so that somebody has to kick. Any context, NMI too. */
static inline bool events_note(struct stacktap_session *session, enum stacktap_event kind)
{
	return !test_bit(kind, &session->events) && !test_and_set_bit(kind, &session->events);
}

/* Send what is noted, now or when the 100 ms are over. Not in NMI. */
void st_events_kick(struct stacktap_session *session);

void st_events_raise(struct stacktap_session *session, enum stacktap_event kind, unsigned int cpu);
/* That @cpu has no counters, and why. */
void st_events_raise_refused(const struct stacktap_cpu *cpu);
/* @error is an errno, positive, or 0. */
void st_events_raise_counter(const struct stacktap_counter *counter, enum stacktap_event kind,
			     unsigned int error);

void st_events_init(struct stacktap_session *session);
/* No more messages but the last one. May sleep. */
void st_events_close(struct stacktap_session *session);

#endif /* STACKTAP_KMOD_EVENTS_H */
