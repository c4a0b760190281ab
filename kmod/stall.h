/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef STACKTAP_KMOD_STALL_H
#define STACKTAP_KMOD_STALL_H

struct stacktap_session;

/*
 * Counters that go on counting while their overflow interrupts no longer come. Emulated and virtual
 * PMUs lose one at times, after which a counter has its whole width to go before the next. A CPU
 * that such a counter leaves out is found in a few seconds, its counter set anew and counted.
 */

void st_stall_init(struct stacktap_session *session);
/*
 * The session runs and a CPU got its counters. Goes on until it stops.
 * Caller holds the session's mutex.
 */
void st_stall_watch(struct stacktap_session *session);
/* No more looks. The session is stopped; its mutex is not held. */
void st_stall_close(struct stacktap_session *session);

#endif /* STACKTAP_KMOD_STALL_H */
