// SPDX-License-Identifier: GPL-2.0-only
#include <linux/ptrace.h>
#include <linux/sched.h>
#include <linux/sched/task_stack.h>
#include <linux/ktime.h>
#include <linux/uaccess.h>

#include "compat/compat.h"
#include "user.h"

enum {
	USER_CLOCK_FRAMES = 64,	/* frames between two looks at the clock: 6 us of cache misses */
};

void user_walk(struct stacktap_hit *hit, struct stacktap_stack *stack, u64 now, u32 limit_ns)
{
	struct pt_regs *regs;
	unsigned long fp;

	stack->end = STACKTAP_END_NONE;
	if (hit->flags & (STACKTAP_SAMPLE_KERNEL_THREAD | STACKTAP_SAMPLE_IDLE) || !hit->mm)
		return;

	if (current->pid != hit->tid || current->start_boottime != hit->task_start) {
		hit->flags |= STACKTAP_SAMPLE_STALE;
		stack->end = STACKTAP_END_STALE;
		return;
	}
	/*
	 * During exec the new mm is in place before it is active, with IRQs on in between; the
	 * task is the same, so only in_execve tells.
	 */
	regs = task_pt_regs(current);
	if (current->mm != hit->mm || current->in_execve || current->flags & COMPAT_PF_NO_USER ||
	    current->self_exec_id != hit->exec_id || !user_mode(regs)) {
		stack->end = STACKTAP_END_STALE;
		return;
	}

	fp = stack_regs_fp(regs);
	if (hit->flags & STACKTAP_SAMPLE_USER_MODE &&
	    (instruction_pointer(regs) != hit->pc || user_stack_pointer(regs) != hit->sp ||
	     fp != hit->fp))
		hit->flags |= STACKTAP_SAMPLE_MOVED;

	stack->ips[stack->nr++] = instruction_pointer(regs);
	if (stack_regs_compat(regs)) {
		stack->end = STACKTAP_END_COMPAT;
		return;
	}
	if (stack->nr >= stack->max) {
		stack->end = STACKTAP_END_DEPTH;
		return;
	}

	pagefault_disable();
	stack->end = stack_walk_user_first(&fp, stack);
	while (stack->end == STACKTAP_END_NONE) {
		stack->end = stack_walk_user_frames(&fp, stack,
						    min(stack->nr + USER_CLOCK_FRAMES,
							stack->max));
		if (stack->end != STACKTAP_END_NONE)
			break;
		/*
		 * Looked at last: a virtual CPU that was taken away for a while must not cost the
		 * first frames, and these few are cheap.
		 */
		if (stack->nr >= stack->max)
			stack->end = STACKTAP_END_DEPTH;
		else if (ktime_get_mono_fast_ns() - now > limit_ns)
			stack->end = STACKTAP_END_TIME;
	}
	pagefault_enable();
}
