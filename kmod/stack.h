/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef STACKTAP_KMOD_STACK_H
#define STACKTAP_KMOD_STACK_H

#include <linux/ptrace.h>
#include <linux/stacktap.h>
#include <linux/types.h>

/* A walk in progress; @ips may lie in a stash or in a ring. */
struct stacktap_stack {
	u64 *ips;
	unsigned int nr;
	unsigned int max;
	u8 end;			/* enum stacktap_end */
	/* of walks by tables */
	u16 nr_exact;
	u16 exact[STACKTAP_MAX_EXACT_PCS];
	u64 generation;
};

/*
 * The kernel stack of the interrupted context, leaf first. Safe in NMI: takes no lock and reads
 * nothing that could fault without a fixup.
 */
void stack_walk_kernel(struct pt_regs *regs, struct stacktap_stack *stack);

/*
 * Follow user frame records from *@fp until the stack ends or holds @limit entries. Returns
 * STACKTAP_END_NONE in the latter case, with *@fp where to go on. Caller: page faults disabled,
 * current's mm is the one in use.
 */
u8 stack_walk_user_frames(unsigned long *fp, struct stacktap_stack *stack, unsigned int limit);

/* As above for the first frame, which also finds out whether user memory may be read at all. */
u8 stack_walk_user_first(unsigned long *fp, struct stacktap_stack *stack);

/* Is this a task whose frames are not ours to walk (32-bit)? */
bool stack_regs_compat(struct pt_regs *regs);

unsigned long stack_regs_fp(struct pt_regs *regs);

/* Are overflow interrupts of the PMU NMIs on this machine? */
bool stack_pmu_is_nmi(void);

#endif /* STACKTAP_KMOD_STACK_H */
