/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef STACKTAP_KMOD_HOOK_H
#define STACKTAP_KMOD_HOOK_H

#include <linux/init.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/uprobes.h>

enum {
	HOOK_TRAMPOLINES = 4,	/* of the kernel, under all their names */
};

struct hook_trampoline {
	unsigned long start;
	unsigned long bytes;
};

extern struct hook_trampoline st_hook_trampolines[HOOK_TRAMPOLINES];
extern unsigned long st_hook_graph;		/* function-graph's, which is one of them */
extern unsigned long st_hook_graph_bytes;

/* Ask for the kernel's trampolines; without CONFIG_KPROBES there is nobody to ask, and none is known. */
void __init st_hook_init(void);

/* Does this return address, which is not 0, stand for a caller in the kernel whose return is hooked? */
static inline bool hook_is_kernel(unsigned long address)
{
	unsigned int i;

	for (i = 0; i < HOOK_TRAMPOLINES && st_hook_trampolines[i].start; i++)
		if (address == st_hook_trampolines[i].start)
			return true;
	return false;
}

/*
 * Is it in any of them, all of which run with the frame pointer of the caller of the one that they return
 * to? A walk by frame pointers alone leaves that one out.
 */
static inline bool hook_is_running(unsigned long address)
{
	unsigned int i;

	for (i = 0; i < HOOK_TRAMPOLINES && st_hook_trampolines[i].start; i++)
		if (address - st_hook_trampolines[i].start < st_hook_trampolines[i].bytes)
			return true;
	return false;
}

/*
 * Is it in function-graph's trampoline, which runs after the return and has no frame that leads to the
 * caller? What runs of kretprobes' and fprobes' has one.
 */
static inline bool hook_is_graph(unsigned long address)
{
	return address - st_hook_graph < st_hook_graph_bytes;
}

/*
 * May uprobes hold return addresses of current? Only the task itself changes that list, but it frees
 * entries before it unlinks them (until 6.13), and in exec and exit what holds the list before it
 * forgets that: the pointer to the list is read unchecked and tells, where it points to is never read.
 */
static inline bool hook_user_active(const struct task_struct *task)
{
#ifdef CONFIG_UPROBES
	const struct uprobe_task *utask = READ_ONCE(task->utask);

	return utask && READ_ONCE_NOCHECK(utask->return_instances);
#else
	return false;
#endif
}

/*
 * Where hook_user_active(): the trampoline is at the start of its mapping. One in so many callers is so
 * as well, 4096 on x86 and 1024 on arm64, and its stack is cut there, which is told.
 */
static inline bool hook_is_user(u64 address)
{
	return !(address & ~PAGE_MASK);
}

#endif /* STACKTAP_KMOD_HOOK_H */
