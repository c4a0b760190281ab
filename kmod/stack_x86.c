// SPDX-License-Identifier: GPL-2.0-only
#include <linux/bitops.h>
#include <linux/sched.h>
#include <linux/stacktap.h>
#include <linux/uaccess.h>
#include <asm/unwind.h>

#include "hook.h"
#include "stack.h"

struct frame_record {
	unsigned long fp;
	unsigned long ret;
};

/* exclusive upper bound of a frame record's address */
#define FRAME_LIMIT (TASK_SIZE_MAX - sizeof(struct frame_record) + 1)

void st_stack_walk_kernel(struct pt_regs *regs, struct stacktap_stack *stack)
{
	struct unwind_state state;
	struct pt_regs *entry;
	unsigned long addr;

	if (regs->flags & X86_EFLAGS_FIXED) {
		stack->ips[stack->nr++] = regs->ip;
		unwind_start(&state, current, regs, NULL);
	} else {
		/* software events make up registers; only their stack pointer can be trusted */
		unwind_start(&state, current, NULL, (void *)regs->sp);
	}

	for (; !unwind_done(&state); unwind_next_frame(&state)) {
		addr = unwind_get_return_address(&state);
		if (!addr) {
			/* the registers saved at the entry from user mode are the way out */
			entry = unwind_get_entry_regs(&state, NULL);
			stack->end = entry && user_mode(entry) ? STACKTAP_END_COMPLETE :
								 STACKTAP_END_BAD_FRAME;
			return;
		}
		if (unlikely(hook_is_kernel(addr))) {
			stack->end = STACKTAP_END_HOOK;
			return;
		}
		if (stack->nr >= stack->max) {
			stack->end = STACKTAP_END_DEPTH;
			return;
		}
		stack->ips[stack->nr++] = addr;
	}
	if (unwind_error(&state))
		stack->end = STACKTAP_END_NO_RULE;
	else if (stack->nr && unlikely(hook_is_graph(stack->ips[stack->nr - 1])))
		/* until 6.4 it is said to be the outermost code of a stack */
		stack->end = STACKTAP_END_HOOK;
	else
		stack->end = STACKTAP_END_COMPLETE;
}

u8 st_stack_admit_user(struct stacktap_stack *stack)
{
	unsigned long fp = stack->fp;
	u8 probe;

	if (!fp || fp % sizeof(long) || fp >= FRAME_LIMIT)
		return STACKTAP_END_BAD_FRAME;
	/* refuses when CR3 is not current's mm, which no check of ours can see */
	return copy_from_user_nmi(&probe, (void __user *)fp, sizeof(probe)) ?
		STACKTAP_END_UNREADABLE : STACKTAP_END_NONE;
}

/*
 * Fifteen instructions a frame, most of what a sample costs. Addresses are kept rotated by three:
 * counted in words, and a misaligned one is beyond every limit.
 */
u8 st_stack_walk_user_frames(struct stacktap_stack *stack, unsigned int limit,
			     struct cost_moment began, u32 limit_ns)
{
	/* in registers; the mask covers the user's half, to the end of the page behind it */
	unsigned long mask = (TASK_SIZE_MAX + PAGE_SIZE - 1) >> 3, text = TASK_SIZE_MAX - 1;
	unsigned long top = FRAME_LIMIT >> 3, next = ror64(stack->fp, 3), at, ret;
	unsigned int look = stack->nr;
	unsigned long __user *p;
	u8 end = STACKTAP_END_NONE;
	u64 *last;
	long i;

	OPTIMIZER_HIDE_VAR(mask);
	OPTIMIZER_HIDE_VAR(text);
	OPTIMIZER_HIDE_VAR(top);
	if (!user_access_begin((void __user *)stack->fp, sizeof(struct frame_record)))
		return STACKTAP_END_BAD_FRAME;
	/* no calls from here to the end of the section */
	do {
		i = -(long)min_t(unsigned int, limit - look, STACK_CLOCK_FRAMES);
		look -= i;
		last = stack->ips + look;
		do {
			/* @next is below @top; the mask makes it the user's under speculation as well */
			at = next & mask;
			OPTIMIZER_HIDE_VAR(at);
			p = (unsigned long __user *)(at << 3);
			unsafe_get_user(next, p, unreadable);
			unsafe_get_user(ret, p + 1, unreadable);
			next = ror64(next, 3);
			/* 0 wraps, so one comparison tells both kinds of bad addresses */
			if (unlikely(ret - 1 >= text)) {
				OPTIMIZER_HIDE_VAR(next);
				end = ret || next ? STACKTAP_END_BAD_FRAME : STACKTAP_END_COMPLETE;
				goto out;
			}
			last[i] = ret;
			/* the stack grows down: callers' frames are strictly above, which also ends loops */
			if (unlikely(next <= at || next >= top)) {
				/* hidden, or they are made ready for this in every round */
				OPTIMIZER_HIDE_VAR(next);
				OPTIMIZER_HIDE_VAR(i);
				end = next ? STACKTAP_END_BAD_FRAME : STACKTAP_END_COMPLETE;
				i++;
				goto out;
			}
		} while (++i);
	} while (look < limit && cost_is_within(began, limit_ns));
	stack->fp = next << 3;
	goto out;

unreadable:
	end = STACKTAP_END_UNREADABLE;
out:
	user_access_end();
	stack->nr = look + i;
	return end;
}

bool st_stack_pmu_is_nmi(void)
{
	return true;
}
