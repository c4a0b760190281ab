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

enum {
	/*
	 * How a kernel stack ended that has its outermost frame. CONFIG_UNWINDER_GUESS takes any address of
	 * code that it finds on the stack for a caller, and reports no error.
	 */
	STACK_OUTERMOST = IS_ENABLED(CONFIG_UNWINDER_GUESS) ? STACKTAP_END_GUESSED :
							      STACKTAP_END_COMPLETE,
};

/* exclusive upper bound of a frame record's address */
#define FRAME_LIMIT (TASK_SIZE_MAX - sizeof(struct frame_record) + 1)

/*
 * A frame pointer leads past the caller that a trampoline returns to. ORC's rules are right where a trampoline calls,
 * not everywhere else: behind what pops function-graph's frame the caller has the same stack pointer (7.2), of
 * which unwind_next_frame() warns in the kernel's log. So no step is taken from a trampoline that was interrupted.
 */
static __always_inline bool stack_ends_at(unsigned long address, bool is_interrupted)
{
	return unlikely(is_interrupted || IS_ENABLED(CONFIG_UNWINDER_FRAME_POINTER)) &&
	       unlikely(hook_is_running(address));
}

void st_stack_walk_kernel(struct pt_regs *regs, struct stacktap_stack *stack)
{
	struct unwind_state state;
	struct pt_regs *entry;
	unsigned long addr;

	if (regs->flags & X86_EFLAGS_FIXED) {
		stack->ips[stack->nr++] = regs->ip;
		if (stack_ends_at(regs->ip, true)) {
			stack->end = STACKTAP_END_HOOK;
			return;
		}
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
		if (stack_ends_at(addr, unwind_get_entry_regs(&state, NULL))) {
			stack->end = STACKTAP_END_HOOK;
			return;
		}
	}
	if (unwind_error(&state))
		stack->end = STACKTAP_END_NO_RULE;
	else if (stack->nr && unlikely(hook_is_graph(stack->ips[stack->nr - 1])))
		/* until 6.4 it is said to be the outermost code of a stack */
		stack->end = STACKTAP_END_HOOK;
	else
		stack->end = STACK_OUTERMOST;
}

u8 st_stack_admit_user(struct stacktap_stack *stack)
{
	unsigned long fp = stack->fp;
	u8 probe;

	if (!fp || fp % sizeof(long) || fp >= FRAME_LIMIT)
		return STACKTAP_END_BAD_FRAME;
	/* by copy_from_user_nmi(), because only that checks that the loaded mm is current's */
	return copy_from_user_nmi(&probe, (void __user *)fp, sizeof(probe)) ?
		STACKTAP_END_UNREADABLE : STACKTAP_END_NONE;
}

struct frame_walk {
	unsigned long mask;	/* of the user's half, to the end of the page behind it */
	unsigned long text;
	unsigned long top;
	unsigned long next;
};

enum frame_step {
	FRAME_GOES_ON,
	/* this is no frame */
	FRAME_NONE_BAD,
	FRAME_NONE_COMPLETE,
	FRAME_NONE_UNREADABLE,
	/* it is one, its caller's is none */
	FRAME_LAST_BAD,
	FRAME_LAST_COMPLETE,
};

/*
 * Thirteen instructions, most of what a sample costs. Addresses are kept rotated by three: counted in words,
 * and a misaligned one is beyond every limit.
 */
static __always_inline enum frame_step frame_step(struct frame_walk *walk, u64 *ip)
{
	/* @next is below @top; the mask makes it the user's under speculation as well */
	unsigned long at = walk->next & walk->mask, next, ret;
	const unsigned long __user *p;

	OPTIMIZER_HIDE_VAR(at);
	p = (const unsigned long __user *)(at << 3);
	unsafe_get_user(next, p, unreadable);
	unsafe_get_user(ret, p + 1, unreadable);
	next = ror64(next, 3);
	/* 0 wraps, so one comparison tells both kinds of bad addresses */
	if (unlikely(ret - 1 >= walk->text)) {
		/* hidden, or they are made ready for this with every frame */
		OPTIMIZER_HIDE_VAR(next);
		OPTIMIZER_HIDE_VAR(ret);
		return ret || next ? FRAME_NONE_BAD : FRAME_NONE_COMPLETE;
	}
	*ip = ret;
	/* the stack grows down: callers' frames are strictly above, which also ends loops */
	if (unlikely(next <= at || next >= walk->top)) {
		OPTIMIZER_HIDE_VAR(next);
		return next ? FRAME_LAST_BAD : FRAME_LAST_COMPLETE;
	}
	walk->next = next;
	return FRAME_GOES_ON;

unreadable:
	return FRAME_NONE_UNREADABLE;
}

u8 st_stack_walk_user_frames(struct stacktap_stack *stack, unsigned int limit,
			     struct cost_moment began, u32 limit_ns)
{
	static const u8 ends[] = {
		[FRAME_GOES_ON] = STACKTAP_END_NONE,
		[FRAME_NONE_BAD] = STACKTAP_END_BAD_FRAME,
		[FRAME_NONE_COMPLETE] = STACKTAP_END_COMPLETE,
		[FRAME_NONE_UNREADABLE] = STACKTAP_END_UNREADABLE,
		[FRAME_LAST_BAD] = STACKTAP_END_BAD_FRAME,
		[FRAME_LAST_COMPLETE] = STACKTAP_END_COMPLETE,
	};
	struct frame_walk walk = {
		.mask = (TASK_SIZE_MAX + PAGE_SIZE - 1) >> 3,
		.text = TASK_SIZE_MAX - 1,
		.top = FRAME_LIMIT >> 3,
		.next = ror64(stack->fp, 3),
	};
	u64 *ip = stack->ips + stack->nr, *last = stack->ips + limit;
	u64 *look, *fours;
	enum frame_step step = FRAME_GOES_ON;

	/* in registers */
	OPTIMIZER_HIDE_VAR(walk.mask);
	OPTIMIZER_HIDE_VAR(walk.text);
	OPTIMIZER_HIDE_VAR(walk.top);
	if (!user_access_begin((void __user *)stack->fp, sizeof(struct frame_record)))
		return STACKTAP_END_BAD_FRAME;
	/* no calls from here to the end of the section */
	do {
		look = last - ip > STACK_CLOCK_FRAMES ? ip + STACK_CLOCK_FRAMES : last;
		/* four at a time: what counts them costs a tenth */
		for (fours = look - 3; ip < fours; ip += 4) {
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
		}
		for (; ip < look; ip++) {
			step = frame_step(&walk, ip);
			if (unlikely(step))
				goto out;
		}
	} while (ip < last && cost_is_within(began, limit_ns));
	stack->fp = walk.next << 3;
	goto out;

out_3:
	ip++;
out_2:
	ip++;
out_1:
	ip++;
out:
	user_access_end();
	stack->nr = ip - stack->ips + (step >= FRAME_LAST_BAD);
	return ends[step];
}

bool st_stack_pmu_is_nmi(void)
{
	return true;
}
