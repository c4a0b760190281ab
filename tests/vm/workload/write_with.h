/* SPDX-License-Identifier: Apache-2.0 */
/* A system call with a frame pointer that lies, which user mode has for two instructions only. */
#ifndef WRITE_WITH_H
#define WRITE_WITH_H

#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>

static __attribute__((noinline, noclone)) long write_with(uint64_t fp, int fd, const void *data,
							  size_t size)
{
#ifdef __x86_64__
	long written;

	__asm__ volatile("xchg %%rbp, %[fp]\n\t"
			 "syscall\n\t"
			 "xchg %%rbp, %[fp]"
			 : "=a"(written), [fp] "+b"(fp)
			 : "0"((long)SYS_write), "D"((long)fd), "S"(data), "d"(size)
			 : "rcx", "r11", "memory", "cc");
	return written;
#else
	register long x0 __asm__("x0") = fd;
	register const void *x1 __asm__("x1") = data;
	register size_t x2 __asm__("x2") = size;
	register long x8 __asm__("x8") = SYS_write;

	__asm__ volatile("mov x9, x29\n\t"
			 "mov x29, %[fp]\n\t"
			 "svc #0\n\t"
			 "mov x29, x9"
			 : "+r"(x0)
			 : [fp] "r"(fp), "r"(x1), "r"(x2), "r"(x8)
			 : "x9", "memory", "cc");
	return x0;
#endif
}

#endif /* WRITE_WITH_H */
