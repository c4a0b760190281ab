// SPDX-License-Identifier: Apache-2.0
/*
 * Burns CPU in functions that are inlined into each other, for as many seconds as it is told. What names them is in other
 * files, once it is compiled with -gsplit-dwarf or dwz has been there.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "burn.h"

static volatile unsigned int sink;

static inline __attribute__((always_inline)) unsigned int innermost(unsigned int x)
{
	for (int i = 0; i < 2000; i++)
		x = x * 1664525u + 1013904223u;
	return x;
}

static inline __attribute__((always_inline)) unsigned int within(unsigned int x)
{
	unsigned int y = innermost(x);

	return y ^ innermost(y + 1);
}

NOINLINE void around(unsigned int x);
NOINLINE void around(unsigned int x)
{
	sink = within(x);
}

int main(int argc, char **argv)
{
	const uint64_t end = burn_now_ns() + (uint64_t)atoi(argc > 1 ? argv[1] : "1") * 1000000000u;

	for (unsigned int i = 0; burn_now_ns() < end; i++)
		around(i);
	return 0;
}
