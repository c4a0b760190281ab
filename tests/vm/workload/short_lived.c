// SPDX-License-Identifier: Apache-2.0
/*
 * Template of a short-lived program. The test writes copies in which the digits of the function's
 * name and the build-id are other ones. It has no C library, whose start-up, not its own 50 ms, would
 * be what a slow machine sees most of.
 */
#include <sys/syscall.h>
#include <time.h>

void own_function_00000(void);
void _start(void);

static inline long call(long number, long first, void *second)
{
#ifdef __x86_64__
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "0"(number), "D"(first), "S"(second)
			 : "rcx", "r11", "memory");
	return result;
#else
	register long x8 __asm__("x8") = number;
	register long x0 __asm__("x0") = first;
	register void *x1 __asm__("x1") = second;

	__asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1) : "memory");
	return x0;
#endif
}

__attribute__((noinline)) void own_function_00000(void)
{
	struct timespec now = { 0 };
	volatile unsigned long sum = 0;

	do {
		for (int i = 0; i < 30000; i++)
			sum += (unsigned long)i;
		call(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, &now);
	} while (now.tv_nsec < 50000000);
}

void _start(void)
{
	own_function_00000();
	call(SYS_exit, 0, NULL);
	__builtin_unreachable();
}
