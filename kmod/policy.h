/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef STACKTAP_KMOD_POLICY_H
#define STACKTAP_KMOD_POLICY_H

struct stacktap_session;

/*
 * What is decided for a session that runs: a look every two seconds, by a work item, at what
 * handlers and counters have counted. What each part looks at and does is in stall, share, degrade
 * and fallback, which know nothing of each other.
 */

void st_policy_init(struct stacktap_session *session);
/* The session runs. Goes on until it stops. Caller holds its mutex. */
void st_policy_watch(struct stacktap_session *session);
/* No more looks. The session is stopped; its mutex is not held. */
void st_policy_close(struct stacktap_session *session);

#endif /* STACKTAP_KMOD_POLICY_H */
