// SPDX-License-Identifier: Apache-2.0
/*
 * 64 functions of different cost behind 8 others, reached over 1 to 4 calls of one more, always in
 * the same random order: for two profilers to find the same shares. To be compiled without frame
 * pointers.
 * usage: functions SECONDS
 */
#include <stdio.h>
#include <stdlib.h>

#include "burn.h"

#define KEEP(value) __asm__ volatile("" : "+r"(value))

/* prologues, epilogues and calls are to be a good part of it, so turns are few */
#define LEAF(g, i)                                                                                 \
	static NOINLINE uint64_t leaf_##g##_##i(uint64_t x)                                        \
	{                                                                                          \
		for (int turns = 4 + g * 5 + i * 3; turns; turns--)                                \
			x = (x ^ x >> 7) * 6364136223846793005u + i;                               \
		return x;                                                                          \
	}

#define GROUP(g)                                                                                   \
	LEAF(g, 0) LEAF(g, 1) LEAF(g, 2) LEAF(g, 3) LEAF(g, 4) LEAF(g, 5) LEAF(g, 6) LEAF(g, 7)    \
	static NOINLINE uint64_t group_##g(uint64_t x)                                             \
	{                                                                                          \
		uint64_t a = x * 3, b = x ^ 5, c = x + 7;                                          \
												   \
		KEEP(a);                                                                           \
		KEEP(b);                                                                           \
		KEEP(c);                                                                           \
		switch (x >> 40 & 7) {                                                             \
		case 0: x = leaf_##g##_0(x); break;                                                \
		case 1: x = leaf_##g##_1(x); break;                                                \
		case 2: x = leaf_##g##_2(x); break;                                                \
		case 3: x = leaf_##g##_3(x); break;                                                \
		case 4: x = leaf_##g##_4(x); break;                                                \
		case 5: x = leaf_##g##_5(x); break;                                                \
		case 6: x = leaf_##g##_6(x); break;                                                \
		default: x = leaf_##g##_7(x); break;                                               \
		}                                                                                  \
		KEEP(x);                                                                           \
		return x + a + b + c;                                                              \
	}

GROUP(0) GROUP(1) GROUP(2) GROUP(3) GROUP(4) GROUP(5) GROUP(6) GROUP(7)

static uint64_t (*const groups[])(uint64_t) = {
	group_0, group_1, group_2, group_3, group_4, group_5, group_6, group_7,
};

static NOINLINE uint64_t down(uint64_t depth, uint64_t x)
{
	uint64_t result = depth ? down(depth - 1, x) : groups[x >> 50 & 7](x);

	KEEP(result);
	return result + depth;
}

int main(int argc, char **argv)
{
	uint64_t end, x = 1;

	if (argc != 2) {
		fprintf(stderr, "usage: functions SECONDS\n");
		return 2;
	}
	end = burn_now_ns() + (uint64_t)atoi(argv[1]) * 1000000000u;
	do {
		for (int i = 0; i < 100000; i++) {
			x = x * 6364136223846793005u + 1442695040888963407u;
			KEEP(x);
			x ^= down(x >> 60 & 3, x) & 1;
		}
	} while (burn_now_ns() < end);
	return x == 0;
}
