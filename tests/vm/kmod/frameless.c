// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "frameless.h"

#include <elf.h>
#include <errno.h>
#include <linux/stacktap.h>
#include <signal.h>
#include <stacktap/unwind_table.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

/* all of them global: a linker may take a local one's entry in the GOT for its section's */
#define GLOBAL(name) ".globl " name ", " name "_1, " name "_2, " name "_3, " name "_4\n"

/*
 * A prologue in two steps, a body that spoils the frame pointer, and the way back. The labels are
 * where the rules change.
 */
#ifdef __x86_64__
#define MACHINE EM_X86_64
#define SHIFT 0
#define FUNCTION(name, body)							\
	GLOBAL(name) ".type " name ", @function\n" name ":\n"			\
	"	sub $40, %rsp\n" name "_1:\n"					\
	"	mov %rbp, 32(%rsp)\n" name "_2:\n"				\
	"	mov $1, %ebp\n"							\
	body									\
	"	mov 32(%rsp), %rbp\n" name "_3:\n"				\
	"	add $40, %rsp\n" name "_4:\n"					\
	"	ret\n"
__asm__(".pushsection .text.frameless, \"ax\", @progbits\n.balign 64\n"
	FUNCTION("frameless_inner", "1:	dec %rdi\n	jnz 1b\n")
	FUNCTION("frameless_outer", "	call frameless_inner\n")
	FUNCTION("frameless_handler", "	mov $20000, %edi\n	call frameless_inner\n")
	/* one byte before where a handler returns to, like every caller */
	".globl frameless_signal, frameless_restore\n"
	"frameless_signal:\n	nop\nframeless_restore:\n	mov $15, %eax\n	syscall\n"
	".globl frameless_end\nframeless_end:\n	ret\n.popsection\n");
#else
#define MACHINE EM_AARCH64
#define SHIFT 2
#define FUNCTION(name, body)							\
	GLOBAL(name) ".type " name ", %function\n" name ":\n"			\
	"	sub sp, sp, #48\n" name "_1:\n"					\
	"	stp x29, x30, [sp, #16]\n" name "_2:\n"				\
	"	mov x29, #1\n"							\
	body									\
	"	ldp x29, x30, [sp, #16]\n" name "_3:\n"				\
	"	add sp, sp, #48\n" name "_4:\n"					\
	"	ret\n"
__asm__(".pushsection .text.frameless, \"ax\", @progbits\n.balign 64\n"
	FUNCTION("frameless_inner", "1:	subs x0, x0, #1\n	b.ne 1b\n")
	FUNCTION("frameless_outer", "	bl frameless_inner\n")
	FUNCTION("frameless_handler", "	mov x0, #20000\n	bl frameless_inner\n")
	/* an instruction before where a handler returns to, like every caller */
	".globl frameless_signal, frameless_restore\n"
	"frameless_signal:\n	nop\nframeless_restore:\n	mov x8, #139\n	svc #0\n"
	".globl frameless_end\nframeless_end:\n	ret\n.popsection\n");
#endif

void frameless_inner(unsigned long rounds);
void frameless_outer(unsigned long rounds);
extern const char frameless_inner_1[], frameless_inner_2[], frameless_inner_3[], frameless_inner_4[];
extern const char frameless_outer_1[], frameless_outer_2[], frameless_outer_3[], frameless_outer_4[];
extern const char frameless_handler_1[], frameless_handler_2[], frameless_handler_3[],
	frameless_handler_4[];
extern const char frameless_signal[], frameless_restore[];
extern const char frameless_end[];
void frameless_handler(int number);
extern const char __executable_start[], etext[];

enum {
	RULE_ENTRY,
	RULE_MOVED,		/* the stack pointer is where it stays */
	RULE_BODY,
	RULE_UNCOVERED,
	RULE_SIGNAL,		/* all is where the kernel saved it */
	RULES,
};

#define SIGNAL(sp, pc, fp_at) { .cfa = UNWIND_LOAD | UNWIND_BASE_SP, .cfa_offset = (sp), \
	.ra = UNWIND_LOAD | UNWIND_BASE_SP, .ra_offset = (pc), \
	.fp = UNWIND_LOAD | UNWIND_BASE_SP, .fp_offset = (fp_at), .extra = UNWIND_EXTRA_SIGNAL }
#ifdef __x86_64__
#define RULE(size, ...) { .cfa = UNWIND_VALUE | UNWIND_BASE_SP, .cfa_offset = (size) + 8, \
	.ra = UNWIND_LOAD | UNWIND_BASE_CFA, .ra_offset = -8, __VA_ARGS__ }
