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
	PLACE_WALK_LIMIT_NS = SESSION_WALK_LIMIT_NS / (SESSION_IS_STRICT ? 5 : 1),
	/* hits of a program whose stack was put off that are left to phase 2 at once */
	PLACE_UNTRIED = 16,
};

/*
 * For how many ns the interrupt or NMI of the PMU at @now may walk the user stack itself; 0: not at all.
 *
 * It may where it hit user mode: then nothing that runs with IRQs off is half done on this CPU, so no
 * record, no walk and no slot of the stash is, and user memory can be read as in any system call. @regs have
 * to be those that the entry from user mode saved, as the walk starts from these; a PMU's driver may have
 * made up its own. What waits in the stash was hit before and is written before, so that a ring has its
 * samples in order of time.
 */
static __always_inline u32 place_walk_ns(const struct stacktap_counter *counter,
					 struct pt_regs *regs, u64 now)
{
	struct stacktap_cpu *cpu = counter->cpu;

	if (!counter->may_finish || !user_mode(regs) || unlikely(regs != task_pt_regs(current)) ||
	    unlikely(!cpu->stash || stash_count(cpu->stash) || cpu->recording || cpu->stashing))
		return 0;
	/* a program whose stack was put off is likely to have that done again, and would pay for both */
	if (unlikely(cpu->untried) && cpu->put_off_mm == current->mm) {
		cpu->untried--;
		return 0;
	}
	return min_t(u32, PLACE_WALK_LIMIT_NS,
		     allowance_left(this_cpu_ptr(&st_allowance), now,
				    READ_ONCE(st_allowance_limit_ns)));
}

/* A walk was begun there and is left to phase 2. */
static inline void place_put_off(struct stacktap_cpu *cpu)
{
	cpu->put_off_mm = current->mm;
	cpu->untried = PLACE_UNTRIED;
}

#endif /* STACKTAP_KMOD_PLACE_H */
