// SPDX-License-Identifier: Apache-2.0
/*
 * A known chain of calls in a program without frame pointers: main -> outer -> middle -> variable ->
 * inner. To be compiled with -O2 -fomit-frame-pointer, so that the frame pointer's register holds
 * whatever the compiler needs it for, but in variable(), whose frame's size is known at run time only.
 *
 * usage: no_frame_pointers burn MS | fork COUNT MS | exec COUNT MS
 * fork and exec burn MS in each of COUNT children, one after the other.
 */
#include <alloca.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "burn.h"

#define KEEP(value) __asm__ volatile("" : "+r"(value))

uint64_t inner(uint64_t ms, uint64_t seed);
uint64_t variable(uint64_t ms, uint64_t size);
uint64_t middle(uint64_t ms, uint64_t a, uint64_t b, uint64_t c);
uint64_t outer(uint64_t ms);

NOINLINE uint64_t inner(uint64_t ms, uint64_t seed)
{
	BURN(ms);
	KEEP(seed);
	return seed + 1;
}

NOINLINE uint64_t variable(uint64_t ms, uint64_t size)
{
	char *room = alloca(size);
	uint64_t result;

	memset(room, (int)size, size);
	result = inner(ms, (uint64_t)room[size / 2]);
	return result + (uint64_t)room[size - 1];
}

/* So much to keep over the call that the frame pointer's register is taken as well. */
NOINLINE uint64_t middle(uint64_t ms, uint64_t a, uint64_t b, uint64_t c)
{
	volatile uint64_t large[64] = { a, b, c };
	uint64_t d = a * 3, e = b * 5, f = c * 7, g = a ^ b, sum;

	KEEP(d);
	KEEP(e);
	KEEP(f);
	KEEP(g);
	sum = variable(ms, 100 + (a & 63));
	KEEP(sum);
	return sum + a + b + c + d + e + f + g + large[sum & 63];
}

NOINLINE uint64_t outer(uint64_t ms)
{
	uint64_t sum = 0;

	/* short calls: prologues and epilogues are sampled as well */
	for (uint64_t done = 0; done < ms; done += 10) {
		sum += middle(10, done, sum, ms);
		KEEP(sum);
	}
	return sum;
}

static NOINLINE int child(char **argv, int is_exec)
{
	pid_t pid = fork();
	int status = 1;

	if (pid < 0)
		return 1;
	if (!pid) {
		if (is_exec)
			execl(argv[0], argv[0], "burn", argv[3], (char *)NULL);
		else
			outer((uint64_t)atoi(argv[3]));
		_exit(is_exec);
	}
	return waitpid(pid, &status, 0) != pid || status;
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "burn"))
		return outer((uint64_t)atoi(argv[2])) == 0;
	if (argc != 4) {
		fprintf(stderr, "usage: no_frame_pointers burn MS | fork COUNT MS | exec COUNT MS\n");
		return 2;
	}
	for (int i = 0; i < atoi(argv[2]); i++)
		if (child(argv, !strcmp(argv[1], "exec")))
			return 1;
	return 0;
}