static const struct unwind_rule rules[RULES] = {
	[RULE_ENTRY] = RULE(0),
	[RULE_MOVED] = RULE(40),
	[RULE_BODY] = RULE(40, .fp = UNWIND_LOAD | UNWIND_BASE_CFA, .fp_offset = -16),
	[RULE_SIGNAL] = SIGNAL(offsetof(ucontext_t, uc_mcontext.gregs[REG_RSP]),
			       offsetof(ucontext_t, uc_mcontext.gregs[REG_RIP]),
			       offsetof(ucontext_t, uc_mcontext.gregs[REG_RBP])),
};
#else
#define RULE(size, ...) { .cfa = UNWIND_VALUE | UNWIND_BASE_SP, .cfa_offset = (size), __VA_ARGS__ }
static const struct unwind_rule rules[RULES] = {
	[RULE_ENTRY] = RULE(0, .ra = UNWIND_VALUE | 30),
	[RULE_MOVED] = RULE(48, .ra = UNWIND_VALUE | 30),
	[RULE_BODY] = RULE(48, .ra = UNWIND_LOAD | UNWIND_BASE_CFA, .ra_offset = -24,
			   .fp = UNWIND_LOAD | UNWIND_BASE_CFA, .fp_offset = -32),
	/* siginfo comes first there */
	[RULE_SIGNAL] = SIGNAL(128 + offsetof(ucontext_t, uc_mcontext.sp),
			       128 + offsetof(ucontext_t, uc_mcontext.pc),
			       128 + offsetof(ucontext_t, uc_mcontext.regs[29])),
};
#endif

static __attribute__((noinline, section(".text.frameless_c"))) void frameless_c(unsigned long rounds)
{
	frameless_outer(rounds);
	__asm__ volatile("");
}

static __attribute__((noinline)) void frameless_c_end(void)
{
	__asm__ volatile("");
}

void frameless_burn(unsigned int ms)
{
	struct timespec now;
	uint64_t end, at = 0;

	frameless_c_end();
	clock_gettime(CLOCK_MONOTONIC, &now);
	end = now.tv_sec * 1000000000ull + now.tv_nsec + ms * 1000000ull;
	while (at < end) {
		frameless_c(200000);
		clock_gettime(CLOCK_MONOTONIC, &now);
		at = now.tv_sec * 1000000000ull + now.tv_nsec;
	}
}

bool frameless_is_leaf(uint64_t ip)
{
	return ip >= (uintptr_t)frameless_inner && ip < (uintptr_t)frameless_handler;
}

static bool is_in_c(uint64_t ip)
{
	uint64_t start = (uintptr_t)frameless_c;

	return ip > start && ip < start + 64;
}

bool frameless_is_whole(const uint64_t *ips, unsigned int nr)
{
	unsigned int i = 0;

	if (nr && ips[0] < (uintptr_t)frameless_outer)
		i++;
	/* inner's caller is behind the call */
	if (i < nr && ips[i] >= (uintptr_t)frameless_outer &&
	    ips[i] < (uintptr_t)frameless_handler)
		i++;
	else
		return false;
	return i < nr && is_in_c(ips[i]) && i + 2 < nr;
}

bool frameless_is_interrupted(const uint64_t *ips, unsigned int nr, unsigned int exact)
{
	if (!exact || exact >= nr || ips[exact - 1] < (uintptr_t)frameless_restore ||
	    ips[exact - 1] >= (uintptr_t)frameless_end)
		return false;
	return exact == 1 || (ips[exact - 2] >= (uintptr_t)frameless_handler &&
			      ips[exact - 2] < (uintptr_t)frameless_signal);
}

int frameless_interrupt(unsigned int every_ms)
{
	/* the kernel's, not libc's, which has a restorer of its own */
	struct {
		void (*handler)(int number);
		unsigned long flags;
		const void *restorer;
		uint64_t mask;
	} action = { frameless_handler, 0x04000000 | SA_RESTART, frameless_restore, 0 };
	struct itimerval timer = { 0 };

	if (syscall(SYS_rt_sigaction, SIGALRM, &action, NULL, sizeof(action.mask)))
		return -errno;
	timer.it_interval.tv_usec = every_ms * 1000;
	timer.it_value = timer.it_interval;
	return setitimer(ITIMER_REAL, &timer, NULL) ? -errno : 0;
}

void frameless_range(uint64_t *ret_start, uint64_t *ret_end)
{
	*ret_start = (uintptr_t)frameless_inner;
	*ret_end = (uintptr_t)frameless_end;
}

void frameless_text(uint64_t *ret_start, uint64_t *ret_end)
{
	*ret_start = (uintptr_t)__executable_start;
	*ret_end = (uintptr_t)etext;
}

void frameless_checksum(void *table, size_t size)
{
	uint64_t sum = unwind_table_checksum(table, size);

	memcpy((char *)table + offsetof(struct unwind_table_header, checksum), &sum, sizeof(sum));
}

