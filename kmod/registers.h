/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef STACKTAP_KMOD_REGISTERS_H
#define STACKTAP_KMOD_REGISTERS_H

#include <linux/elf.h>
#include <linux/ptrace.h>
#include <linux/sched.h>
#include <linux/types.h>
#ifdef CONFIG_ARM64
#include <linux/uaccess.h>
#include <asm/pointer_auth.h>
#include <asm/sysreg.h>
#endif

/* User registers by DWARF number, up to the stack pointer and the pc. */

#ifdef CONFIG_X86_64
enum {
	REGISTERS_COUNT = 17,
	REGISTERS_ROOM = REGISTERS_COUNT,
	REGISTERS_MACHINE = EM_X86_64,
};

static inline void registers_copy(const struct pt_regs *regs, u64 *array)
{
	array[0] = regs->ax;
	array[1] = regs->dx;
	array[2] = regs->cx;
	array[3] = regs->bx;
	array[4] = regs->si;
	array[5] = regs->di;
	array[6] = regs->bp;
	array[7] = regs->sp;
	array[8] = regs->r8;
	array[9] = regs->r9;
	array[10] = regs->r10;
	array[11] = regs->r11;
	array[12] = regs->r12;
	array[13] = regs->r13;
	array[14] = regs->r14;
	array[15] = regs->r15;
	array[16] = regs->ip;
}

/* As an array; @array has REGISTERS_ROOM for it where they do not lie in one already. */
static inline const u64 *registers_array(const struct pt_regs *regs, u64 *array)
{
	registers_copy(regs, array);
	return array;
}

static inline u64 registers_pac_mask(void)
{
	return 0;
}

/* current's; what it set without a system call since it was last scheduled in is not seen */
static inline u64 registers_thread_pointer(void)
{
	return current->thread.fsbase;
}
#else
enum {
	REGISTERS_COUNT = 33,
	REGISTERS_ROOM = 1,	/* none, but what is not used is zeroed all the same */
	REGISTERS_MACHINE = EM_AARCH64,
};

/* x0 to x30, sp and pc already lie in the order of their DWARF numbers */
static_assert(offsetof(struct pt_regs, sp) == 31 * sizeof(u64));
static_assert(offsetof(struct pt_regs, pc) == 32 * sizeof(u64));

static inline const u64 *registers_array(const struct pt_regs *regs, u64 *array)
{
	return regs->regs;
}

static inline void registers_copy(const struct pt_regs *regs, u64 *array)
{
	memcpy(array, regs, REGISTERS_COUNT * sizeof(*array));
}

static inline u64 registers_pac_mask(void)
{
	return ptrauth_user_pac_mask();
}

static inline u64 registers_thread_pointer(void)
{
	return untagged_addr(read_sysreg(tpidr_el0));
}
#endif

#endif /* STACKTAP_KMOD_REGISTERS_H */
