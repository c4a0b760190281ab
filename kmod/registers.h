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
	REGISTERS_MACHINE = EM_X86_64,
};

/* Register @number, which is below REGISTERS_COUNT under speculation as well. */
static inline u64 registers_get(const struct pt_regs *regs, u32 number)
{
#define REGISTERS_PLACE(name) (offsetof(struct pt_regs, name) / sizeof(unsigned long))
	static const u8 places[REGISTERS_COUNT] = {
		REGISTERS_PLACE(ax), REGISTERS_PLACE(dx), REGISTERS_PLACE(cx), REGISTERS_PLACE(bx),
		REGISTERS_PLACE(si), REGISTERS_PLACE(di), REGISTERS_PLACE(bp), REGISTERS_PLACE(sp),
		REGISTERS_PLACE(r8), REGISTERS_PLACE(r9), REGISTERS_PLACE(r10),
		REGISTERS_PLACE(r11), REGISTERS_PLACE(r12), REGISTERS_PLACE(r13),
		REGISTERS_PLACE(r14), REGISTERS_PLACE(r15), REGISTERS_PLACE(ip),
	};
#undef REGISTERS_PLACE

	return ((const unsigned long *)regs)[places[number]];
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
	REGISTERS_MACHINE = EM_AARCH64,
};

/* x0 to x30, sp and pc already lie in the order of their DWARF numbers */
static_assert(offsetof(struct pt_regs, sp) == 31 * sizeof(u64));
static_assert(offsetof(struct pt_regs, pc) == 32 * sizeof(u64));

/* Register @number, which is below REGISTERS_COUNT under speculation as well. */
static inline u64 registers_get(const struct pt_regs *regs, u32 number)
{
	return ((const u64 *)regs)[number];
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

static inline void registers_copy(const struct pt_regs *regs, u64 *array)
{
	u32 i;

	for (i = 0; i < REGISTERS_COUNT; i++)
		array[i] = registers_get(regs, i);
}

#endif /* STACKTAP_KMOD_REGISTERS_H */
