/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A moment by which something has to be over. One thread sets it, those below it look how much time is left, and any
 * thread may say that it is over now.
 */
#ifndef STACKTAP_BASE_DEADLINE_H
#define STACKTAP_BASE_DEADLINE_H

#include <stdatomic.h>

#include "base/clock.h"

#define DEADLINE_NONE UINT64_MAX

struct deadline {
	_Atomic uint64_t at;		/* CLOCK_MONOTONIC ns */
	_Atomic bool is_over;		/* whatever time it is */
};

static inline void deadline_set(struct deadline *deadline, uint64_t at)
{
	atomic_store_explicit(&deadline->at, at, memory_order_relaxed);
}

/* Of all these @deadline may be NULL: there is none. Has anybody said that it is over? */
static inline bool deadline_is_over(const struct deadline *deadline)
{
	return deadline && atomic_load_explicit(&deadline->is_over, memory_order_relaxed);
}

static inline uint64_t deadline_left_ns(const struct deadline *deadline)
{
	const uint64_t at = deadline ? atomic_load_explicit(&deadline->at, memory_order_relaxed) : DEADLINE_NONE;
	uint64_t now;

	if (deadline_is_over(deadline))
		return 0;
	if (at == DEADLINE_NONE)
		return DEADLINE_NONE;
	now = clock_monotonic();
	return at > now ? at - now : 0;
}

/* Milliseconds until then, @most at most. */
static inline uint32_t deadline_left_ms(const struct deadline *deadline, uint32_t most)
{
	return (uint32_t)min_of(deadline_left_ns(deadline) / NSEC_PER_MSEC, (uint64_t)most);
}

/* The same for what has to be started first, never 0; 0: there is no end. */
static inline uint32_t deadline_start_ms(const struct deadline *deadline)
{
	return deadline_left_ns(deadline) == DEADLINE_NONE ? 0 : max_of(deadline_left_ms(deadline, UINT32_MAX), 1U);
}

#endif /* STACKTAP_BASE_DEADLINE_H */
