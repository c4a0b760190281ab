// SPDX-License-Identifier: Apache-2.0
/* Recursion of a given depth, CPU burnt at the bottom. usage: deep DEPTH SECONDS */
#include <stdlib.h>
#include <stdio.h>

#include "burn.h"

static NOINLINE void bottom(int seconds)
{
	BURN(seconds * 1000);
}

static NOINLINE int descend(int depth, int seconds)
{
	int below = 0;

	if (depth > 0)
		below = descend(depth - 1, seconds);
	else
		bottom(seconds);
	/* something to do after the call, so that it stays a call */
	__asm__ volatile("" : "+r"(below));
	return below + 1;
}

int main(int argc, char **argv)
{
	if (argc != 3) {
		fprintf(stderr, "usage: deep DEPTH SECONDS\n");
		return 2;
	}
	return descend(atoi(argv[1]), atoi(argv[2])) < 0;
}
