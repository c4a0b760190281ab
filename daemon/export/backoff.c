// SPDX-License-Identifier: Apache-2.0
#include "export/backoff.h"

#include "base/clock.h"
#include "base/draw.h"

/* Half of the pause is certain, half random, so that a fleet does not come back in step. */
void backoff_begin(struct backoff *backoff, int64_t retry_after_ms)
{
	uint64_t pause_ms;

	backoff->is_told_to_wait = retry_after_ms > 0;
	/* a receiver that says "at once" gets the usual pause: that it is in trouble is certain */
	if (retry_after_ms > 0) {
		pause_ms = (uint64_t)retry_after_ms;
	} else {
		backoff->pause_ms = backoff->pause_ms ? backoff->pause_ms * 2 : backoff->min_ms;
		backoff->pause_ms = min_of(backoff->pause_ms, backoff->max_ms);
		pause_ms = backoff->pause_ms / 2;
		pause_ms += draw_below((uint32_t)(backoff->pause_ms - pause_ms + 1));
	}
	backoff->next_try = clock_monotonic() + pause_ms * NSEC_PER_MSEC;
}

void backoff_end(struct backoff *backoff)
{
	backoff->pause_ms = 0;
	backoff->next_try = 0;
}
