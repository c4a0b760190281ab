// SPDX-License-Identifier: GPL-2.0-only
#include <linux/math64.h>

#include "counting.h"
#include "events.h"
#include "share.h"

enum {
	/* turns take milliseconds */
	SHARE_MIN_NS = NSEC_PER_SEC,
	/* that its CPU must have been busy for since: reading a counter would wake it otherwise */
	SHARE_BUSY_NS = NSEC_PER_SEC / 5,
};

void st_share_look(struct stacktap_counter *counter, u64 busy_ns)
{
	struct stacktap_share *share = &counter->share;
	bool was_divided = counter_is_divided(counter), is_divided;
	u64 enabled, running;

	if (!was_divided && busy_ns - share->busy_ns < SHARE_BUSY_NS)
		return;
	st_counter_read(counter);
	enabled = counter->seen_enabled_ns;
	running = counter->seen_running_ns;
	if (enabled - share->enabled_ns < SHARE_MIN_NS)
		return;
	share->percent = div64_u64(100 * (running - share->running_ns),
				   enabled - share->enabled_ns);
	share->enabled_ns = enabled;
	share->running_ns = running;
	share->busy_ns = busy_ns;

	is_divided = counter_is_divided(counter);
	if (is_divided == was_divided)
		return;
	counter->multiplexed += is_divided;
	st_counting_announce(counter->cpu, counter);
	st_events_raise_counter(counter, is_divided ? STACKTAP_EVENT_MULTIPLEX :
						      STACKTAP_EVENT_MULTIPLEX_END, 0);
}
