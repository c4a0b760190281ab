/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Positions of a ring and how they pass between its two sides; both compile this file, and so do
 * the tests that run them against each other. tests/litmus says it in the memory model's terms.
 *
 * Positions are free-running u64 byte counts, each written by one side alone. A side hands bytes
 * to the other by a store-release of its own position, and takes them by a load-acquire of the
 * other's, once for each decision: what was loaded is judged and then used, never loaded again.
 */
#ifndef STACKTAP_RING_H
#define STACKTAP_RING_H

#ifdef __KERNEL__
#include <asm/barrier.h>
#endif
#include <linux/errno.h>
#include <linux/stacktap.h>
#include <linux/types.h>

#ifdef __KERNEL__
/* pairs with the other side's release */
#define stacktap_ring_load_acquire(p)		smp_load_acquire(p)
/* pairs with the other side's acquire */
#define stacktap_ring_store_release(p, value)	smp_store_release(p, value)
#else
/* C11's atomic_load_explicit() and atomic_store_explicit(), on a type that the kernel shares */
#define stacktap_ring_load_acquire(p)		__atomic_load_n(p, __ATOMIC_ACQUIRE)
#define stacktap_ring_store_release(p, value)	__atomic_store_n(p, value, __ATOMIC_RELEASE)
#endif

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

/* The writer: free bytes, or -EINVAL when an impossible position stands on the consumer page. */
static inline __s64 stacktap_ring_room(const struct stacktap_consumer_page *consumer, __u64 head,
				       __u64 data_bytes)
{
	/* with the reader's release: its reads of the bytes that become free are done */
	__u64 tail = stacktap_ring_load_acquire(&consumer->tail);

	if (!stacktap_ring_tail_valid(head, tail, data_bytes))
		return -EINVAL;
	return (__s64)stacktap_ring_space(head, tail, data_bytes);
}

/* The writer: everything before @head is written, the reader may have it. */
static inline void stacktap_ring_publish(struct stacktap_producer_page *producer, __u64 head)
{
	stacktap_ring_store_release(&producer->head, head);
}

/* The reader: how far the writer has come; the bytes before are there to be read. */
static inline __u64 stacktap_ring_published(const struct stacktap_producer_page *producer)
{
	return stacktap_ring_load_acquire(&producer->head);
}

/* The reader: everything before @tail is read, the writer may have it back. */
static inline void stacktap_ring_release(struct stacktap_consumer_page *consumer, __u64 tail)
{
	stacktap_ring_store_release(&consumer->tail, tail);
}

#endif /* STACKTAP_RING_H */
