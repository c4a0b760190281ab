/* SPDX-License-Identifier: Apache-2.0 */
/* Clocks in nanoseconds. */
#ifndef STACKTAP_BASE_CLOCK_H
#define STACKTAP_BASE_CLOCK_H

#include <time.h>

#include "base/macro.h"

#define NSEC_PER_SEC 1000000000ULL
#define NSEC_PER_MSEC 1000000ULL
#define NSEC_PER_USEC 1000ULL

static inline uint64_t clock_read(clockid_t id)
{
	struct timespec now;

	clock_gettime(id, &now);
	return (uint64_t)now.tv_sec * NSEC_PER_SEC + (uint64_t)now.tv_nsec;
}

static inline uint64_t clock_monotonic(void)
{
	return clock_read(CLOCK_MONOTONIC);
}

/* What to add to CLOCK_MONOTONIC to get Unix time. */
static inline int64_t clock_realtime_offset(void)
{
	uint64_t best = UINT64_MAX;
	int64_t offset = 0;

	/* the tightest of three brackets: a preemption in between would shift the result */
	for (int i = 0; i < 3; i++) {
		uint64_t before = clock_monotonic();
		uint64_t real = clock_read(CLOCK_REALTIME);
		uint64_t after = clock_monotonic();

		if (after - before < best) {
			best = after - before;
			offset = (int64_t)(real - before - (after - before) / 2);
		}
	}
	return offset;
}

#endif /* STACKTAP_BASE_CLOCK_H */
