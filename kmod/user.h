/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef STACKTAP_KMOD_USER_H
#define STACKTAP_KMOD_USER_H

#include "cpu.h"
#include "stack.h"
#include "stash.h"

/*
 * Walk the user stack of current for @sample into @cpu->stack; sets MOVED and STALE in @sample's flags.
 * @hit is NULL in the overflow itself. IRQs are off, this is not an NMI. Spends at most about the
 * session's walk limit.
 */
void user_walk(struct stacktap_cpu *cpu, struct stacktap_sample *sample,
	       const struct stacktap_hit *hit, u64 now);

#endif /* STACKTAP_KMOD_USER_H */
