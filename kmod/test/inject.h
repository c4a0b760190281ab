/* SPDX-License-Identifier: GPL-2.0-only */
/* What builds for tests alone export: the capture path for interrupts that no PMU makes. */
#ifndef STACKTAP_KMOD_TEST_INJECT_H
#define STACKTAP_KMOD_TEST_INJECT_H

#include <linux/ptrace.h>

struct stacktap_injection {
	unsigned int calls;	/* of st_capture_overflow() */
	unsigned int recording;	/* of these, in the middle of writing the same CPU's ring */
	unsigned int stashing;	/* of these, in the middle of filling its stash */
};

/*
 * On this CPU let every counter of alignment faults overflow, which never do so by themselves
 * where nobody traps them. For NMIs.
 */
void stacktap_inject(struct pt_regs *regs, struct stacktap_injection *ret_injection);

#endif /* STACKTAP_KMOD_TEST_INJECT_H */
