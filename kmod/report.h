/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef STACKTAP_KMOD_REPORT_H
#define STACKTAP_KMOD_REPORT_H

#include <linux/skbuff.h>

#include "session.h"

/*
 * Objects as netlink attributes. 0, or -EMSGSIZE with nothing left in the message. Callers hold
 * session->lock.
 */
int st_report_module(struct sk_buff *skb);
/* @partial: without the sets of ids of its filter. */
int st_report_session(struct sk_buff *skb, struct stacktap_session *session, bool partial);
/* What st_report_session() needs at most when it is not partial. */
size_t st_report_session_bytes(struct stacktap_session *session);
int st_report_cpu(struct sk_buff *skb, struct stacktap_session *session, struct stacktap_cpu *cpu);
/* These need no lock. The attributes of the second one's nest are index + 1. */
int st_report_table(struct sk_buff *skb, const struct stacktap_table_info *info);
int st_report_array(struct sk_buff *skb, int type, const u64 *values, unsigned int nr);

enum {
	/* two small pages: eight sources on a CPU, or a session but for its sets of ids */
	REPORT_MAX_BYTES = SKB_WITH_OVERHEAD(8192) - 64,
};

#endif /* STACKTAP_KMOD_REPORT_H */
