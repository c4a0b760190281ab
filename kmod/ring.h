/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef STACKTAP_KMOD_RING_H
#define STACKTAP_KMOD_RING_H

#include <linux/mm.h>
#include <linux/stacktap.h>
#include <linux/types.h>
#include <stacktap/ring.h>

/*
 * The records of one CPU. There is one producer: whoever holds this CPU with IRQs off, or the
 * holder of the session's mutex while the CPU is offline. An NMI is one only if it hit user mode, where
 * no other can be half done.
 */
struct stacktap_ring {
	u64 head;		/* the truth; the producer page only gets copies */
	u64 data_bytes;
	u32 watermark;
	struct stacktap_consumer_page *consumer;
	struct stacktap_producer_page *producer;
	u8 *data;		/* 2 * data_bytes, the second half maps the pages of the first */
	void *area;
	struct page **pages;
	unsigned int nr_pages;	/* consumer, producer, data */
};

int st_ring_create(unsigned int cpu, u32 data_bytes, u32 watermark,
		   struct stacktap_ring **ret_ring);
void st_ring_destroy(struct stacktap_ring *ring);
int st_ring_mmap(struct stacktap_ring *ring, struct vm_area_struct *vma, bool producer);

/* Free bytes, or -EINVAL when user space put an impossible position on the consumer page. */
static inline s64 ring_space(const struct stacktap_ring *ring)
{
	return stacktap_ring_room(ring->consumer, ring->head, ring->data_bytes);
}

u64 st_ring_used(const struct stacktap_ring *ring);

static inline void *ring_head(struct stacktap_ring *ring)
{
	return ring->data + stacktap_ring_offset(ring->head, ring->data_bytes);
}

/* Publish @bytes that were written at ring_head(). */
static inline void ring_commit(struct stacktap_ring *ring, u32 bytes)
{
	/* also read, without the lock of this CPU, by poll() and netlink */
	WRITE_ONCE(ring->head, ring->head + bytes);
	stacktap_ring_publish(ring->producer, ring->head);
}

#endif /* STACKTAP_KMOD_RING_H */
