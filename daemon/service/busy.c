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
		log_warning("one program has kept the thread that finds names busy for %" PRIu64
			    " s: does a network or FUSE file system not answer? Nothing is "
			    "exported until it does", seconds);
	else if (!is_busy && busy->has_said)
		log_info("the thread that finds names goes on");
	busy->has_said = is_busy;
}

bool busy_makes_progress(struct busy *busy, uint64_t now)
{
	uint64_t taken = 0;
	const char *name = work_hung(now, &taken);

	if (name && !busy->has_told_hung)
		log_error("thread %s has been at one piece of work for %" PRIu64 " s: the watchdog is not served any more, "
			  "so that the service manager starts the daemon anew", name, (uint64_t)(taken / NSEC_PER_SEC));
	busy->has_told_hung = name;
	return !name;
}
