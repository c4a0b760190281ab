/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a host samples right now: not while its kill switch, a file, is there, and with a duty cycle only in
 * some minutes, which are others on other hosts.
 */
#ifndef STACKTAP_SERVICE_PAUSE_H
#define STACKTAP_SERVICE_PAUSE_H

#include "base/macro.h"

enum pause_reason {
	PAUSE_NONE,
	PAUSE_KILL_SWITCH,
	PAUSE_UNKNOWN,		/* whether the kill switch is there: it may be */
	PAUSE_DUTY_CYCLE,
};

struct pause_stats {
	uint64_t pauses;
	uint64_t paused_ns;	/* in all */
	int error;		/* errno, why the kill switch is unknown; 0: it is not */
};

struct pause {
	enum pause_reason reason;	/* of now */
	uint64_t host;			/* the same number on each run; hosts differ */
	uint64_t since;			/* CLOCK_MONOTONIC ns; 0: it samples */
	struct pause_stats stats;
};

void pause_init(struct pause *pause);
/* @kill_switch NULL: none. */
enum pause_reason pause_wanted(struct pause *pause, const char *kill_switch, uint64_t duty_percent,
			       uint64_t unix_seconds);
/* What came of that at @now, CLOCK_MONOTONIC ns. */
void pause_set(struct pause *pause, enum pause_reason reason, uint64_t now);
struct pause_stats pause_stats(const struct pause *pause, uint64_t now);
const char *pause_text(enum pause_reason reason);	/* NULL: it samples */

/* Of 100 minutes in a row these are exactly @percent, as far apart as they can be. */
bool pause_samples_minute(uint64_t minute, uint64_t percent, uint64_t host);

#endif /* STACKTAP_SERVICE_PAUSE_H */