static void put_row(struct unwind_table_header *header, uint16_t *blocks, uint16_t *rows,
		    const void *code, unsigned int rule)
{
	uint64_t unit = ((uintptr_t)code - header->start) >> SHIFT;
	uint32_t block = unit >> UNWIND_BLOCK_SHIFT;

	for (; header->blocks <= block; header->blocks++)
		blocks[header->blocks] = header->rows;
	rows[header->rows++] = (unit & 0xff) | rule << 8;
}

const void *frameless_table(size_t *ret_size)
{
	static uint64_t data[64];
	struct unwind_table_header header = {
		.magic = UNWIND_TABLE_MAGIC, .version = UNWIND_TABLE_VERSION, .machine = MACHINE,
		.shift = SHIFT, .start = (uintptr_t)frameless_inner & -(256ull << SHIFT),
		.rules = RULES,
	};
	struct unwind_span span = { .row = 0, .block = 0 };
	uint16_t blocks[4], rows[24];
	char *at = (char *)data;

	put_row(&header, blocks, rows, (const void *)frameless_inner, RULE_ENTRY);
	put_row(&header, blocks, rows, frameless_inner_1, RULE_MOVED);
	put_row(&header, blocks, rows, frameless_inner_2, RULE_BODY);
	put_row(&header, blocks, rows, frameless_inner_3, RULE_MOVED);
	put_row(&header, blocks, rows, frameless_inner_4, RULE_ENTRY);
	put_row(&header, blocks, rows, (const void *)frameless_outer, RULE_ENTRY);
	put_row(&header, blocks, rows, frameless_outer_1, RULE_MOVED);
	put_row(&header, blocks, rows, frameless_outer_2, RULE_BODY);
	put_row(&header, blocks, rows, frameless_outer_3, RULE_MOVED);
	put_row(&header, blocks, rows, frameless_outer_4, RULE_ENTRY);
	put_row(&header, blocks, rows, (const void *)frameless_handler, RULE_ENTRY);
	put_row(&header, blocks, rows, frameless_handler_1, RULE_MOVED);
	put_row(&header, blocks, rows, frameless_handler_2, RULE_BODY);
	put_row(&header, blocks, rows, frameless_handler_3, RULE_MOVED);
	put_row(&header, blocks, rows, frameless_handler_4, RULE_ENTRY);
	put_row(&header, blocks, rows, frameless_signal, RULE_SIGNAL);
	put_row(&header, blocks, rows, frameless_end, RULE_UNCOVERED);

	header.indexed = header.blocks;
	/* by memcpy() throughout, because the checksum reads all of it as 64-bit words */
	memset(data, 0, sizeof(data));
	memcpy(at, &header, sizeof(header));
	at += sizeof(header);
	memcpy(at, rules, sizeof(rules));
	at += sizeof(rules);
	memcpy(at, &span, sizeof(span));
	at += sizeof(span);
	memcpy(at, blocks, header.blocks * sizeof(*blocks));
	at += header.blocks * sizeof(*blocks);
	memcpy(at, rows, header.rows * sizeof(*rows));
	*ret_size = unwind_table_bytes(&header);
	frameless_checksum(data, *ret_size);
	return data;
}

void *frameless_filler(uint32_t first, uint32_t blocks, size_t *ret_size)
{
	struct unwind_table_header header = {
		.magic = UNWIND_TABLE_MAGIC, .version = UNWIND_TABLE_VERSION, .machine = MACHINE,
		.shift = SHIFT, .start = (256ull << SHIFT) * first, .blocks = blocks,
		.indexed = blocks, .rows = blocks << 8, .rules = 1,
	};
	struct unwind_span span;
	uint32_t i, spans = unwind_table_spans(blocks);
	char *data, *at;
	uint16_t word;

	*ret_size = unwind_table_bytes(&header);
	data = calloc(1, *ret_size);
	if (!data)
		abort();
	at = data;
	memcpy(at, &header, sizeof(header));
	at += sizeof(header);
	memcpy(at, rules, sizeof(rules[0]));
	at += sizeof(rules[0]);
	for (i = 0; i < spans; i++, at += sizeof(span)) {
		span = (struct unwind_span) { .row = i << 16, .block = i << UNWIND_BLOCK_SHIFT };
		memcpy(at, &span, sizeof(span));
	}
	for (i = 0; i < blocks; i++, at += sizeof(word)) {
		word = i << 8;
		memcpy(at, &word, sizeof(word));
	}
	for (i = 0; i < header.rows; i++, at += sizeof(word)) {
		word = i & 0xff;
		memcpy(at, &word, sizeof(word));
	}
	frameless_checksum(data, *ret_size);
	return data;
}
