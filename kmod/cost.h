/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef STACKTAP_KMOD_COST_H
#define STACKTAP_KMOD_COST_H

#include <linux/bitops.h>
#include <linux/build_bug.h>
#include <linux/ktime.h>
#include <linux/minmax.h>
#include <linux/stacktap.h>
#include <linux/timex.h>
#include <asm/local64.h>

#include "count.h"

/*
 * How long something of ours took, each time. 224 bytes; moved on one CPU only, from NMI too, and
 * read from anywhere.
 */
struct stacktap_cost {
	local64_t ns;
	local64_t times[STACKTAP_TIME_BUCKETS];
};

enum {
	COST_SHIFT = 20,
	COST_FIRST = (1 << STACKTAP_TIME_SHIFT) - 1,
	COST_UNKNOWN_NS = 25000,
	/*
	 * No stretch of ours is longer on a real CPU: its deadline is 100 us. Where the counter says so, the
	 * virtual CPU was taken away meanwhile, or moved to a host whose counter stands elsewhere.
	 */
	COST_LONGEST_NS = 1000000,
};

/* so that 32 bits of nanoseconds always find theirs */
static_assert(STACKTAP_TIME_BUCKETS == 32 - (STACKTAP_TIME_SHIFT - 1));

/* of a tick of the CPU's own counter, times 1 << COST_SHIFT, while its rate is known */
extern u32 st_cost_tick_ns;
/* ticks that are COST_LONGEST_NS; 0 where the rate is unknown, or no longer what it was */
extern u32 st_cost_longest_ticks;

/*
 * The CPU's own counter, because the kernel's clock would cost several times as much. Half of it is
 * enough: it goes round in a second at the soonest, and only a virtual CPU that was taken away is longer
 * in an interrupt.
 */
static __always_inline u32 cost_ticks(void)
{
#ifdef CONFIG_X86_64
	u32 low;

	/* rdtsc() computes the upper half, wanted or not */
	asm volatile("rdtsc" : "=a" (low) : : "rdx");
	return low;
#else
	return get_cycles();
#endif
}

static __always_inline bool cost_is_known(void)
{
	return READ_ONCE(st_cost_longest_ticks);
}

/* Since @began; where the counter's rate is unknown, what it will hardly have been. */
static __always_inline u32 cost_ns(u32 began)
{
	if (unlikely(!cost_is_known()))
		return COST_UNKNOWN_NS;
	/* a slow counter's 32 bits are more ns than that */
	return min_t(u64, (u64)(cost_ticks() - began) * st_cost_tick_ns >> COST_SHIFT, U32_MAX);
}

static __always_inline unsigned int cost_bucket(u32 ns)
{
	return __fls(ns | COST_FIRST) - (STACKTAP_TIME_SHIFT - 1);
}

/*
 * Returns what it added: of one stretch no more than can be ours. How often the counter said more is in the
 * counts all the same.
 */
static __always_inline u32 cost_add(struct stacktap_cost *cost, u32 began)
{
	u32 said = cost_ns(began), ns = min_t(u32, said, COST_LONGEST_NS);

	local64_add(ns, &cost->ns);
	local64_inc(&cost->times[cost_bucket(said)]);
	return ns;
}

/* The same, of what no NMI adds to but one that hit user mode; IRQs are off. */
static __always_inline u32 cost_add_alone(struct stacktap_cost *cost, u32 began)
{
	u32 said = cost_ns(began), ns = min_t(u32, said, COST_LONGEST_NS);

	count_add(ns, &cost->ns);
	count_add(1, &cost->times[cost_bucket(said)]);
	return ns;
}

/* A moment by both clocks of this CPU. Until the next look IRQs are off, and the counter tells the time. */
struct cost_moment {
	u64 now;		/* ktime_get_mono_fast_ns() */
	u32 ticks;
};

static __always_inline struct cost_moment cost_moment(void)
{
	struct cost_moment moment;

	/* in this order, so that what cost_later() says is not before a look at the clock in between */
	moment.ticks = cost_ticks();
	moment.now = ktime_get_mono_fast_ns();
	return moment;
}

/*
 * The present, never before @moment, since when IRQs have been off. Where the counter has gone
 * further than it can have meanwhile, or back, the kernel's clock is asked, which knows of such
 * things: a time to come would keep the ceiling, which remembers the latest, from earning anything
 * until then.
 */
static __always_inline struct cost_moment cost_later(struct cost_moment moment)
{
	struct cost_moment later = { .ticks = cost_ticks() };
	u32 ticks = later.ticks - moment.ticks;

	if (unlikely(ticks >= READ_ONCE(st_cost_longest_ticks)))
		/* this clock may step back by a little */
		later.now = max(ktime_get_mono_fast_ns(), moment.now);
	else
		later.now = moment.now + ((u64)ticks * st_cost_tick_ns >> COST_SHIFT);
	return later;
}

/*
 * Have at most @ns passed since then, as far as the counter alone tells? It calls nothing on x86, for a
 * section in which user memory may be read.
 */
static __always_inline bool cost_is_within(struct cost_moment moment, u32 ns)
{
	u32 ticks = cost_ticks() - moment.ticks;

	return ticks < READ_ONCE(st_cost_longest_ticks) &&
	       (u64)ticks * st_cost_tick_ns >> COST_SHIFT <= ns;
}

/* In ns. */
static __always_inline u64 cost_since(struct cost_moment moment)
{
	return cost_later(moment).now - moment.now;
}

void st_cost_init(void);
/* From time to time: does the counter still go as fast as the kernel said? */
void st_cost_look(void);

#endif /* STACKTAP_KMOD_COST_H */
