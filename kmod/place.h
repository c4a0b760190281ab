/* SPDX-License-Identifier: GPL-2.0-only */
/* Where a hit of the PMU's is finished: in its interrupt, or in phase 2. */
#ifndef STACKTAP_KMOD_PLACE_H
#define STACKTAP_KMOD_PLACE_H

#include <linux/minmax.h>
#include <linux/ptrace.h>
#include <linux/sched/task_stack.h>

#include "allowance.h"
#include "cpu.h"
#include "session.h"
#include "stash.h"

enum {
	/* phase 2 of a walk that is put off comes on top of it, and has less time by as much */
	CAPTURE_IN_PLACE_NS = SESSION_WALK_LIMIT_NS / (SESSION_IS_STRICT ? 5 : 1),
	/* hits of a program whose stack was put off that are left to phase 2 at once */
	CAPTURE_UNTRIED = 16,
};

/*
 * For how many ns may the PMU's interrupt at @now walk the user stack itself, be it an NMI? 0: not at all. It may
 * where it hit user mode: then nothing of the kernel is half done on this CPU, so no record, no walk and no
 * slot of the stash is, and user memory is as it is in any system call. That @regs are those that the entry
 * saved is looked at, as a PMU may make up its own. Hits that wait in the stash come first. A program whose stack was
 * put off is likely to have that done again, so its next hits do not try.
 */
static __always_inline u32 capture_walk_ns(const struct stacktap_counter *counter,
					   struct pt_regs *regs, u64 now)
{
	struct stacktap_cpu *cpu = counter->cpu;

	if (!counter->may_finish || !user_mode(regs) || unlikely(regs != task_pt_regs(current)) ||
	    unlikely(!cpu->stash || stash_count(cpu->stash) || cpu->recording || cpu->stashing))
		return 0;
	if (unlikely(cpu->untried) && cpu->put_off_mm == current->mm) {
		cpu->untried--;
		return 0;
	}
	return min_t(u32, CAPTURE_IN_PLACE_NS,
		     allowance_left(this_cpu_ptr(&st_allowance), now,
				    READ_ONCE(st_allowance_limit_ns)));
}

#endif /* STACKTAP_KMOD_PLACE_H */
