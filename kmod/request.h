/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef STACKTAP_KMOD_REQUEST_H
#define STACKTAP_KMOD_REQUEST_H

#include <linux/stacktap.h>
#include <net/netlink.h>

struct stacktap_session;

extern const struct nla_policy request_policy[STACKTAP_A_MAX + 1];

/* SET_SESSION: nothing changes unless all of it is valid. Caller holds session->lock. */
int request_set(struct stacktap_session *session, struct nlattr **attrs,
		struct netlink_ext_ack *extack);

#endif /* STACKTAP_KMOD_REQUEST_H */
