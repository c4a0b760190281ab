/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef STACKTAP_KMOD_WALK_H
#define STACKTAP_KMOD_WALK_H

#include <asm/processor.h>

#include <stacktap/unwind_memo.h>

#include "cost.h"
#include "mappings.h"
#include "stack.h"

/* The first address that is no user's, for 64-bit tasks. */
#ifdef CONFIG_X86_64
#define WALK_ADDRESS_LIMIT TASK_SIZE_MAX
#else
#define WALK_ADDRESS_LIMIT TASK_SIZE_64
#endif

struct walk_counts {
	unsigned int frames;
	unsigned int fp_frames;
	unsigned int searches;
	bool is_unlisted;	/* it ended in code that the list does not know */
};

/*
 * Walk the user stack of current from @regs by the tables of @list into @stack, which is empty yet
 * and has room for at least one frame. Sets @stack->end. Caller: IRQs off, page faults disabled,
 * current's mm is the one in use and has @list, nobody else uses @memo meanwhile.
 */
void st_walk_tables(const struct stacktap_list *list, struct unwind_memo *memo,
		    struct pt_regs *regs, struct stacktap_stack *stack,
		    struct cost_moment began, u32 limit_ns, struct walk_counts *ret_counts);

#endif /* STACKTAP_KMOD_WALK_H */
