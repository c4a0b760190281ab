/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Client of the generic netlink family "stacktap". Functions return 0 or -errno; after a refusal
 * control_error() has the kernel's own sentence (extended acknowledgement).
 */
#ifndef STACKTAP_CLIENT_NETLINK_H
#define STACKTAP_CLIENT_NETLINK_H

#include "client/message.h"

struct control;

/* -ENODEV: no such family, the module is not loaded. */
int control_open(struct control **ret_control);
void control_close(struct control *control);
const char *control_error(const struct control *control);

int control_get_module(struct control *control, struct control_module *ret_module);
int control_get_session(struct control *control, uint64_t id, struct control_session *ret_session);
int control_each_session(struct control *control,
			 int (*each)(void *ctx, const struct control_session *session), void *ctx);
int control_each_cpu(struct control *control, uint64_t session_id,
		     int (*each)(void *ctx, const struct control_cpu *cpu), void *ctx);
/* The tables of one session, or with 0 all. */
int control_each_table(struct control *control, uint64_t session_id,
		       int (*each)(void *ctx, const struct control_table *table), void *ctx);
int control_set_session(struct control *control, uint64_t id, const struct control_change *change);
/* Live change of one source's rate (rate_hz) or period (the other is 0). */
int control_set_rate(struct control *control, uint64_t id, uint32_t source_id, uint32_t rate_hz,
		     uint64_t period);
int control_start(struct control *control, uint64_t id);
int control_stop(struct control *control, uint64_t id);

/* Join the multicast group; then control_next_event() blocks up to @timeout_ms: 1, 0 or -errno. */
int control_subscribe(struct control *control);
int control_next_event(struct control *control, int timeout_ms, struct control_event *ret_event);

#endif /* STACKTAP_CLIENT_NETLINK_H */
