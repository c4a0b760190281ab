// SPDX-License-Identifier: GPL-2.0-only
#include <linux/ptrace.h>
#include <linux/sched.h>
#include <linux/sched/task_stack.h>
#include <linux/stacktap.h>
#include <linux/uaccess.h>
#include <asm/cpufeature.h>
#include <asm/memory.h>

#include "compat/compat.h"
#include "hook.h"
#include "registers.h"
#include "stack.h"

struct stack_frame {
	unsigned long fp;
	unsigned long ret;
};

/*
 * The unwinder of the kernel itself is not exported and not built for NMI. The walk is bounded by
 * the task's stack, or by the block that holds the stack pointer (the IRQ stack and others, which no
 * module can name, all as large and as aligned), with one way from there to the task's stack. The
 * frame pointer names no block: code may have it hold anything, an address of a device's registers
 * too, whose reads do not fault but have effects.
 */
void st_stack_walk_kernel(struct pt_regs *regs, struct stacktap_stack *stack)
{
	unsigned long task_low = (unsigned long)task_stack_page(current);
	unsigned long task_high = task_low + THREAD_SIZE;
	unsigned long final = compat_final_frame(current);
	unsigned long fp = regs->regs[29], sp = regs->sp;
	unsigned long low, high, ret;
	struct stack_frame frame;

	stack->ips[stack->nr++] = compat_strip_kernel_pac(regs->pc);
	if (unlikely(hook_is_graph(stack->ips[0]))) {
		stack->end = STACKTAP_END_HOOK;
		return;
	}
	low = sp;
	if (sp >= task_low && sp < task_high) {
		high = task_high;
	} else {
		/* an empty stack's pointer is at its end, and the block is empty as well then */
		high = round_up(sp, THREAD_SIZE);
		if (fp >= task_low && fp < task_high) {
			low = task_low;
			high = task_high;
		}
	}

	stack->end = STACKTAP_END_BAD_FRAME;
	pagefault_disable();
	while (fp != final) {
		if (fp % sizeof(long) || fp < low || fp >= high || high - fp < sizeof(frame) ||
		    !is_ttbr1_addr(fp))
			goto out;
		if (stack->nr >= stack->max) {
			stack->end = STACKTAP_END_DEPTH;
			goto out;
		}
		if (compat_read_kernel_pair((unsigned long *)fp, &frame.fp, &frame.ret)) {
			stack->end = STACKTAP_END_UNREADABLE;
			goto out;
		}
		if (!frame.ret) {
			if (compat_frame_is_final(frame.fp))
				break;
			if (compat_frame_of_exception(fp, high, &frame.fp, &frame.ret))
				goto out;
		}
		ret = compat_strip_kernel_pac(frame.ret);
		if (unlikely(hook_is_kernel(ret) || hook_is_graph(ret))) {
			stack->end = STACKTAP_END_HOOK;
			goto out;
		}
		stack->ips[stack->nr++] = ret;

		low = fp + sizeof(frame);
		fp = frame.fp;
		if (high != task_high && fp >= task_low && fp < task_high) {
			low = task_low;
			high = task_high;
		}
	}
	stack->end = STACKTAP_END_COMPLETE;

out:
	pagefault_enable();
}

/*
 * Where the stack ends that runs: below the thread pointer, if that is further up, for the C library
 * keeps there what is on no stack. Threads of musl (up to 1.2.5) begin with the frame pointer of who
 * created them, whose stack is above.
 */
static unsigned long user_stack_top(void)
{
	unsigned long top = TASK_SIZE - sizeof(struct stack_frame);
	unsigned long thread = registers_thread_pointer();

	return task_pt_regs(current)->sp < thread && thread < top ? thread : top;
}

u8 st_stack_admit_user(struct stacktap_stack *stack)
{
	unsigned long fp = untagged_addr(stack->fp);

	stack->fp = fp;
	return !fp || fp % sizeof(long) || fp > user_stack_top() ?
		STACKTAP_END_BAD_FRAME : STACKTAP_END_NONE;
}

