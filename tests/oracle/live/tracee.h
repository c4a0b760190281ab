/* SPDX-License-Identifier: Apache-2.0 */
/* A thread that is stopped under ptrace: its registers and breakpoints on either architecture. */
#ifndef LIVE_TRACEE_H
#define LIVE_TRACEE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __aarch64__
#define TRACEE_MACHINE		UNWIND_MACHINE_AARCH64
#define TRACEE_ADDRESS_LIMIT	(1ULL << 48)
#else
#define TRACEE_MACHINE		UNWIND_MACHINE_X86_64
#define TRACEE_ADDRESS_LIMIT	0x7ffffffff000ULL
#endif

/* Is there code without call frame information, which libdwfl knows no way out of? */
#ifdef __aarch64__
#define TRACEE_CFI_HAS_GAPS 1
#else
#define TRACEE_CFI_HAS_GAPS 0
#endif

enum {
	TRACEE_REGISTERS = 33,
};

struct tracee {
	pid_t pid, tid;
};

struct tracee_regs {
	uint64_t all[TRACEE_REGISTERS];	/* by DWARF number */
	uint32_t count;
	uint64_t pc, sp, fp;
};

/* Of arm64. */
static inline bool tracee_is_call(uint32_t instruction)
{
	return (instruction & 0xfc000000) == 0x94000000 || (instruction & 0xfffffc1f) == 0xd63f0000;
}

static inline bool tracee_is_return(uint32_t instruction)
{
	return instruction == 0xd65f03c0;
}

/* All of them print what failed and exit. */
void tracee_die(const char *what) __attribute__((noreturn));
void tracee_regs(pid_t tid, struct tracee_regs *ret_regs);
/* Did the program's own breakpoint instruction stop it? Then it stands behind that afterwards. */
bool tracee_is_at_breakpoint(pid_t tid);
/* Let it run up to @address. */
void tracee_run_to(pid_t tid, uint64_t address);
/* Where the program itself begins, not its dynamic linker. */
uint64_t tracee_entry(pid_t pid);

#endif /* LIVE_TRACEE_H */
