// SPDX-License-Identifier: Apache-2.0
#include "service/busy.h"

#include <inttypes.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/work.h"

/* Telling is all that can be done: nobody can interrupt a thread that waits for a file. */
void busy_tell(struct busy *busy, uint64_t busy_ns)
{
	const uint64_t seconds = busy_ns / NSEC_PER_SEC;
	bool is_busy = seconds >= BUSY_SECONDS;

	if (is_busy && !busy->has_said)
		log_warning("the thread that finds names has been blocked for %" PRIu64
			    " s by one program: a network or FUSE file system may not answer. "
			    "Nothing is exported until it does", seconds);
	else if (!is_busy && busy->has_said)
		log_info("the thread that finds names continues");
	busy->has_said = is_busy;
}

bool busy_makes_progress(struct busy *busy, uint64_t now)
{
	uint64_t taken = 0;
	const char *name = work_hung(now, &taken);

	if (name && !busy->has_told_hung)
		log_error("thread %s has made no progress for %" PRIu64 " s: the watchdog is not notified any more, "
			  "so the service manager restarts the daemon", name, (uint64_t)(taken / NSEC_PER_SEC));
	busy->has_told_hung = name;
	return !name;
}
