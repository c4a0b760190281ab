/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef STACKTAP_KMOD_PACE_H
#define STACKTAP_KMOD_PACE_H

#include <linux/hrtimer.h>
#include <linux/perf_event.h>
#include <stacktap/jitter.h>

#include "compat/compat.h"

/* by what perf has the periods of an event kept */
enum pace_kind {
	PACE_COUNTER,		/* a PMU's */
	PACE_SOFTWARE,
	PACE_CLOCK,
};

/*
 * The periods of a counter, drawn one by one. It belongs to the overflow handler while the event
 * counts. An NMI in the midst of that costs the exactness of a sum, nothing else.
 */
struct stacktap_pace {
	struct jitter jitter;
	u64 period;		/* what it draws for; 0: nothing */
	/* of clocks */
	u64 due;		/* when the timer expires if it goes on undisturbed; 0: not known */
	u64 due_period;		/* the counter's when that was noted */
	u64 missed_ns;		/* that late timers swallowed and no count has, below a period */
	bool wanted;
	u16 ended;		/* share of @period that this overflow ended, 0: no jitter */
	u16 running;		/* of that which the counter is in */
	u16 next;		/* of that which it will be in after the next overflow */
};

/* @event, which has not been enabled yet, begins with a drawn period if @wanted. */
void st_pace_begin(struct stacktap_pace *pace, struct perf_event *event, u64 period,
		   enum pace_kind kind, bool wanted, unsigned int source);
/* Once disabled @event begins anew with a whole @period. */
void st_pace_rearm(struct stacktap_pace *pace, struct perf_event *event, u64 period);
/* perf has loaded whole periods, this one and the next. Returns whether there is something to draw. */
bool st_pace_restart(struct stacktap_pace *pace, u64 period);

/* @ns passed for which no sample stands: how many times @period that makes, what was left before included. */
u64 st_pace_swallow(struct stacktap_pace *pace, u64 period, u64 ns);

/* Less is no lateness: the least that perf sets a timer to, and what setting up an event beside costs. */
#define PACE_LATE_NS	10000ULL

/*
 * At every overflow of a clock, first: how many periods passed without a sample since the one before.
 * perf sets a late timer anew from when it expired, by as many intervals as it takes to be in the
 * future. Where perf leaves out what runs in a mode, it does not tell us of an expiry, and only how
 * late this one is at @now shows what its next interval swallows.
 */
static __always_inline u64 pace_missed(struct stacktap_pace *pace, struct perf_event *event,
				       u64 period, u64 now)
{
	u64 expired = ktime_to_ns(hrtimer_get_expires(&event->hw.hrtimer));
	u64 interval;

	if (unlikely(event->attr.exclude_user || event->attr.exclude_kernel)) {
		if (unlikely(event->hw.interrupts == COMPAT_MAX_INTERRUPTS))
			return 0;
		interval = max(event->hw.sample_period, PACE_LATE_NS);
		/* the two clocks may differ by a little, to below 0 */
		if (likely((s64)(now - expired) < (s64)interval))
			return 0;
		return st_pace_swallow(pace, period, (now - expired) / interval * interval);
	}
	if (likely(expired <= pace->due + PACE_LATE_NS) || !pace->due || pace->due_period != period)
		return 0;
	return st_pace_swallow(pace, period, expired - pace->due);
}

/* Last, when the interval to come is known, @goes_on unless perf stops the timer. */
static __always_inline void pace_note_due(struct stacktap_pace *pace, struct perf_event *event,
					  u64 period, bool goes_on)
{
	pace->due = goes_on ? ktime_to_ns(hrtimer_get_expires(&event->hw.hrtimer)) +
			      event->hw.sample_period : 0;
	pace->due_period = period;
}

static __always_inline void pace_clock(struct stacktap_pace *pace, struct perf_event *event)
{
	struct jitter *jitter = &pace->jitter;
	u64 expired = ktime_to_ns(hrtimer_get_expires(&event->hw.hrtimer)), began, next;

	if (unlikely(expired != pace->due)) {
		/* it was late, or went on without us: our periods did not move meanwhile */
		began = pace->due - jitter->offset;
		jitter_place(jitter, pace->period, expired - began);
	}
	next = jitter_next(jitter, pace->period, &pace->running);
	event->hw.sample_period = next;
}

/*
 * At every overflow. A PMU's driver has loaded the next period before it calls us, so what we set
 * comes after that one; by last_period software events are the same. A clock's timer is set after us,
 * from when it expired.
 */
static __always_inline void pace_overflow(struct stacktap_pace *pace, struct perf_event *event,
					  u64 period, bool is_clock)
{
	u64 next;

	if (unlikely(pace->period != period) && !st_pace_restart(pace, period))
		return;
	/* frequency mode: the period is the kernel's, and one of 0 would have it divide by that */
	if (!period)
		return;
	pace->ended = pace->running;
	if (is_clock) {
		pace_clock(pace, event);
		return;
	}
	pace->running = pace->next;
	next = jitter_next(&pace->jitter, pace->period, &pace->next);
	event->hw.sample_period = next;
	event->hw.last_period = next;
}

#endif /* STACKTAP_KMOD_PACE_H */
