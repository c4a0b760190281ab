// SPDX-License-Identifier: Apache-2.0
/*
 * A fixed amount of work at user stacks of known depth, for counting instructions. Every run executes
 * the same instructions: depths come from a generator with a fixed seed, and all work has equal
 * length, so that a sampler sees the mean of the depths. Under QEMU's icount one nanosecond is one
 * instruction, and what is printed is the cost of everything that ran meanwhile.
 *
 * WITHOUT_FRAME_POINTERS it is compiled for tables, which see all of the C library's frames.
 *
 * usage: workload_depth UNITS [stop]	prints the nanoseconds that it took
 *
 * With "stop" it stops itself (SIGSTOP) before the first and after the last unit, for a sampler that
 * wants to see nothing else.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#if defined(__aarch64__) || defined(WITHOUT_FRAME_POINTERS)
#define LIBC_FRAMES 3	/* of start-up code: all of it, or all of it with frame pointers */
#else
#define LIBC_FRAMES 1
#endif

enum {
	MEAN_DEPTH = 38 - 3 - LIBC_FRAMES, /* of descend(); main(), unit() and bottom() are there too */
	SPREAD = 12,
	UNIT_LOOPS = 20000,
	WARM_UP_UNITS = 50,
};

#define NOINLINE __attribute__((noinline, noclone))

static NOINLINE void bottom(void)
{
	for (int i = 0; i < UNIT_LOOPS; i++)
		__asm__ volatile("" : : "r"(i));
}

static NOINLINE int descend(int depth)
{
	/* frames of a size that real functions have */
	volatile uint64_t locals[8];
	int below = 0;

	locals[depth & 7] = (uint64_t)depth;
	if (depth > 1)
		below = descend(depth - 1);
	else
		bottom();
	return below + (int)locals[depth & 7];
}

static NOINLINE void unit(uint32_t *seed)
{
	*seed = *seed * 1664525u + 1013904223u;
	descend(MEAN_DEPTH - SPREAD + (int)((*seed >> 16) % (2 * SPREAD + 1)));
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

int main(int argc, char **argv)
{
	uint32_t seed = 1;
	uint64_t start, end;
	long units;

	if (argc < 2) {
		fprintf(stderr, "usage: workload_depth UNITS [stop]\n");
		return 2;
	}
	units = atol(argv[1]);
	/* every page of stack and text is there before the clock starts */
	for (int i = 0; i < WARM_UP_UNITS; i++)
		unit(&seed);
	if (argc > 2)
		raise(SIGSTOP);
	start = now_ns();
	for (long i = 0; i < units; i++)
		unit(&seed);
	end = now_ns();
	if (argc > 2)
		raise(SIGSTOP);
	printf("%" PRIu64 "\n", end - start);
	return 0;
}
