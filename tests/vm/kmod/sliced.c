// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "sliced.h"

#include <alloca.h>
#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#ifdef __x86_64__
#include <asm/prctl.h>
#endif

enum {
	WIDE_BYTES = 2 * STACKTAP_MAX_SLICE_BYTES,
	WALLED_BYTES = 3000,		/* before the third page */
	BASE_BYTES = 3056,		/* a multiple of 16; what lies below the stack pointer adds to it */
	THREAD_BYTES = 2000,		/* below the thread pointer */
	BASE_DEPTH = 65536,		/* what the process that copies them uses is below them */
};

/* The value of register @n, by DWARF number. */
#define VALUE(n) (0x5a5a000000000000ull + (n) * 0x0000000100010101ull)

#ifdef __x86_64__
#define MACHINE EM_X86_64
#define COUNT 17
#define SP 7
#define SET(n, name) "	movabs $0x5a5a000000000000 + " #n " * 0x100010101, %" #name "\n"
__asm__(".pushsection .text.sliced, \"ax\", @progbits\n.balign 64\n"
	".globl sliced_spin, sliced_loop, sliced_end\n.type sliced_spin, @function\n"
	"sliced_spin:\n	mov %rdi, %rsp\n"
	SET(0, rax) SET(1, rdx) SET(2, rcx) SET(3, rbx) SET(4, rsi) SET(5, rdi) SET(6, rbp)
	SET(8, r8) SET(9, r9) SET(10, r10) SET(11, r11) SET(12, r12) SET(13, r13) SET(14, r14)
	SET(15, r15)
	"sliced_loop:\n	jmp sliced_loop\nsliced_end:\n	ud2\n.popsection\n");
#else
#define MACHINE EM_AARCH64
#define COUNT 33
#define SP 31
#define SET(n) "	movz x" #n ", #(" #n " * 0x101)\n"		\
	"	movk x" #n ", #" #n ", lsl #16\n"			\
	"	movk x" #n ", #" #n ", lsl #32\n"			\
	"	movk x" #n ", #0x5a5a, lsl #48\n"
__asm__(".pushsection .text.sliced, \"ax\", @progbits\n.balign 64\n"
	".globl sliced_spin, sliced_loop, sliced_end\n.type sliced_spin, %function\n"
	"sliced_spin:\n	mov sp, x0\n"
	SET(0) SET(1) SET(2) SET(3) SET(4) SET(5) SET(6) SET(7) SET(8) SET(9) SET(10) SET(11)
	SET(12) SET(13) SET(14) SET(15) SET(16) SET(17) SET(18) SET(19) SET(20) SET(21) SET(22)
	SET(23) SET(24) SET(25) SET(26) SET(27) SET(28) SET(29) SET(30)
	"sliced_loop:\n	b sliced_loop\nsliced_end:\n	nop\n.popsection\n");
#endif

_Noreturn void sliced_spin(uint64_t sp);
extern const char sliced_loop[], sliced_end[];

static const char *const names[SLICED_WHERES] = {
	"readable memory", "a crooked stack pointer", "a thread's stack", "a page that may not be read",
	"a page that is not there", "the stack's beginning", "nothing readable", "the kernel",
};

const char *sliced_name(enum sliced_where where)
{
	return names[where];
}

/* Where the main thread's stack began, for a fork of this process as well. */
static uint64_t stack_base(void)
{
	unsigned long long base = 0;
	char line[1024], *at;
	FILE *file = fopen("/proc/self/stat", "re");
	int field;

	if (!file || !fgets(line, sizeof(line), file))
		abort();
	fclose(file);
	/* behind the name, which may hold anything, the third field begins; this is the 28th */
	at = strrchr(line, ')');
	for (field = 2; at && field < 28; field++)
		at = strchr(at + 1, ' ');
	if (!at || sscanf(at, "%llu", &base) != 1)
		abort();
	return base;
}

/* @pages of which all but the last few are readable and hold numbers. */
static uint8_t *make_area(size_t bytes, size_t written, int last)
{
	size_t page = sysconf(_SC_PAGESIZE), i;
	uint8_t *area = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint32_t word;

	if (area == MAP_FAILED)
		abort();
	madvise(area, bytes, MADV_NOHUGEPAGE);
	for (i = 0; i < written; i += sizeof(word)) {
		word = i * 2654435761u + 1;
		memcpy(area + i, &word, sizeof(word));
	}
	if (last != (PROT_READ | PROT_WRITE))
		mprotect(area + bytes - page, page, last);
	return area;
}

/* Where the slice has to begin for a stack pointer that is aligned. */
static uint64_t address_of(uint64_t sp)
{
	uint64_t offset = sp % sysconf(_SC_PAGESIZE);

	return sp - (offset < STACKTAP_SLICE_BELOW ? offset : STACKTAP_SLICE_BELOW);
}

static _Noreturn __attribute__((noinline)) void spin_below_base(const struct sliced *sliced,
								uint8_t *copy)
{
	/* what calls from here on write is far below the bytes that are copied */
	volatile uint8_t *depth = alloca(BASE_DEPTH);

	depth[0] = 1;
	memcpy(copy, (const void *)(uintptr_t)sliced->address, sliced->bytes);
	/* the last that was written, and the parent waits for it */
	__atomic_store_n(copy + sliced->bytes, 1, __ATOMIC_RELEASE);
	sliced_spin(sliced->sp);
}