struct frame_walk {
	unsigned long top;
	unsigned long text;
	unsigned long pac;
	unsigned long at;
	unsigned long next;
	unsigned long ret;
	int err;
};

enum frame_step {
	FRAME_GOES_ON,
	FRAME_BAD_RETURN,
	FRAME_BAD_CALLER,	/* the frame itself is good */
};

/* Fourteen instructions, most of what a sample costs. */
static __always_inline enum frame_step frame_step(struct frame_walk *walk, u64 *ip)
{
	/* @at is at most @top; the mask makes it a user address under speculation as well */
	const unsigned long __user *p = compat_mask_user(walk->at);
	unsigned long next, ret;

	/* what cannot be read is 0, which ends the walk */
	compat_raw_get_pair(p, &next, &ret, &walk->err);
	OPTIMIZER_HIDE_VAR(walk->err);
	ret &= ~walk->pac;
	/* 0 wraps, so one comparison tells both kinds of bad addresses */
	if (unlikely(ret - 1 >= walk->text)) {
		walk->next = next;
		walk->ret = ret;
		return FRAME_BAD_RETURN;
	}
	*ip = ret;
	/* callers' frames are strictly above, which also ends loops */
	if (unlikely(next <= walk->at || next % sizeof(long) || next > walk->top)) {
		next = untagged_addr(next);
		if (next <= walk->at || next % sizeof(long) || next > walk->top) {
			walk->next = next;
			return FRAME_BAD_CALLER;
		}
	}
	walk->at = next;
	return FRAME_GOES_ON;
}

u8 st_stack_walk_user_frames(struct stacktap_stack *stack, unsigned int limit,
			     struct cost_moment began, u32 limit_ns)
{
	struct frame_walk walk = {
		.top = user_stack_top(),
		.text = TASK_SIZE - 1,
		.pac = ptrauth_user_pac_mask(),
		.at = stack->fp,
	};
	u64 *ip = stack->ips + stack->nr, *last = stack->ips + limit, *look;
	enum frame_step step = FRAME_GOES_ON;
	u8 end = STACKTAP_END_NONE;

	/* in registers */
	OPTIMIZER_HIDE_VAR(walk.top);
	OPTIMIZER_HIDE_VAR(walk.text);
	OPTIMIZER_HIDE_VAR(walk.pac);
	do {
		look = last - ip > STACK_CLOCK_FRAMES ? ip + STACK_CLOCK_FRAMES : last;
		/* four at a time: what counts them costs a quarter */
		while (look - ip >= 4) {
			step = frame_step(&walk, ip);
			if (unlikely(step))
				goto out;
			step = frame_step(&walk, ip + 1);
			if (unlikely(step))
				goto out_1;
			step = frame_step(&walk, ip + 2);
			if (unlikely(step))
				goto out_2;
			step = frame_step(&walk, ip + 3);
			if (unlikely(step))
				goto out_3;
			ip += 4;
		}
		for (; ip < look; ip++) {
			step = frame_step(&walk, ip);
			if (unlikely(step))
				goto out;
		}
	} while (ip < last && cost_is_within(began, limit_ns));
	goto out;

out_3:
	ip++;
out_2:
	ip++;
out_1:
	ip++;
out:
	switch (step) {
	case FRAME_GOES_ON:
		stack->fp = walk.at;
		break;
	case FRAME_BAD_RETURN:
		end = walk.ret || walk.next ? STACKTAP_END_BAD_FRAME : STACKTAP_END_COMPLETE;
		break;
	case FRAME_BAD_CALLER:
		ip++;
		end = walk.next ? STACKTAP_END_BAD_FRAME : STACKTAP_END_COMPLETE;
		break;
	}
	stack->nr = ip - stack->ips;
	return walk.err ? STACKTAP_END_UNREADABLE : end;
}

bool st_stack_pmu_is_nmi(void)
{
	return system_uses_irq_prio_masking();
}
