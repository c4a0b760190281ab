/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef STACKTAP_KMOD_CONTROL_H
#define STACKTAP_KMOD_CONTROL_H

#include "session.h"

/*
 * What can be done to a session. Callers of all but st_control_work() hold session->lock.
 */
int st_control_start(struct stacktap_session *session, struct netlink_ext_ack *extack);
void st_control_stop(struct stacktap_session *session);
int st_control_add_ring(struct stacktap_session *session, unsigned int cpu, u32 data_bytes,
			u32 watermark);
void st_control_flush(struct stacktap_session *session);

/* Replace the sources of a stopped session. */
void st_control_set_sources(struct stacktap_session *session, const struct stacktap_source *sources,
			    unsigned int nr_sources);
/* Takes over @filter, which may be NULL, even when it fails; then nothing has changed. */
int st_control_set_filter(struct stacktap_session *session, struct stacktap_filter *filter,
			  struct netlink_ext_ack *extack);

void st_control_work(struct work_struct *work);

#endif /* STACKTAP_KMOD_CONTROL_H */
