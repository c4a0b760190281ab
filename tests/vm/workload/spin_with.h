/* SPDX-License-Identifier: Apache-2.0 */
/* Spinning with a frame pointer that lies. */
#ifndef SPIN_WITH_H
#define SPIN_WITH_H

#include <stdint.h>

/* Two instructions a turn. */
static __attribute__((noinline, noclone)) void spin_with(uint64_t fp, uint64_t turns)
{
#ifdef __x86_64__
	__asm__ volatile("mov %%rbp, %%r8\n\t"
			 "mov %[fp], %%rbp\n"
			 "1:\n\t"
			 "dec %[turns]\n\t"
			 "jnz 1b\n\t"
			 "mov %%r8, %%rbp"
			 : [turns] "+r"(turns)
			 : [fp] "r"(fp)
			 : "r8", "memory", "cc");
#else
	__asm__ volatile("mov x9, x29\n\t"
			 "mov x29, %[fp]\n"
			 "1:\n\t"
			 "subs %[turns], %[turns], #1\n\t"
			 "b.ne 1b\n\t"
			 "mov x29, x9"
			 : [turns] "+r"(turns)
			 : [fp] "r"(fp)
			 : "x9", "memory", "cc");
#endif
}

#endif /* SPIN_WITH_H */
