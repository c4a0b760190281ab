/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Burning CPU in one's own function. BURN(ms) expands in place, so that the function that says it is
 * the leaf of nearly every sample: the clock is asked once per some 100,000 instructions.
 */
#ifndef BURN_H
#define BURN_H

#include <stdint.h>
#include <time.h>

static inline uint64_t burn_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

#define BURN(ms)                                                                                   \
	do {                                                                                       \
		uint64_t end_ = burn_now_ns() + (uint64_t)(ms) * 1000000u;                         \
		volatile uint64_t sum_ = 0;                                                        \
												   \
		do {                                                                               \
			for (int i_ = 0; i_ < 30000; i_++)                                         \
				sum_ += (uint64_t)i_;                                              \
		} while (burn_now_ns() < end_);                                                    \
	} while (0)

#define NOINLINE __attribute__((noinline, noclone))

#endif /* BURN_H */
