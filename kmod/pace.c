// SPDX-License-Identifier: GPL-2.0-only
#include <linux/hash.h>
#include <linux/moduleparam.h>
#include <linux/random.h>

#include "pace.h"

static unsigned long long jitter_seed;
module_param(jitter_seed, ullong, 0644);
MODULE_PARM_DESC(jitter_seed,
		 "makes the jitter of periods the same in every run, for tests; 0: random");

enum {
	/* less is no lateness: what setting up an event beside takes, and perf's least interval */
	PACE_LATE_NS = 10000,
};

bool st_pace_restart(struct stacktap_pace *pace, u64 period)
{
	pace->ended = 0;
	/* in frequency mode @period is 0, and perf would divide by one of 0 that is drawn */
	if (!pace->wanted || !jitter_takes(period)) {
		pace->period = PACE_WHOLE;
		pace->whole = period;
		return false;
	}
	pace->running = JITTER_WHOLE;
	pace->period = period;
	pace->whole = PACE_WHOLE;
	jitter_place(&pace->jitter, period, pace->jitter.offset);
	pace->jitter.share = JITTER_WHOLE;
	return true;
}

static u64 pace_swallow(struct stacktap_pace *pace, u64 period, u64 ns)
{
	u64 count;

	pace->missed_ns += ns;
	count = pace->missed_ns / period;
	pace->missed_ns -= count * period;
	return count;
}

/*
 * perf sets a late timer anew from when it expired, by as many intervals as it takes to be in the
 * future. Where perf leaves out what runs in a mode, it does not tell us of an expiry, and only how
 * late this one is at @now shows what its next interval swallows. Whenever an event comes or goes perf
 * stops the others of the CPU and starts them again, with what was left of their intervals: that moves an
 * expiry by something else than whole intervals, and our periods with it, as the event does not run meanwhile.
 */
u64 st_pace_late(struct stacktap_pace *pace, const struct perf_event *event, u64 period, u64 now)
{
	u64 expired = ktime_to_ns(hrtimer_get_expires(&event->hw.hrtimer));
	/* perf's least, and that of timers, which are as coarse as the tick without high resolution */
	u64 least = max_t(u64, PACE_LATE_NS, hrtimer_resolution);
	u64 interval = max_t(u64, event->hw.sample_period, least);
	bool leaves_out = event->attr.exclude_user || event->attr.exclude_kernel;
	struct jitter *jitter = &pace->jitter;
	u64 due = pace->due, ns = expired - due, offset = expired - (due - jitter->offset);
	bool restarted = !leaves_out && (ns + event->hw.sample_period) % interval;

	/* what each interval, told of or not, lacked of the least is missed, and moved our periods */
	if (leaves_out && ns)
		offset = jitter->offset + ns / interval * event->hw.sample_period;
	/* it was late, or went on without us: our periods did not move meanwhile. The first is where it was drawn */
	if (due && ns && !restarted && pace->period != PACE_WHOLE)
		jitter_place(jitter, pace->period, offset);
	if (leaves_out) {
		if (event->hw.interrupts == COMPAT_MAX_INTERRUPTS)
			return 0;
		/* each expiry, told or not, came later than the interval by what that lacks of the least */
		ns = interval - event->hw.sample_period;
		/* the two clocks may differ by a little, to below 0 */
		if ((s64)(now - expired) >= (s64)interval)
			ns += (now - expired) / interval * interval;
		return ns ? pace_swallow(pace, period, ns) : 0;
	}
	if (expired <= due + PACE_LATE_NS || restarted || !due || pace->due_period != period)
		return 0;
	/* of drawn ones those without a sample: one that is late may still be in its own */
	return pace->period == period ? offset / period : pace_swallow(pace, period, ns);
}

void st_pace_begin(struct stacktap_pace *pace, struct perf_event *event, u64 period,
		   enum pace_kind kind, bool wanted, unsigned int source)
{
	u64 first, seed = READ_ONCE(jitter_seed);

	memset(pace, 0, sizeof(*pace));
	pace->wanted = wanted;
	/* also where nothing is drawn: a change of period may come */
	seed = seed ? seed + (u64)event->cpu * GOLDEN_RATIO_64 + source : get_random_u64();
	jitter_begin(&pace->jitter, max_t(u64, period, 1), seed);
	if (!st_pace_restart(pace, period))
		return;
	first = jitter_next(&pace->jitter, period);
	/* what is left is counted up to 0 by software events, and down by others */
	local64_set(&event->hw.period_left, kind == PACE_SOFTWARE ? -first : first);
	if (kind == PACE_CLOCK)
		return;
	pace->running = pace->jitter.share;
	event->hw.sample_period = jitter_next(&pace->jitter, period);
	event->hw.last_period = event->hw.sample_period;
}

void st_pace_rearm(struct stacktap_pace *pace, struct perf_event *event, u64 period)
{
	pace->due = 0;
	if (pace->period == PACE_WHOLE)
		return;
	event->hw.sample_period = period;
	event->hw.last_period = period;
	st_pace_restart(pace, period);
}
