// SPDX-License-Identifier: GPL-2.0-only
#include <linux/nospec.h>
#include <linux/sched.h>
#include <linux/stacktap.h>
#include <linux/uaccess.h>
#include <asm/unwind.h>

#include "stack.h"

struct frame_record {
	unsigned long fp;
	unsigned long ret;
};

/* exclusive upper bound of a frame record's address */
#define FRAME_LIMIT (TASK_SIZE_MAX - sizeof(struct frame_record) + 1)

void stack_walk_kernel(struct pt_regs *regs, struct stacktap_stack *stack)
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
		if (stack->nr >= stack->max) {
			stack->end = STACKTAP_END_DEPTH;
			return;
		}
		stack->ips[stack->nr++] = addr;
	}
	stack->end = unwind_error(&state) ? STACKTAP_END_NO_RULE : STACKTAP_END_COMPLETE;
}

/* What a record says about the frame above: END_NONE to go on there. */
static __always_inline u8 frame_accept(struct stacktap_stack *stack, unsigned long *fp,
				       const struct frame_record *record)
{
	if (!record->ret)
		return record->fp ? STACKTAP_END_BAD_FRAME : STACKTAP_END_COMPLETE;
	if (record->ret >= TASK_SIZE_MAX)
		return STACKTAP_END_BAD_FRAME;
	stack->ips[stack->nr++] = record->ret;
	if (!record->fp)
		return STACKTAP_END_COMPLETE;
	/* callers' frames are strictly above, which also ends loops */
	if (record->fp <= *fp || record->fp % sizeof(long) || record->fp >= FRAME_LIMIT)
		return STACKTAP_END_BAD_FRAME;
	*fp = record->fp;
	return STACKTAP_END_NONE;
}

u8 stack_walk_user_first(unsigned long *fp, struct stacktap_stack *stack)
{
	struct frame_record record;

	if (!*fp || *fp % sizeof(long) || *fp >= FRAME_LIMIT)
		return STACKTAP_END_BAD_FRAME;
	/* refuses when CR3 is not current's mm, which no check of ours can see */
	if (copy_from_user_nmi(&record, (void __user *)*fp, sizeof(record)))
		return STACKTAP_END_UNREADABLE;
	return frame_accept(stack, fp, &record);
}

u8 stack_walk_user_frames(unsigned long *fp, struct stacktap_stack *stack, unsigned int limit)
{
	/* in registers, so that a frame costs some 16 instructions */
	unsigned long top = FRAME_LIMIT, text = TASK_SIZE_MAX - 1;
	unsigned long at = *fp, next, ret;
	u64 *ip = stack->ips + stack->nr, *last = stack->ips + limit;
	unsigned long __user *p;
	u8 end = STACKTAP_END_NONE;

	OPTIMIZER_HIDE_VAR(top);
	OPTIMIZER_HIDE_VAR(text);
	if (!user_access_begin((void __user *)at, sizeof(struct frame_record)))
		return STACKTAP_END_BAD_FRAME;
	/* no calls from here to the end of the section */
	while (ip < last) {
		/* @at is below @top; the clamp makes that hold under speculation as well */
		p = (unsigned long __user *)array_index_nospec(at, top);
		unsafe_get_user(next, p, unreadable);
		unsafe_get_user(ret, p + 1, unreadable);
		/* 0 wraps, so one comparison tells both kinds of bad addresses */
		if (unlikely(ret - 1 >= text)) {
			end = ret || next ? STACKTAP_END_BAD_FRAME : STACKTAP_END_COMPLETE;
			break;
		}
		*ip++ = ret;
		/* the stack grows down: callers' frames are strictly above, which also ends loops */
		if (unlikely(next <= at || next % sizeof(long) || next >= top)) {
			end = next ? STACKTAP_END_BAD_FRAME : STACKTAP_END_COMPLETE;
			break;
		}
		at = next;
	}
	goto out;

unreadable:
	end = STACKTAP_END_UNREADABLE;
out:
	user_access_end();
	stack->nr = ip - stack->ips;
	*fp = at;
	return end;
}

bool stack_regs_compat(struct pt_regs *regs)
{
	return !user_64bit_mode(regs);
}

unsigned long stack_regs_fp(struct pt_regs *regs)
{
	return regs->bp;
}

bool stack_pmu_is_nmi(void)
{
	return true;
}
