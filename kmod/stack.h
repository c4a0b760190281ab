/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef STACKTAP_KMOD_STACK_H
#define STACKTAP_KMOD_STACK_H

#include <linux/build_bug.h>
#include <linux/limits.h>
#include <linux/ptrace.h>
#include <linux/stacktap.h>
#include <linux/types.h>

#include "cost.h"

enum {
	/* of a walk by frame pointers between two looks at the clock: 1.5 us of cache misses */
	STACK_CLOCK_FRAMES = 16,
	/* in @end of a walk that is left to phase 2: no end, and in no record */
	STACK_PUT_OFF = STACKTAP_END_REASONS,
};

static_assert(STACK_PUT_OFF <= U8_MAX);

/* A walk in progress; @ips may lie in a stash or in a ring. */
struct stacktap_stack {
	u64 *ips;
	unsigned int nr;
	unsigned int max;
	unsigned long fp;	/* of walks by frame pointers: the next frame */
	u8 end;			/* enum stacktap_end, or STACK_PUT_OFF */
	/* what a sample has behind its stack, which few have; all of it at once in @extras */
	union {
		struct {
			u8 nr_exact;	/* of walks by tables */
			bool is_missing; /* @missing is */
			u16 slice;	/* enum slice_reason */
		};
		u32 extras;
	};
	u64 generation;		/* of the list, of walks by tables */
	u64 missing;		/* an address that was not readable, of walks by tables */
	u16 exact[STACKTAP_MAX_EXACT_PCS];
};

/*
 * The kernel stack of the interrupted context, leaf first. Safe in NMI: takes no lock and reads
 * nothing that could fault without a fixup.
 */
void st_stack_walk_kernel(struct pt_regs *regs, struct stacktap_stack *stack);

/*
 * May user memory be read, and be followed from @stack->fp on? Returns STACKTAP_END_NONE if so.
 * Caller: page faults disabled, current's mm is the one in use.
 */
u8 st_stack_admit_user(struct stacktap_stack *stack);

/*
 * Follow user frame records, which was admitted, until the stack ends, holds @limit entries, at least
 * one more, or @limit_ns may have passed since @began, of which the caller makes sure. Returns
 * STACKTAP_END_NONE in the latter cases.
 */
u8 st_stack_walk_user_frames(struct stacktap_stack *stack, unsigned int limit,
			     struct cost_moment began, u32 limit_ns);

#ifdef CONFIG_X86_64
static inline unsigned long stack_regs_fp(const struct pt_regs *regs)
{
	return regs->bp;
}

/* Is this a task whose frames are not ours to walk (32-bit)? */
static inline bool stack_regs_compat(struct pt_regs *regs)
{
	return !user_64bit_mode(regs);
}
#else
static inline unsigned long stack_regs_fp(const struct pt_regs *regs)
{
	return regs->regs[29];
}

static inline bool stack_regs_compat(struct pt_regs *regs)
{
	return compat_user_mode(regs);
}
#endif

/* Are overflow interrupts of the PMU NMIs on this machine? */
bool st_stack_pmu_is_nmi(void);

#endif /* STACKTAP_KMOD_STACK_H */
