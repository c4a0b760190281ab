/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef STACKTAP_KMOD_FALLBACK_H
#define STACKTAP_KMOD_FALLBACK_H

struct stacktap_counter;
struct stacktap_session;

/*
 * The way back from cpu-clock. What could not be had may be free later, as a PMU that another user has
 * for itself. The work of stall.c asks again, each time after twice as long, so that what can never be had
 * costs next to nothing.
 */

/* Caller holds the session's mutex, as below. @counter is new and begins to count. */
void st_fallback_begin(struct stacktap_counter *counter);
/* The session runs. */
void st_fallback_look(struct stacktap_session *session);

#endif /* STACKTAP_KMOD_FALLBACK_H */
