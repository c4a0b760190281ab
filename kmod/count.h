/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef STACKTAP_KMOD_COUNT_H
#define STACKTAP_KMOD_COUNT_H

#include <linux/types.h>
#include <asm/local64.h>

/*
 * Add to a count that one CPU at a time moves, with IRQs off, and no NMI but one that hit user mode: what the
 * producer of a ring counts. Nothing comes between load and store, so nothing is lost, and both are whole, so that anybody may
 * read at any time. arm64's local64_add() is an atomic, which this does without; x86's is one instruction.
 */
static __always_inline void count_add(u64 n, local64_t *count)
{
#ifdef CONFIG_X86_64
	local64_add(n, count);
#else
	local64_set(count, local64_read(count) + n);
#endif
}

#endif /* STACKTAP_KMOD_COUNT_H */
