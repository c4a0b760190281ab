// SPDX-License-Identifier: Apache-2.0
#include "base/draw.h"

#include <sys/random.h>

#include "base/clock.h"

static ssize_t kernel_source(void *bytes, size_t size)
{
	/* soon after boot it may have none yet, which nothing here is worth waiting for */
	return getrandom(bytes, size, GRND_NONBLOCK);
}

static uint32_t of_this_moment(void)
{
	const uint64_t moment = clock_read(CLOCK_REALTIME) ^ clock_monotonic() << 16 ^ (uint64_t)getpid() << 48;

	/* 2^64 by the golden ratio: the last bits of the clock, in which hosts differ, reach the first */
	return (uint32_t)(moment * UINT64_C(0x9e3779b97f4a7c15) >> 32);
}

uint32_t draw_from(draw_source source, uint32_t limit)
{
	uint32_t word;

	if (source(&word, sizeof(word)) != sizeof(word))
		word = of_this_moment();
	return (uint32_t)((uint64_t)word * limit >> 32);
}

uint32_t draw_below(uint32_t limit)
{
	return draw_from(kernel_source, limit);
}
