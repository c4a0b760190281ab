/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef STACKTAP_KMOD_SLICE_H
#define STACKTAP_KMOD_SLICE_H

#include <linux/stacktap.h>
#include <linux/types.h>
#include <asm/local64.h>

#include "cost.h"

struct stacktap_cpu;

/* why a sample is to carry registers and a stack slice; 0: it is not */
enum slice_reason {
	SLICE_UNLISTED = 1,	/* its address space has no list */
	SLICE_COMPARED,		/* the session's slice_every */
};

enum {
	SLICE_SPACES = 64,
};

/* Of one session on one CPU; who writes its ring only, but for the counts, which anybody reads. */
struct stacktap_slices {
	/*
	 * Two sums instead of a queue of slices: of those before @fence in the ring and of those
	 * behind it. What is unread is never more than both.
	 */
	u64 fence;
	u32 before;
	u32 behind;
	u32 walks;		/* with a list, since the last slice for comparison */
	local64_t written;
	local64_t refused;
	/* by hash of the address space: who shares an entry shares the limit */
	struct {
		u64 since;
		u32 count;
	} spaces[SLICE_SPACES];
};

/* Is the next walk with a list the one in @every that has a slice for comparison? */
static inline bool slice_is_next(const struct stacktap_slices *slices, u32 every)
{
	return unlikely(every) && slices->walks + 1 >= every;
}

/*
 * Append the sections REGS and STACK_SLICE to @sample, which is @size bytes long so far and lies in
 * the ring's @space. Returns their size, 0 when they are refused. Caller: st_user_walk() just walked
 * the stack of current, from @began on.
 */
u32 st_slice_append(struct stacktap_cpu *cpu, void *sample, u32 size, s64 space,
		    struct cost_moment began, u32 limit_ns);

#endif /* STACKTAP_KMOD_SLICE_H */
