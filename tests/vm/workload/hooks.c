// SPDX-License-Identifier: Apache-2.0
/*
 * main -> caller -> hooked -> leaf, over and over, for a uretprobe on hooked(); each has a frame record.
 * usage: hooks [SECONDS]; without, where hooked() is in the file
 */
#include <stdio.h>
#include <stdlib.h>

#include "burn.h"

NOINLINE uint64_t leaf(uint64_t x)
{
	BURN(1);
	return x + 1;
}

NOINLINE uint64_t hooked(uint64_t x)
{
	return leaf(x) + 1;
}

static NOINLINE uint64_t caller(uint64_t x)
{
	return hooked(x) + 1;
}

extern const char __executable_start[];

int main(int argc, char **argv)
{
	uint64_t end, x = 1;

	if (argc != 2) {
		/* its segment is mapped as it lies in the file */
		printf("%#lx\n", (unsigned long)hooked - (unsigned long)__executable_start);
		return 0;
	}
	end = burn_now_ns() + (uint64_t)atoi(argv[1]) * 1000000000u;
	do {
		x += caller(x);
	} while (burn_now_ns() < end);
	return x == 0;
}
