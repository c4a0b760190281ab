/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef STACKTAP_KMOD_COUNT_H
#define STACKTAP_KMOD_COUNT_H

#include <linux/types.h>
#include <asm/local64.h>

/*
 * Add to a count of the ring's producer: one CPU at a time moves it, with IRQs off, and an NMI only if it
 * hit user mode, so nothing comes between load and store. Both are of the whole word, so anybody may read it
 * at any time. arm64's local64_add() is an atomic, which is slower; x86's is one instruction.
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
