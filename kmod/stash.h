/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef STACKTAP_KMOD_STASH_H
#define STACKTAP_KMOD_STASH_H

#include <linux/sched.h>
#include <linux/stacktap.h>

/* By what phase 2 knows again whose stack it is to walk, beside the ids in the sample. */
struct stacktap_hit {
	u64 task_start;		/* start time of the thread: with the tid it names a task for good */
	const struct mm_struct *mm; /* only ever compared */
	unsigned long pc, sp, fp; /* of user space, if the overflow hit user mode */
};

struct stacktap_counter;

/* What the overflow handler knows: everything of a sample but the user stack. */
struct stacktap_slot {
	struct stacktap_hit hit;
	struct stacktap_counter *counter;
	struct stacktap_sample sample;
	unsigned int kernel_nr;
	u64 kernel_ips[STACKTAP_MAX_KERNEL_FRAMES];
};

/*
 * Hits that wait for phase 2, of one CPU. Producer and consumer are on the same CPU and the
 * producer may only interrupt the consumer, never the reverse, so compiler barriers are enough.
 */
struct stacktap_stash {
	unsigned int nr_slots;
	unsigned int head;	/* free-running; moved by the overflow handler */
	unsigned int tail;	/* free-running; moved by phase 2 */
	struct stacktap_slot slots[];
};

/* -EDQUOT when it would exceed what all sessions may take. */
int st_stash_create(unsigned int cpu, unsigned int nr_slots, struct stacktap_stash **ret_stash);
void st_stash_destroy(struct stacktap_stash *stash);

static inline size_t stash_bytes(const struct stacktap_stash *stash)
{
	return stash ? struct_size(stash, slots, stash->nr_slots) : 0;
}

static inline unsigned int stash_count(const struct stacktap_stash *stash)
{
	return READ_ONCE(stash->head) - READ_ONCE(stash->tail);
}

/* The slot to fill, NULL when all are taken. */
static inline struct stacktap_slot *stash_reserve(struct stacktap_stash *stash)
{
	if (stash_count(stash) >= stash->nr_slots)
		return NULL;
	return &stash->slots[stash->head & (stash->nr_slots - 1)];
}

static inline void stash_push(struct stacktap_stash *stash)
{
	barrier();
	WRITE_ONCE(stash->head, stash->head + 1);
}

static inline struct stacktap_slot *stash_first(struct stacktap_stash *stash)
{
	return &stash->slots[stash->tail & (stash->nr_slots - 1)];
}

static inline void stash_pop(struct stacktap_stash *stash)
{
	barrier();
	WRITE_ONCE(stash->tail, stash->tail + 1);
}

#endif /* STACKTAP_KMOD_STASH_H */
