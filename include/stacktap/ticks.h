/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Does a CPU's own counter go as fast as the kernel says? It may do so when the module is loaded and no
 * longer later: a virtual machine that moves to a host whose counter has another rate keeps the figure
 * that it began with.
 */
#ifndef STACKTAP_TICKS_H
#define STACKTAP_TICKS_H

#include <linux/types.h>

enum {
	/* in a row before the rate is wrong: what sleeps or moves makes the counter jump, which is off once */
	TICKS_STRIKES = 3,
	TICKS_PART = 20,		/* of the time that they may be off by */
	TICKS_SHORTEST_S = 1,		/* that tells something whatever came between the two clocks */
	TICKS_LONGEST_S = 1000,		/* that 64 bits have room for below 18 GHz */
};

struct ticks_watch {
	__u64 ticks, ns;	/* when both were read last; 0 before */
	__u32 cpu;		/* whose they are */
	__u32 strikes;
};

/* Is it what passes in @ns, to a twentieth? @khz: not 0. */
static inline bool ticks_hold(__u64 ticks, __u64 ns, __u64 khz)
{
	__u64 said = ticks * 1000000 / khz;

	return said >= ns - ns / TICKS_PART && said <= ns + ns / TICKS_PART;
}

/*
 * @ticks and @ns, of a clock that does not depend on them, are read on @cpu; only readings of the same CPU
 * compare. Returns whether @khz is to be believed still.
 */
static inline bool ticks_watch(struct ticks_watch *watch, __u32 cpu, __u64 ticks, __u64 ns,
			       __u64 khz)
{
	__u64 passed = ns - watch->ns;
	bool compares = watch->ns && cpu == watch->cpu && passed <= TICKS_LONGEST_S * 1000000000ULL;

	if (compares && passed < TICKS_SHORTEST_S * 1000000000ULL)
		return true;
	if (compares && ticks_hold(ticks - watch->ticks, passed, khz))
		watch->strikes = 0;
	else
		watch->strikes += compares;
	watch->cpu = cpu;
	watch->ticks = ticks;
	watch->ns = ns;
	return watch->strikes < TICKS_STRIKES;
}

#endif /* STACKTAP_TICKS_H */
