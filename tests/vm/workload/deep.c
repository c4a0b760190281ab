// SPDX-License-Identifier: Apache-2.0
/*
 * Recursion of a given depth, CPU burnt at the bottom; with a third argument in a second thread, while
 * the first one sleeps. usage: deep DEPTH SECONDS [thread]
 */
#include <pthread.h>
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

static void *run(void *arguments)
{
	char **argv = arguments;

	descend(atoi(argv[1]), atoi(argv[2]));
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t thread;

	if (argc != 3 && argc != 4) {
		fprintf(stderr, "usage: deep DEPTH SECONDS [thread]\n");
		return 2;
	}
	if (argc == 4)
		return pthread_create(&thread, NULL, run, argv) || pthread_join(thread, NULL);
	return descend(atoi(argv[1]), atoi(argv[2])) < 0;
}
