// SPDX-License-Identifier: Apache-2.0
/*
 * Kernel time with known frames above it: main -> read_zeros -> enter_kernel, which makes the read()
 * system call itself, so that no libc frame without a frame pointer stands between.
 * usage: zero_reader SECONDS
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>

#include "burn.h"

/* large: an emulator that is preempted as it leaves a system call samples the first user instruction behind it */
static char buffer[16 << 20];

/* gcc leaves the frame out of a function on x86 that neither calls nor spills; see known_split.c */
static NOINLINE void frame_keep(void)
{
	__asm__ volatile("");
}

static NOINLINE long enter_kernel(int fd)
{
	long result;

	frame_keep();
#ifdef __x86_64__
	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "0"((long)SYS_read), "D"((long)fd), "S"(buffer), "d"(sizeof(buffer))
			 : "rcx", "r11", "memory");
#else
	register long x8 __asm__("x8") = SYS_read;
	register long x0 __asm__("x0") = fd;
	register char *x1 __asm__("x1") = buffer;
	register long x2 __asm__("x2") = sizeof(buffer);

	__asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2) : "memory");
	result = x0;
#endif
	return result;
}

static NOINLINE long read_zeros(int fd, int times)
{
	long sum = 0;

	while (times--)
		sum += enter_kernel(fd);
	return sum;
}

int main(int argc, char **argv)
{
	int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	time_t end = time(NULL) + (argc > 1 ? atoi(argv[1]) : 5);
	long sum = 0;

	if (fd < 0)
		return 1;
	while (time(NULL) < end)
		sum += read_zeros(fd, 4);
	printf("%ld\n", sum);
	return 0;
}
