// SPDX-License-Identifier: Apache-2.0
/*
 * Seven calls that are known, main() -> first() -> ... -> seventh(), and the same in a second thread, which
 * has run() in place of main(). To be compiled against any C library. usage: seven MS
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "burn.h"

#define CALL(caller, callee)                                                                       \
	static NOINLINE uint64_t caller(uint64_t ms)                                               \
	{                                                                                          \
		uint64_t sum = callee(ms);                                                         \
												   \
		__asm__ volatile("" : "+r"(sum));                                                  \
		return sum + ms;                                                                   \
	}

static NOINLINE uint64_t seventh(uint64_t ms)
{
	BURN(ms);
	return ms;
}

CALL(sixth, seventh)
CALL(fifth, sixth)
CALL(fourth, fifth)
CALL(third, fourth)
CALL(second, third)
CALL(first, second)

static void *run(void *argument)
{
	first(*(uint64_t *)argument);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t thread;
	uint64_t ms;

	if (argc != 2) {
		fprintf(stderr, "usage: seven MS\n");
		return 2;
	}
	ms = (uint64_t)atoi(argv[1]);
	if (pthread_create(&thread, NULL, run, &ms))
		return 1;
	first(ms);
	return pthread_join(thread, NULL);
}
