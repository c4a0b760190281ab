// SPDX-License-Identifier: Apache-2.0
/*
 * A program that repeats itself exactly so many times a second, by the CPU's own counter and without a
 * system call. In a turn each of six functions runs once; one of them is slowed down by INJECTED, for
 * a while each of the six. What it prints is how long it was in each of them, by the same counter, but for
 * when another program ran.
 *
 * It does so for each rate that it is given, then with turns twice and three times as long. The name of
 * the thread tells which: 99x2d is two periods of 1/99 s a turn, with d() slowed down.
 *
 * usage: lockstep HZ:SECONDS...
 */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#define NOINLINE __attribute__((noinline, noclone))
#define INJECTED 0.3
#define MULTIPLES 3
#define CALIBRATION_NS 1000000000LL
/* An interrupt takes less, and what it takes belongs to the function that it hits. */
#define GAP_NS 100000

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

/* No two have the same code. */
#define FUNCTION(name, nops)						\
	NOINLINE uint64_t name(uint64_t until);				\
	NOINLINE uint64_t name(uint64_t until)				\
	{								\
		uint64_t own = spin(until);				\
									\
		__asm__ volatile(".rept " #nops "\n\tnop\n\t.endr");	\
		return own;						\
	}

FUNCTION(a, 1)
FUNCTION(b, 2)
FUNCTION(c, 3)
FUNCTION(d, 4)
FUNCTION(e, 5)
FUNCTION(f, 6)

static uint64_t (*const functions[])(uint64_t until) = { a, b, c, d, e, f };

enum {
	FUNCTIONS = sizeof(functions) / sizeof(functions[0]),
};

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

/* @turns of @turn ticks each, with the function @injected slowed down. */
static void repeat(uint64_t turns, double turn, int injected, uint64_t *own)
{
	const double unit = turn / (FUNCTIONS + INJECTED);
	uint64_t start = ticks();

	for (uint64_t i = 0; i < turns; i++) {
		/* each by itself, so that no error adds up */
		double end = (double)i * turn;

		for (int k = 0; k < FUNCTIONS; k++) {
			end += k == injected ? (1 + INJECTED) * unit : unit;
			own[k] += functions[k](start + (uint64_t)end);
		}
	}
}

/* With each function slowed down in turn. Prints as much of a JSON object. */
static void injected_each(const char *rate, double seconds, int multiple, double ticks_per_s)
{
	const double hz = atof(rate) / multiple;
	char name[16];

	for (int injected = 0; injected < FUNCTIONS; injected++) {
		uint64_t own[FUNCTIONS] = { 0 };

		snprintf(name, sizeof(name), "%sx%d%c", rate, multiple, 'a' + injected);
		prctl(PR_SET_NAME, name);
		repeat((uint64_t)(seconds * hz), ticks_per_s / hz, injected, own);
		printf("\"%s\": [", name);
		for (int k = 0; k < FUNCTIONS; k++)
			printf("%" PRIu64 "%s", own[k], k + 1 < FUNCTIONS ? ", " : "],\n");
	}
}

int main(int argc, char **argv)
{
	double rate;
	char *colon;

	if (argc < 2)
		goto usage;
	rate = ticks_per_ns();
	gap = (uint64_t)(GAP_NS * rate);
	printf("{\n");
	for (int i = 1; i < argc; i++) {
		colon = strchr(argv[i], ':');
		if (!colon)
			goto usage;
		*colon = 0;
		for (int multiple = 1; multiple <= MULTIPLES; multiple++)
			injected_each(argv[i], atof(colon + 1), multiple, rate * 1e9);
	}
	/* JSON wants something behind the last comma */
	printf("\"ticks_per_ns\": %.9f}\n", rate);
	return 0;

usage:
	fprintf(stderr, "usage: lockstep HZ:SECONDS...\n");
	return 2;
}
