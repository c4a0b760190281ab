/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attributes of the generic netlink family to and from the structs of client/message.h. What the
 * kernel sends is checked like anybody's: sizes by policy, indices against the arrays.
 */
#ifndef STACKTAP_CLIENT_ATTRIBUTE_H
#define STACKTAP_CLIENT_ATTRIBUTE_H

#include <netlink/netlink.h>

#include "client/message.h"

int attribute_parse_module(struct nlmsghdr *message, struct control_module *ret_module);
/* The filter of *ret_session is allocated: control_filter_done(). */
int attribute_parse_session(struct nlmsghdr *message, struct control_session *ret_session);
int attribute_parse_cpu(struct nlmsghdr *message, struct control_cpu *ret_cpu);
int attribute_parse_table(struct nlmsghdr *message, struct control_table *ret_table);
int attribute_parse_event(struct nlmsghdr *message, struct control_event *ret_event);

/* Bytes that attribute_put_change() may need beyond the header. */
size_t attribute_change_size(const struct control_change *change);
int attribute_put_change(struct nl_msg *message, const struct control_change *change);
int attribute_put_rate(struct nl_msg *message, uint32_t source_id, uint32_t rate_hz,
		       uint64_t period);

#endif /* STACKTAP_CLIENT_ATTRIBUTE_H */
