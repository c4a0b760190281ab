/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * How much of a user stack an overflow handler of the PMU may walk itself. perf keeps a mean of what such
 * interrupts take on each CPU, over about the last 128, and lowers the rate of the whole system when it is above
 * what perf allows: perf_sample_event_took() in kernel/events/core.c, 2.5 us by default. The same form of mean is
 * kept here of our part, and no handler walks that could lead it above a limit.
 *
 * The handlers of several counters may run in one interrupt. They follow each other so closely that nothing else
 * has time in between, and then they are one.
 */
#ifndef STACKTAP_ALLOWANCE_H
#define STACKTAP_ALLOWANCE_H

#include <linux/types.h>

enum {
	ALLOWANCE_SHIFT		= 7,	/* interrupts in the mean: perf's NR_ACCUMULATED_SAMPLES, 128 */
	/*
	 * Of the mean, in ns, which no walk that keeps to its time leads beyond. perf measures 2,500 with its
	 * driver's part, for which that leaves 1,300: a walk by tables is late by two searches at most, see
	 * WALK_SLOW_SEARCHES, which add 160 to the mean.
	 */
	ALLOWANCE_DEFAULT_NS	= 1000,
	/* for the walks of one interrupt, in limits of the mean: moves it by a tenth of that */
	ALLOWANCE_WALK		= 13,
	ALLOWANCE_GAP_NS	= 5000,	/* handlers that follow each other more closely are of one interrupt */
	ALLOWANCE_LONGEST_NS	= 100000, /* but for those behind one that took as long as this */
};

/* Of one CPU, over all sessions. All zero: there was no interrupt yet. */
struct allowance {
	__u64 ended;	/* the last handler */
	__u32 sum;	/* of what interrupts took, each one less a 128th of it: 128 times the mean */
	__u32 spent;	/* in this interrupt so far */
};

/*
 * Is what begins at @now another interrupt than the last handler's? That one's end is by another clock, which may be
 * ahead.
 */
static inline int allowance_is_new(const struct allowance *allowance, __u64 now)
{
	return (__s64)(now - allowance->ended) > ALLOWANCE_GAP_NS ||
	       allowance->spent > ALLOWANCE_LONGEST_NS;
}

/* How long the handlers of the interrupt that @now belongs to have taken so far, in ns. */
static inline __u32 allowance_spent(const struct allowance *allowance, __u64 now)
{
	return allowance_is_new(allowance, now) ? 0 : allowance->spent;
}

/*
 * For how many ns a handler that begins at @now may walk, where the mean may be @limit_ns, at most a
 * millisecond; 0: not at all, as it might lead beyond that.
 */
static inline __u32 allowance_left(const struct allowance *allowance, __u64 now, __u32 limit_ns)
{
	__u32 walk_ns = limit_ns * ALLOWANCE_WALK, spent = allowance_spent(allowance, now);

	if (spent >= walk_ns || allowance->sum + walk_ns - spent > limit_ns << ALLOWANCE_SHIFT)
		return 0;
	return walk_ns - spent;
}

/* The handler that began at @now took @ns, at most a millisecond. */
static inline void allowance_note(struct allowance *allowance, __u64 now, __u32 ns)
{
	if (allowance_is_new(allowance, now)) {
		allowance->sum -= allowance->sum >> ALLOWANCE_SHIFT;
		allowance->spent = 0;
	}
	allowance->sum += ns;
	allowance->spent += ns;
	allowance->ended = now + ns;
}

#endif /* STACKTAP_ALLOWANCE_H */
