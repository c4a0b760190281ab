/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Thread A's source of events: the rings of one session and the side band, merged in order.
 *
 * capture_drain() does one round: it snapshots the heads of all rings (acquire), drains the side
 * band of all CPUs and delivers it merged by time, then delivers the ring records up to the
 * snapshot.
 * So every mapping event that happened before a sample is delivered before it. A mapping event
 * newer than a sample may be delivered first; struct mapping::since tells (ties within 10 us go to
 * the newer mapping).
 */
#ifndef STACKTAP_CAPTURE_CAPTURE_H
#define STACKTAP_CAPTURE_CAPTURE_H

#include "capture/ops.h"
#include "capture/stats.h"

struct capture;
struct kept;

struct capture_options {
	uint32_t ring_bytes;		/* data of one ring, 0: 256 KiB; a page at least */
	uint32_t sideband_bytes;	/* data of one CPU's side band, 0: 32 KiB; the same */
	bool without_sideband;		/* side band refused by perf_event_paranoid: /proc only */
	bool is_kept;			/* somebody may take the session over when we are killed */
	uint64_t purpose;		/* who has the same may, see capture/ledger.h */
};

/* -errno values of capture_open() that deserve a message of their own, see capture_strerror() */
enum {
	CAPTURE_ENODEV = ENODEV,	/* no /dev/stacktap: the module is not loaded */
	CAPTURE_EPERM = EPERM,
	CAPTURE_EPROTO = EPROTO,	/* the module speaks another ABI major */
};

/* Open a session with one ring and one side-band event per online CPU. */
int capture_open(const struct capture_options *options, const struct capture_ops *ops, void *ctx,
		 struct capture **ret_capture);
void capture_close(struct capture *capture);

/* Takes it, stopped: the next round delivers what it has captured. Before the first round that another thread does. */
void capture_take_over(struct capture *capture, struct kept *kept);
/* The descriptors of the session and its ledger, both lent; -1: nobody is to keep it. */
int capture_ledger(const struct capture *capture, int *ret_session);
void capture_set_purpose(struct capture *capture, uint64_t purpose);

uint64_t capture_session_id(const struct capture *capture);
const struct stacktap_info *capture_info(const struct capture *capture);

/* Wait until a ring passes its watermark, a CPU appears, capture_wake() or @timeout_ms. */
int capture_wait(struct capture *capture, int timeout_ms);
void capture_wake(struct capture *capture);	/* from any thread or signal handler */

/* One round, see above. *ret_time: everything before this time has been delivered. */
int capture_drain(struct capture *capture, uint64_t *ret_time);

/* An ioctl on the session, from any thread; -errno on failure. */
int capture_request(const struct capture *capture, unsigned long request, void *argument);

/* After STOP: drain, STACKTAP_IOC_FLUSH and drain until the rings are empty. */
int capture_finish(struct capture *capture);

void capture_stats(const struct capture *capture, struct capture_stats *ret_stats);

#endif /* STACKTAP_CAPTURE_CAPTURE_H */
