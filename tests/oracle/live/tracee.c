// SPDX-License-Identifier: Apache-2.0
#include "tracee.h"

#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>

#include "base/macro.h"

#ifdef __aarch64__
typedef struct user_regs_struct registers;

#define BREAKPOINT	0xd4200000ULL	/* brk #0 */
#define BREAKPOINT_MASK	0xffffffffULL
#define BREAKPOINT_CODE	TRAP_BRKPT
#define BREAKPOINT_SKIP	4		/* it stops in front of it */
#define BREAKPOINT_BACK	0
#define pc_of(registers)	((registers)->pc)
#else
typedef struct user_regs_struct registers;

#define BREAKPOINT	0xccULL		/* int3 */
#define BREAKPOINT_MASK	0xffULL
#define BREAKPOINT_CODE	SI_KERNEL
#define BREAKPOINT_SKIP	0
#define BREAKPOINT_BACK	1		/* it stops behind it */
#define pc_of(registers)	((registers)->rip)
#endif

void tracee_die(const char *what)
{
	fprintf(stderr, "unwind_live: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void get(pid_t tid, registers *ret_registers)
{
	struct iovec iov = { .iov_base = ret_registers, .iov_len = sizeof(*ret_registers) };

	if (ptrace(PTRACE_GETREGSET, tid, NT_PRSTATUS, &iov) < 0)
		tracee_die("registers");
}

static void move(pid_t tid, int bytes)
{
	registers user;
	struct iovec iov = { .iov_base = &user, .iov_len = sizeof(user) };

	get(tid, &user);
	pc_of(&user) += (uint64_t)(int64_t)bytes;
	if (ptrace(PTRACE_SETREGSET, tid, NT_PRSTATUS, &iov) < 0)
		tracee_die("registers");
}

void tracee_regs(pid_t tid, struct tracee_regs *ret_regs)
{
	registers user;

	get(tid, &user);
#ifdef __aarch64__
	for (size_t i = 0; i < 31; i++)
		ret_regs->all[i] = user.regs[i];
	ret_regs->all[31] = user.sp;
	ret_regs->all[32] = user.pc;
	ret_regs->count = 33;
	ret_regs->sp = user.sp;
	ret_regs->fp = user.regs[29];
#else
	const uint64_t all[] = {
		user.rax, user.rdx, user.rcx, user.rbx, user.rsi, user.rdi, user.rbp, user.rsp,
		user.r8, user.r9, user.r10, user.r11, user.r12, user.r13, user.r14, user.r15,
		user.rip,
	};

	memcpy(ret_regs->all, all, sizeof(all));
	ret_regs->count = ARRAY_SIZE(all);
	ret_regs->sp = user.rsp;
	ret_regs->fp = user.rbp;
#endif
	ret_regs->pc = pc_of(&user);
}

bool tracee_is_at_breakpoint(pid_t tid)
{
	siginfo_t info;

	/* steps over instructions and system calls have other codes */
	if (ptrace(PTRACE_GETSIGINFO, tid, 0, &info) < 0 || info.si_signo != SIGTRAP ||
	    info.si_code != BREAKPOINT_CODE)
		return false;
	if (BREAKPOINT_SKIP)
		move(tid, BREAKPOINT_SKIP);
	return true;
}

static void poke(pid_t tid, uint64_t address, uint64_t word)
{
	if (ptrace(PTRACE_POKETEXT, tid, address, word) < 0)
		tracee_die("breakpoint");
}

void tracee_run_to(pid_t tid, uint64_t address)
{
	uint64_t word;
	int status;

	errno = 0;
	word = (uint64_t)ptrace(PTRACE_PEEKTEXT, tid, address, 0);
	if (errno)
		tracee_die("breakpoint");
	poke(tid, address, (word & ~BREAKPOINT_MASK) | BREAKPOINT);
	if (ptrace(PTRACE_CONT, tid, 0, 0) < 0 || waitpid(tid, &status, __WALL) < 0 ||
	    !WIFSTOPPED(status) || WSTOPSIG(status) != SIGTRAP)
		tracee_die("the program's entry");
	poke(tid, address, word);
	if (BREAKPOINT_BACK)
		move(tid, -BREAKPOINT_BACK);
}

uint64_t tracee_entry(pid_t pid)
{
	_cleanup_fclose_ FILE *auxv = NULL;
	Elf64_auxv_t entry;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/auxv", (int)pid);
	auxv = fopen(path, "re");
	while (auxv && fread(&entry, sizeof(entry), 1, auxv) == 1)
		if (entry.a_type == AT_ENTRY)
			return entry.a_un.a_val;
	tracee_die(path);
}
