/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef STACKTAP_KMOD_REPORT_H
#define STACKTAP_KMOD_REPORT_H

#include "session.h"

struct sk_buff;

/*
 * Objects as netlink attributes. 0, or -EMSGSIZE with nothing left in the message. Callers hold
 * session->lock.
 */
int report_module(struct sk_buff *skb);
int report_session(struct sk_buff *skb, struct stacktap_session *session);
int report_cpu(struct sk_buff *skb, struct stacktap_session *session, struct stacktap_cpu *cpu);
/* These need no lock. The attributes of the second one's nest are index + 1. */
int report_table(struct sk_buff *skb, const struct stacktap_table_info *info);
int report_array(struct sk_buff *skb, int type, const u64 *values, unsigned int nr);

enum {
	/* a session with a full tgid filter, and eight sources on a CPU, with room to spare */
	REPORT_MAX_BYTES = 57344,
};

#endif /* STACKTAP_KMOD_REPORT_H */
