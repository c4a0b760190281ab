// SPDX-License-Identifier: Apache-2.0
/*
 * A program that repeats itself exactly so many times a second: a() runs for the first 30 % of each
 * turn, b() for the rest, by the CPU's own counter, without a system call. What it prints is how long
 * it was in each, but for when it was interrupted.
 *
 * usage: lockstep HZ SECONDS
 */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define NOINLINE __attribute__((noinline, noclone))
#define SHARE_A 0.3
#define CALIBRATION_NS 1000000000LL
/* longer than a turn of the loops below ever is by itself */
#define GAP_NS 20000

static uint64_t gap;	/* in ticks */

static inline uint64_t ticks(void)
{
#if defined(__x86_64__)
	uint32_t low, high;

	__asm__ volatile("lfence; rdtsc" : "=a"(low), "=d"(high) : : "memory");
	return (uint64_t)high << 32 | low;
#elif defined(__aarch64__)
	uint64_t value;

	__asm__ volatile("isb; mrs %0, cntvct_el0" : "=r"(value) : : "memory");
	return value;
#else
#error "no counter known for this architecture"
#endif
}

/* Until then; returns the ticks that it had for itself. */
static inline __attribute__((always_inline)) uint64_t spin(uint64_t until)
{
	uint64_t before = ticks(), now, own = 0;

	while (before < until) {
		for (unsigned int i = 0; i < 50; i++)
			__asm__ volatile("");
		now = ticks();
		own += now - before < gap ? now - before : 0;
		before = now;
	}
	return own;
}

NOINLINE uint64_t a(uint64_t until);
NOINLINE uint64_t b(uint64_t until);

NOINLINE uint64_t a(uint64_t until)
{
	uint64_t own = spin(until);

	__asm__ volatile("nop");
	return own;
}

NOINLINE uint64_t b(uint64_t until)
{
	uint64_t own = spin(until);

	__asm__ volatile("nop; nop");
	return own;
}

static int64_t clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Of the clock that timers go by. */
static double ticks_per_ns(void)
{
	uint64_t before = ticks();
	int64_t start = clock_ns(), now;

	do
		now = clock_ns();
	while (now - start < CALIBRATION_NS);
	return (double)(ticks() - before) / (double)(now - start);
}

int main(int argc, char **argv)
{
	uint64_t own_a = 0, own_b = 0, start, end, turns;
	double hz, seconds, rate, turn;

	if (argc != 3)
		goto usage;
	hz = atof(argv[1]);
	seconds = atof(argv[2]);
	if (hz < 1 || hz > 10000 || seconds <= 0)
		goto usage;
	rate = ticks_per_ns();
	turn = 1e9 / hz * rate;
	gap = (uint64_t)(GAP_NS * rate);
	turns = (uint64_t)(seconds * hz);
	start = ticks();
	for (uint64_t i = 0; i < turns; i++) {
		/* each by itself, so that no error adds up */
		end = start + (uint64_t)((double)(i + 1) * turn);
		own_a += a(end - (uint64_t)((1 - SHARE_A) * turn));
		own_b += b(end);
	}
	printf("{\"a\": %" PRIu64 ", \"b\": %" PRIu64 "}\n", own_a, own_b);
	return 0;

usage:
	fprintf(stderr, "usage: lockstep HZ SECONDS\n");
	return 2;
}
