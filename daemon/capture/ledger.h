/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What whoever takes a session over has to know of it and cannot ask the module for: where its rings are, how far
 * they were read, what their samples count. In memory of its own (memfd), which outlives who writes it as long as somebody
 * keeps its descriptor.
 *
 * One thread writes it, the one that drains; each field stands by itself, so a kill between two of them
 * does no harm.
 */
#ifndef STACKTAP_CAPTURE_LEDGER_H
#define STACKTAP_CAPTURE_LEDGER_H

#include <linux/stacktap.h>

#include "base/macro.h"

/* What records whose counts are cumulative said last, by source and kind. */
struct ledger_counts {
	struct stacktap_throttle of[STACKTAP_MAX_SOURCES][3];
};

struct ledger_cpu {
	uint64_t consumer_offset, producer_offset;	/* for mmap() */
	uint64_t taken;			/* position up to which records are being, or have been, delivered */
	uint32_t has_ring, reserved;
	struct stacktap_config configs[STACKTAP_MAX_SOURCES];	/* header.size 0: none yet */
	struct ledger_counts counts;
};

struct ledger {
	uint64_t magic, bytes;
	uint64_t session_id;
	uint64_t purpose;		/* whose is equal may take it over; 0: nobody */
	uint64_t drained;		/* CLOCK_MONOTONIC ns of the last round */
	uint32_t ring_bytes, page_bytes;
	uint32_t limit;
	uint32_t heirs;			/* that were started with it */
	struct ledger_cpu cpus[];	/* [limit] */
};

/* @limit: CPUs are below it. *ret_fd is the caller's. */
int ledger_new(uint32_t limit, int *ret_fd, struct ledger **ret_ledger);
/*
 * Of another process: -EBADMSG where it is none, or one of another version. Somebody may write to it still, so that
 * the limit that was checked is *ret_limit, for the functions below, and not the one that stands there.
 */
int ledger_open(int fd, struct ledger **ret_ledger, uint32_t *ret_limit);
void ledger_free(struct ledger *ledger, uint32_t limit);

/* A record of the ring of @cpu, which is delivered next: what a kill between the two loses is not counted twice. */
void ledger_note(struct ledger *ledger, uint32_t limit, uint32_t cpu, const struct stacktap_record *record);
/* Is @record one that tells a cumulative count? Then its place in @counts, else NULL. */
struct stacktap_throttle *ledger_count(struct ledger_counts *counts, const struct stacktap_record *record);

#endif /* STACKTAP_CAPTURE_LEDGER_H */
