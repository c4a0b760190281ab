/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef STACKTAP_KMOD_RATE_H
#define STACKTAP_KMOD_RATE_H

#include "session.h"

/* How often counters overflow. Callers hold the session's mutex. */

/* Change rate or period of one source, at any time. */
int st_rate_set(struct stacktap_session *session, unsigned int index,
		const struct stacktap_source *source, struct netlink_ext_ack *extack);
/*
 * Have the counters follow the step of degrade.h that is in force; @is_new: the step is, so that
 * all are announced. Those that perf does not let follow keep their period, which CONFIG tells.
 */
void st_rate_follow(struct stacktap_session *session, bool is_new);

#endif /* STACKTAP_KMOD_RATE_H */
