// SPDX-License-Identifier: GPL-2.0-only
#include <linux/hash.h>
#include <linux/moduleparam.h>
#include <linux/random.h>

#include "pace.h"

static unsigned long long jitter_seed;
module_param(jitter_seed, ullong, 0644);
MODULE_PARM_DESC(jitter_seed,
		 "makes the jitter of periods the same in every run, for tests; 0: random");

bool st_pace_restart(struct stacktap_pace *pace, u64 period)
{
	pace->ended = 0;
	pace->period = 0;
	if (!pace->wanted || !jitter_takes(period))
		return false;
	pace->running = JITTER_WHOLE;
	pace->next = JITTER_WHOLE;
	pace->period = period;
	jitter_place(&pace->jitter, period, pace->jitter.offset);
	return true;
}

u64 st_pace_swallow(struct stacktap_pace *pace, u64 period, u64 ns)
{
	u64 count;

	pace->missed_ns += ns;
	count = pace->missed_ns / period;
	pace->missed_ns -= count * period;
	return count;
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
	first = jitter_next(&pace->jitter, period, &pace->running);
	/* what is left is counted up to 0 by software events, and down by others */
	local64_set(&event->hw.period_left, kind == PACE_SOFTWARE ? -first : first);
	if (kind == PACE_CLOCK)
		return;
	event->hw.sample_period = jitter_next(&pace->jitter, period, &pace->next);
	event->hw.last_period = event->hw.sample_period;
}

void st_pace_rearm(struct stacktap_pace *pace, struct perf_event *event, u64 period)
{
	pace->due = 0;
	if (!pace->period)
		return;
	event->hw.sample_period = period;
	event->hw.last_period = period;
	st_pace_restart(pace, period);
}
