/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef STACKTAP_KMOD_REQUEST_H
#define STACKTAP_KMOD_REQUEST_H

#include <linux/stacktap.h>
#include <net/netlink.h>

struct stacktap_filter;
struct stacktap_session;

extern const struct nla_policy st_request_policy[STACKTAP_A_MAX + 1];
extern const struct nla_policy st_request_filter_policy[STACKTAP_FILTER_ATTR_MAX + 1];

/* SET_SESSION: all of it or nothing. Caller holds session->lock. */
int st_request_set(struct stacktap_session *session, struct nlattr **attrs,
		   struct netlink_ext_ack *extack);

/* The FILTER of a SET_SESSION; *ret_filter is NULL for an empty one. Descriptors are the caller's. */
int st_request_filter(struct stacktap_session *session, struct nlattr *attr,
		      struct netlink_ext_ack *extack, struct stacktap_filter **ret_filter);

#endif /* STACKTAP_KMOD_REQUEST_H */
