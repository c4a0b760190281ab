// SPDX-License-Identifier: Apache-2.0
/*
 * A thread deep in recursion whose callers' pages are dropped, as if they had been swapped out: its
 * stack is a file in memory, which keeps what they hold. The leaf touches none of them again.
 *
 * usage: absent_stack MILLISECONDS	of CPU time, after the pages were dropped
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline, noclone))

enum {
	STACK_BYTES = 4 << 20,
	DEPTH = 60,
	FRAME_BYTES = 16384,
	KEPT_BYTES = 128 << 10,		/* at either end: the leaf's frame, and the thread's own data */
};

static char *stack;
static long cpu_ms;

static long used_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static NOINLINE void bottom(void)
{
	uintptr_t page = (uintptr_t)getpagesize(), here = (uintptr_t)__builtin_frame_address(0);
	char *from = (char *)((here + KEPT_BYTES) & ~(page - 1));
	char *to = stack + STACK_BYTES - KEPT_BYTES;
	long end = used_ms() + cpu_ms;

	if (madvise(from, (size_t)(to - from), MADV_DONTNEED))
		abort();
	while (used_ms() < end)
		for (volatile int i = 0; i < 10000; i++)
			;
}

static NOINLINE int descend(int depth)
{
	volatile char frame[FRAME_BYTES];
	int below = 0;

	frame[0] = (char)depth;
	if (depth > 1)
		below = descend(depth - 1);
	else
		bottom();
	return below + frame[0];
}

static void *run(void *unused)
{
	(void)unused;
	descend(DEPTH);
	return NULL;
}

int main(int argc, char **argv)
{
	int fd = memfd_create("stack", MFD_CLOEXEC);
	pthread_attr_t attr;
	pthread_t thread;

	if (argc != 2) {
		fprintf(stderr, "usage: absent_stack MILLISECONDS\n");
		return 2;
	}
	cpu_ms = atol(argv[1]);
	if (fd < 0 || ftruncate(fd, STACK_BYTES))
		return 1;
	stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (stack == MAP_FAILED || pthread_attr_init(&attr) ||
	    pthread_attr_setstack(&attr, stack, STACK_BYTES) ||
	    pthread_create(&thread, &attr, run, NULL))
		return 1;
	pthread_join(thread, NULL);
	return 0;
}