/* What is called from here on must not know of threads. */
static void set_thread_pointer(uint64_t pointer)
{
#ifdef __x86_64__
	syscall(SYS_arch_prctl, ARCH_SET_FS, pointer);
#else
	__asm__ volatile("msr tpidr_el0, %0" : : "r"(pointer));
#endif
}

static void wait_for(const uint8_t *flag)
{
	while (!__atomic_load_n(flag, __ATOMIC_ACQUIRE))
		usleep(1000);
}

int sliced_fork(enum sliced_where where, uint32_t slice_bytes, uint32_t most,
		struct sliced *ret_sliced)
{
	size_t page = sysconf(_SC_PAGESIZE), i;
	struct sliced sliced = { .end = STACKTAP_END_UNREADABLE };
	uint8_t *area = NULL, *copy = NULL;
	volatile uint8_t touched = 0;

	switch (where) {
	case SLICED_WIDE:
	case SLICED_ODD:
	case SLICED_THREAD:
		area = make_area(WIDE_BYTES, WIDE_BYTES, PROT_READ | PROT_WRITE);
		sliced.sp = (uintptr_t)area + 208;
		sliced.bytes = slice_bytes;
		if (where == SLICED_THREAD && slice_bytes < THREAD_BYTES && THREAD_BYTES <= most)
			sliced.bytes = THREAD_BYTES;
		sliced.end = STACKTAP_END_DEPTH;
		break;
	case SLICED_WALLED:
	case SLICED_ABSENT:
		area = make_area(3 * page, 2 * page, where == SLICED_WALLED ? PROT_NONE :
				 PROT_READ | PROT_WRITE);
		sliced.bytes = WALLED_BYTES;
		sliced.sp = (uintptr_t)area + 2 * page - WALLED_BYTES + STACKTAP_SLICE_BELOW;
		break;
	case SLICED_BASE:
		copy = mmap(NULL, BASE_BYTES + STACKTAP_SLICE_BELOW + 1, PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
		if (copy == MAP_FAILED)
			return -errno;
		sliced.sp = stack_base() - BASE_BYTES;
		sliced.bytes = sliced.sp - address_of(sliced.sp) + BASE_BYTES;
		sliced.end = STACKTAP_END_COMPLETE;
		if (sliced.bytes > slice_bytes && sliced.bytes > most) {
			sliced.bytes = slice_bytes;
			sliced.end = STACKTAP_END_DEPTH;
		}
		break;
	case SLICED_NOWHERE:
		area = make_area(page, 0, PROT_NONE);
		sliced.sp = (uintptr_t)area + 64;
		break;
	default:
		sliced.sp = -65536ull;
		break;
	}
	sliced.address = address_of(sliced.sp);
	sliced.content = copy ? copy : (const uint8_t *)(uintptr_t)sliced.address;
	if (where == SLICED_ODD) {
		sliced.sp += 5;
#ifdef __aarch64__
		sliced.sp |= 0x3cull << 56;
#endif
	}

	sliced.pid = fork();
	if (!sliced.pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (copy)
			spin_below_base(&sliced, copy);
		/* a fork's pages need not be there before they are used */
		for (i = 0; i < sliced.bytes; i += 512)
			touched += sliced.content[i];
		if (sliced.bytes)
			touched += sliced.content[sliced.bytes - 1];
		if (where == SLICED_THREAD)
			set_thread_pointer(sliced.address + THREAD_BYTES);
		sliced_spin(sliced.sp);
	}
	if (sliced.pid > 0 && copy)
		wait_for(copy + sliced.bytes);
	*ret_sliced = sliced;
	return sliced.pid < 0 ? -errno : 0;
}

void sliced_touch_stack(void)
{
	const volatile uint8_t *base = (const uint8_t *)(uintptr_t)stack_base(), *at;
	volatile uint8_t touched = 0;

	for (at = &touched; at < base; at += 512)
		touched += *at;
	touched += base[-1];
}

bool sliced_is_spinning(const struct sample_view *view)
{
	return view->nr_user && view->user_ips[0] >= (uintptr_t)sliced_loop &&
	       view->user_ips[0] < (uintptr_t)sliced_end;
}

const char *sliced_fault(const struct sliced *sliced, const struct sample_view *view)
{
	const struct stacktap_regs *regs = view->regs;
	unsigned int i;

	if (regs->arch != MACHINE || regs->count != COUNT)
		return "registers of another machine";
	if (regs->pc != view->user_ips[0] || regs->regs[COUNT - 1] != regs->pc)
		return "pc";
	if (regs->regs[SP] != sliced->sp)
		return "stack pointer";
	for (i = 0; i < COUNT - 1; i++)
		if (i != SP && regs->regs[i] != VALUE(i))
			return "a register";
	if (view->slice_address != sliced->address)
		return "the slice's address";
	if (view->slice_end == STACKTAP_END_TIME ? view->slice_bytes > sliced->bytes :
	    view->slice_bytes != sliced->bytes)
		return "the slice's size";
	if (view->slice_end != STACKTAP_END_TIME && view->slice_end != sliced->end)
		return "the slice's end";
	if (memcmp(view->slice, sliced->content, view->slice_bytes))
		return "the slice's bytes";
	return NULL;
}
