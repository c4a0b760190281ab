/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The session of a daemon that was killed, which somebody kept: what it has captured until it is stopped is delivered
 * before our own session's. The owner of both descriptors is this from kept_open() on, also where that fails.
 */
#ifndef STACKTAP_CAPTURE_KEPT_H
#define STACKTAP_CAPTURE_KEPT_H

#include "capture/ops.h"
#include "capture/stats.h"

struct kept;

/* What a session kept is to be known by, and who wants to have it. */
struct kept_fds {
	int session, ledger;		/* -1: there is none */
	uint64_t purpose;		/* see struct ledger */
};

/*
 * -errno and why not: it is not one of this module, program, or purpose. It still samples.
 */
int kept_open(struct kept_fds *fds, struct kept **ret_kept, char *why, size_t size);
void kept_close(struct kept *kept);
/* The number of the session behind @fd; 0: it is none. */
uint64_t kept_session_of(int fd);
/*
 * Deliver all of it, once it is stopped, by ops->kept_sample() and ops->record(), then ops->kept_end(). @fd: our own
 * session's, to ask what runs.
 */
int kept_drain(struct kept *kept, int fd, const struct capture_ops *ops, void *ctx, struct capture_stats *stats);

#endif /* STACKTAP_CAPTURE_KEPT_H */
