/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef STACKTAP_KMOD_FALLBACK_H
#define STACKTAP_KMOD_FALLBACK_H

struct stacktap_session;

/*
 * The way back from cpu-clock. What could not be had may be free later, as a PMU that another user has
 * for itself. policy.c's work asks again, each time after twice as long, so that what can never be had
 * costs next to nothing.
 */

/* The session runs, and the caller holds its mutex. */
void st_fallback_look(struct stacktap_session *session);

#endif /* STACKTAP_KMOD_FALLBACK_H */
