/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef STACKTAP_KMOD_USER_H
#define STACKTAP_KMOD_USER_H

#include "cpu.h"
#include "stack.h"
#include "stash.h"

/*
 * Walk the user stack of current, for a sample that has @flags, into @cpu->stack. @slot is what
 * phase 1 left of that sample, NULL in the overflow itself. Returns the flags, with MOVED or STALE
 * where it is so. Walks until @limit_ns after @began, and a few frames longer. @in_place: phase 2 can do
 * it as well, and what is better left to it ends with STACK_PUT_OFF.
 *
 * Caller: IRQs are off; an NMI only if it hit user mode.
 */
u16 st_user_walk(struct stacktap_cpu *cpu, const struct stacktap_slot *slot, u16 flags,
		 struct cost_moment began, u32 limit_ns, bool in_place);

#endif /* STACKTAP_KMOD_USER_H */
