// SPDX-License-Identifier: Apache-2.0
/*
 * A frame pointer that lies: into the kernel's half, to itself, misaligned, beyond the stack, to
 * address 8, into a page that is not there. The module has to end the walk and say why.
 * usage: bad_frames KIND SECONDS, KIND one of kernel loop odd high null hole down
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "spin_with.h"

static uint64_t frame[2] __attribute__((aligned(16)));

int main(int argc, char **argv)
{
	const char *kind = argc == 3 ? argv[1] : "";
	time_t end = time(NULL) + (argc == 3 ? atoi(argv[2]) : 0);
	uint64_t fp;

	if (!strcmp(kind, "kernel")) {
		fp = 0xffff888000001000u;
	} else if (!strcmp(kind, "loop")) {
		fp = frame[0] = (uintptr_t)frame;
		frame[1] = (uintptr_t)main;
	} else if (!strcmp(kind, "odd")) {
		fp = (uintptr_t)frame | 3;
	} else if (!strcmp(kind, "high")) {
		/* the last words below the limit of user space and beyond it */
		fp = 0x00007ffffffffff8u;
	} else if (!strcmp(kind, "null")) {
		fp = 8;
	} else if (!strcmp(kind, "hole")) {
		fp = (uintptr_t)mmap(NULL, 1 << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	} else if (!strcmp(kind, "down")) {
		frame[0] = 0x1000;
		frame[1] = (uintptr_t)main;
		fp = (uintptr_t)frame;
	} else {
		fprintf(stderr, "usage: bad_frames kernel|loop|odd|high|null|hole|down SECONDS\n");
		return 2;
	}
	while (time(NULL) < end)
		spin_with(fp, 20000000);
	return 0;
}
