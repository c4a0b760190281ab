/* SPDX-License-Identifier: Apache-2.0 */
/* When a receiver that did not accept a payload is asked again: after pauses that get longer, or when it says. */
#ifndef STACKTAP_EXPORT_BACKOFF_H
#define STACKTAP_EXPORT_BACKOFF_H

#include "base/macro.h"

struct backoff {
	unsigned int min_ms, max_ms;	/* of a pause, which is twice as long as the one before */
	unsigned int pause_ms;		/* the last one, 0: the last try went well */
	bool is_told_to_wait;		/* until next_try, by the receiver */
	uint64_t next_try;		/* CLOCK_MONOTONIC ns; 0: at once */
};

/* After a try that failed. @retry_after_ms: as the receiver says, -1: it does not. */
void backoff_begin(struct backoff *backoff, int64_t retry_after_ms);
void backoff_end(struct backoff *backoff);	/* it took one */

#endif /* STACKTAP_EXPORT_BACKOFF_H */
