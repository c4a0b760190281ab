/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Handlers that follow each other in one interrupt, as the timers of several sessions do, and one that expired
 * again meanwhile, share one deadline. The kernel counts the interrupts of its timers; where it does not, and of all
 * that is no timer, it is concluded from the time between handlers. A conclusion that would feed itself cuts
 * every stack from then on: what a CPU lost once, to a hypervisor or to firmware, must not make the next handlers
 * seem close.
 */
#ifndef STACKTAP_STRETCH_H
#define STACKTAP_STRETCH_H

#include <linux/types.h>

enum {
	/* handlers that follow each other so closely have no time for anything else in between */
	STRETCH_GAP_NS	= 5000,
	/*
	 * deadlines; one interrupt does not go on for longer than so many, and what seems to is several, or a kernel
	 * that has its timers in the tick and counts none
	 */
	STRETCH_LONGEST	= 4,
};

/* Of one CPU, over all sessions. All zero: there was none yet. */
struct stretch {
	__u64 began;
	__u64 ended;	/* its last handler, so far */
	__u64 slowest;	/* ns of the handler of it that took longest */
	__u32 interrupt; /* of its last handler, if that was a timer */
};

/* What a handler is called by. */
struct stretch_cause {
	int is_timer;
	__u32 interrupt; /* a timer's: number of the interrupt, 0: unknown */
};

/*
 * A handler begins at @now. Returns the ns that are left to it of @limit. A timer may be of the same interrupt as the one
 * before, whatever else expired in between. Where that is not known, a machine that is slow in our part is so in perf's
 * between two of these, and then half of @limit at most is no gap. Between two page faults interrupts are on, however
 * soon they follow.
 */
static inline __u32 stretch_begin(struct stretch *stretch, __u64 now, __u32 limit,
				  struct stretch_cause cause)
{
	__u64 slow = stretch->slowest < limit / 2 ? stretch->slowest : limit / 2;
	__u64 gap = STRETCH_GAP_NS + (cause.is_timer ? slow : 0), spent;
	int is_same = cause.interrupt && cause.interrupt == stretch->interrupt;

	if ((!is_same && now - stretch->ended > gap) ||
	    now - stretch->began > (__u64)STRETCH_LONGEST * limit) {
		stretch->began = now;
		stretch->slowest = 0;
	}
	stretch->interrupt = cause.interrupt;
	spent = now - stretch->began;
	return spent < limit ? limit - spent : 0;
}

/* The handler that began at @began ends at @now. Only between timers does its time say how slow the machine is. */
static inline void stretch_end(struct stretch *stretch, __u64 began, __u64 now,
			       struct stretch_cause cause)
{
	if (cause.is_timer && now - began > stretch->slowest)
		stretch->slowest = now - began;
	stretch->ended = now;
}

#endif /* STACKTAP_STRETCH_H */
