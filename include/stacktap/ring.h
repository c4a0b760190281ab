/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Arithmetic of ring positions, the same on both sides of the ring.
 *
 * Positions are free-running u64 byte counts. Nothing here reads shared memory: the caller loads
 * and publishes positions with the barriers that its side needs and passes plain values.
 */
#ifndef STACKTAP_RING_H
#define STACKTAP_RING_H

#include <linux/types.h>

/* Is @tail a position a sane reader can have reached? */
static inline int stacktap_ring_tail_valid(__u64 head, __u64 tail, __u64 data_bytes)
{
	/* one unsigned comparison also refuses tail > head, which wraps to a huge difference */
	return head - tail <= data_bytes && !(tail % 8);
}

/* Free bytes; 0 for an invalid tail, so that a writer that forgot to ask still stays in bounds. */
static inline __u64 stacktap_ring_space(__u64 head, __u64 tail, __u64 data_bytes)
{
	return stacktap_ring_tail_valid(head, tail, data_bytes) ? data_bytes - (head - tail) : 0;
}

/* Where a position lies in the data; @data_bytes is a power of two. */
static inline __u64 stacktap_ring_offset(__u64 position, __u64 data_bytes)
{
	return position & (data_bytes - 1);
}

static inline __u32 stacktap_ring_align(__u32 bytes)
{
	return (bytes + 7) & ~(__u32)7;
}

#endif /* STACKTAP_RING_H */
