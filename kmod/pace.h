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

/* stacktap_pace::period where nothing is drawn, and ::whole where something is: no event has such a period */
#define PACE_WHOLE U64_MAX

/*
 * The periods of a counter, drawn one by one. It belongs to the overflow handler while the event
 * counts. An NMI in the midst of that costs the exactness of a sum, nothing else.
 */
struct stacktap_pace {
	struct jitter jitter;	/* its share: of the last period that was drawn */
	u64 period;		/* what it draws for, or PACE_WHOLE */
	u64 whole;		/* for what it draws nothing, or PACE_WHOLE */
	/* of clocks */
	u64 due;		/* when the timer expires if it goes on undisturbed; 0: not known */
	u64 due_period;		/* the counter's when that was noted */
	u64 missed_ns;		/* that late timers swallowed and no count has, below a period */
	bool wanted;
	u16 ended;		/* share of @period that this overflow ended, 0: no jitter */
	u16 running;		/* of that which the counter is in; of a clock that is the jitter's */
};

/* @event, which has not been enabled yet, begins with a drawn period if @wanted. */
void st_pace_begin(struct stacktap_pace *pace, struct perf_event *event, u64 period,
		   enum pace_kind kind, bool wanted, unsigned int source);
/* Once disabled @event begins anew with a whole @period. */
void st_pace_rearm(struct stacktap_pace *pace, struct perf_event *event, u64 period);
/* perf has loaded whole periods, this one and the next. Returns whether there is something to draw. */
bool st_pace_restart(struct stacktap_pace *pace, u64 period);

/*
 * At an overflow of a clock where pace_is_due() is false: how many periods passed without a sample since the
 * one before? Periods are drawn from where the timer expired.
 */
u64 st_pace_late(struct stacktap_pace *pace, const struct perf_event *event, u64 period, u64 now);

/*
 * Did a clock's timer expire when it was due? False as well where perf leaves out what runs in a mode, as it
 * does not tell of each expiry there.
 */
static __always_inline bool pace_is_due(const struct stacktap_pace *pace,
					const struct perf_event *event)
{
	return likely(ktime_to_ns(hrtimer_get_expires(&event->hw.hrtimer)) == pace->due) &&
	       likely(!event->attr.exclude_user && !event->attr.exclude_kernel);
}

static __always_inline bool pace_draws(struct stacktap_pace *pace, u64 period)
{
	return likely(pace->period == period) ||
	       (pace->whole != period && st_pace_restart(pace, period));
}

/* At every overflow of a clock, whose timer is set after us, from when it expired. */
static __always_inline void pace_clock(struct stacktap_pace *pace, struct perf_event *event,
				       u64 period)
{
	if (!pace_draws(pace, period))
		return;
	pace->ended = pace->jitter.share;
	event->hw.sample_period = jitter_next(&pace->jitter, period);
}

/* Last, when the interval to come is known, @goes_on unless perf stops the timer. */
static __always_inline void pace_note_due(struct stacktap_pace *pace, struct perf_event *event,
					  u64 period, bool goes_on)
{
	pace->due = goes_on ? ktime_to_ns(hrtimer_get_expires(&event->hw.hrtimer)) +
			      event->hw.sample_period : 0;
	pace->due_period = period;
}

/*
 * At every other overflow. A PMU's driver has loaded the next period before it calls us, so what we set
 * comes after that one; by last_period software events are the same.
 */
static __always_inline void pace_count(struct stacktap_pace *pace, struct perf_event *event,
				       u64 period)
{
	u64 next;

	if (!pace_draws(pace, period))
		return;
	pace->ended = pace->running;
	pace->running = pace->jitter.share;
	next = jitter_next(&pace->jitter, period);
	event->hw.sample_period = next;
	event->hw.last_period = next;
}

#endif /* STACKTAP_KMOD_PACE_H */
