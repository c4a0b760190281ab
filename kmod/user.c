// SPDX-License-Identifier: GPL-2.0-only
#include <linux/ptrace.h>
#include <linux/sched.h>
#include <linux/sched/task_stack.h>
#include <linux/uaccess.h>

#include "compat/compat.h"
#include "hook.h"
#include "mappings.h"
#include "session.h"
#include "user.h"
#include "walk.h"

static void user_walk_frames(struct stacktap_stack *stack, struct cost_moment began,
			     u32 limit_ns, bool in_place)
{
	bool is_hooked = hook_user_active(current);
	unsigned int limit = stack->max;

	stack->end = st_stack_admit_user(stack);
	while (stack->end == STACKTAP_END_NONE) {
		if (unlikely(is_hooked))
			limit = stack->nr + 1;
		stack->end = st_stack_walk_user_frames(stack, limit, began, limit_ns);
		/* the entry before, which it may be, is none */
		if (unlikely(is_hooked) && hook_is_user(stack->ips[stack->nr - 1])) {
			stack->nr--;
			stack->end = STACKTAP_END_HOOK;
		}
		if (stack->end != STACKTAP_END_NONE)
			break;
		/*
		 * Looked at last: a virtual CPU that was taken away for a while must not cost the
		 * first frames, and these few are cheap.
		 */
		if (stack->nr >= stack->max)
			stack->end = STACKTAP_END_DEPTH;
		else if (cost_since(began) > limit_ns)
			stack->end = in_place ? STACK_PUT_OFF : STACKTAP_END_TIME;
	}
}

/*
 * In a session that uses tables. Slices are left to phase 2, and so are walks without a list, as most of
 * these have a slice. What is put off is not counted: phase 2 walks that stack again.
 */
static noinline void user_walk_tables(struct stacktap_cpu *cpu, struct pt_regs *regs,
				      struct stacktap_stack *stack,
				      struct cost_moment began, u32 limit_ns, bool in_place)
{
	const struct stacktap_session *session = cpu->session;
	const struct stacktap_list *list = st_mappings_find(&session->tables, current->mm);
	struct walk_counts counts;

	if (in_place && unlikely(!list || slice_is_next(&cpu->slices, session->slice_every))) {
		stack->end = STACK_PUT_OFF;
		return;
	}
	if (!list) {
		count_add(1, &cpu->table_misses);
		user_walk_frames(stack, began, limit_ns, false);
		/* no slice leads past that either */
		if (stack->end == STACKTAP_END_HOOK)
			return;
		/* but for a stack that the ring's end cut: that sample is lost for it */
		if (stack->end != STACKTAP_END_DEPTH || stack->max >= session->user_frames)
			stack->end = STACKTAP_END_NO_MAPPINGS;
		if (session->slice_bytes)
			stack->slice = SLICE_UNLISTED;
		return;
	}
	st_walk_tables(list, cpu->memo, regs, stack, began, limit_ns, &counts);
	if (in_place && unlikely(stack->end == STACKTAP_END_TIME ||
				 (counts.is_unlisted && session->slice_bytes))) {
		stack->end = STACK_PUT_OFF;
		return;
	}
	count_add(1, &cpu->table_hits);
	count_add(counts.searches, &cpu->table_searches);
	count_add(counts.frames, &cpu->table_frames);
	count_add(counts.fp_frames, &cpu->table_fp_frames);
	/* mapped after the list was made, or never to be listed: code that is made at run time */
	if (counts.is_unlisted && (session->slice_bytes || stack->end == STACKTAP_END_COMPLETE)) {
		stack->end = STACKTAP_END_NO_MAPPINGS;
		if (session->slice_bytes)
			stack->slice = SLICE_UNLISTED;
		return;
	}
	if (unlikely(session->slice_every) && stack->end != STACKTAP_END_HOOK &&
	    ++cpu->slices.walks >= session->slice_every) {
		cpu->slices.walks = 0;
		stack->slice = SLICE_COMPARED;
	}
}

u16 st_user_walk(struct stacktap_cpu *cpu, const struct stacktap_slot *slot, u16 flags,
		 struct cost_moment began, u32 limit_ns, bool in_place)
{
	const struct stacktap_session *session = cpu->session;
	const struct task_struct *task = current;
	const struct mm_struct *mm = slot ? slot->hit.mm : task->mm;
	struct stacktap_stack *stack = &cpu->stack;
	struct pt_regs *regs;

	if (flags & (STACKTAP_SAMPLE_KERNEL_THREAD | STACKTAP_SAMPLE_IDLE) || !mm)
		return flags;

	if (slot && (task->pid != slot->sample.tid ||
		     task->start_boottime != slot->hit.task_start)) {
		stack->end = STACKTAP_END_STALE;
		return flags | STACKTAP_SAMPLE_STALE;
	}
	/*
	 * During exec the new mm is in place before it is active, with IRQs on in between; the
	 * task is the same, so only in_execve tells.
	 */
	regs = task_pt_regs(current);
	if (task->mm != mm || task->in_execve || task->flags & COMPAT_PF_NO_USER ||
	    (slot && task->self_exec_id != slot->sample.exec_id) || !user_mode(regs) ||
	    compat_faults_signal(task)) {
		stack->end = STACKTAP_END_STALE;
		return flags;
	}

	stack->fp = stack_regs_fp(regs);
	if (slot && flags & STACKTAP_SAMPLE_USER_MODE &&
	    (instruction_pointer(regs) != slot->hit.pc ||
	     user_stack_pointer(regs) != slot->hit.sp || stack->fp != slot->hit.fp))
		flags |= STACKTAP_SAMPLE_MOVED;

	stack->ips[stack->nr++] = instruction_pointer(regs);
	if (stack_regs_compat(regs)) {
		stack->end = STACKTAP_END_COMPAT;
		return flags;
	}
	if (stack->nr >= stack->max) {
		stack->end = STACKTAP_END_DEPTH;
		return flags;
	}
	/* in the trampoline itself; the frame pointer is that of the caller's already */
	if (unlikely(hook_user_active(task)) && hook_is_user(stack->ips[0])) {
		stack->end = STACKTAP_END_HOOK;
		return flags;
	}

	pagefault_disable();
	if (session->slice_bytes || atomic_read(&session->tables.lists))
		user_walk_tables(cpu, regs, stack, began, limit_ns, in_place);
	else
		user_walk_frames(stack, began, limit_ns, in_place);
	pagefault_enable();
	return flags;
}
