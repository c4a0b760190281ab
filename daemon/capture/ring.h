/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reader's side of one CPU's ring.
 *
 *	kernel: write records, store-release head     pairs with     load-acquire head, read records
 *	kernel: load-acquire tail, write over         pairs with     read, store-release tail
 *
 * The position is kept here and only copied out to the consumer page: what anybody scribbles there
 * never comes back to us.
 */
#ifndef STACKTAP_CAPTURE_RING_H
#define STACKTAP_CAPTURE_RING_H

#include "capture/ops.h"
#include "capture/stats.h"

struct ring {
	uint32_t cpu;
	uint64_t data_bytes;
	struct stacktap_consumer_page *consumer;
	const struct stacktap_producer_page *producer;
	const uint8_t *data;		/* mapped twice in a row */
	uint64_t position;		/* our tail */
	uint64_t limit;			/* head as of the last snapshot */
	size_t consumer_bytes, producer_bytes; /* of the mappings, 0: memory of a test */
};

/* Where a ring is to be mapped from. */
struct ring_place {
	uint32_t cpu, data_bytes, page_bytes;
	uint64_t consumer_offset, producer_offset;
};

/* Create the ring of @place->cpu in the session behind @fd; sets the offsets. */
int ring_create(int fd, struct ring_place *place);
/* Map it. Charged to POOL_RINGS. */
int ring_map(int fd, const struct ring_place *place, struct ring **ret_ring);
void ring_free(struct ring *ring);

void ring_snapshot(struct ring *ring);
bool ring_is_empty(const struct ring *ring);
/* Deliver the records up to the snapshot and free their bytes; skips a batch at a malformed one. */
void ring_consume(struct ring *ring, const struct capture_ops *ops, void *ctx,
		  struct capture_stats *stats);

#endif /* STACKTAP_CAPTURE_RING_H */
