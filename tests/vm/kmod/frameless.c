// SPDX-License-Identifier: Apache-2.0
#include "frameless.h"

#include <elf.h>
#include <linux/stacktap.h>
#include <stacktap/unwind_table.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/*
 * A prologue in two steps, a body that spoils the frame pointer, and the way back. The labels are
 * where the rules change.
 */
#ifdef __x86_64__
#define MACHINE EM_X86_64
#define SHIFT 0
#define FUNCTION(name, body)							\
	".globl " name "\n.type " name ", @function\n" name ":\n"		\
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
	".globl frameless_end\nframeless_end:\n	ret\n.popsection\n");
#else
#define MACHINE EM_AARCH64
#define SHIFT 2
#define FUNCTION(name, body)							\
	".globl " name "\n.type " name ", %function\n" name ":\n"		\
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
	".globl frameless_end\nframeless_end:\n	ret\n.popsection\n");
#endif

void frameless_inner(unsigned long rounds);
void frameless_outer(unsigned long rounds);
extern const char frameless_inner_1[], frameless_inner_2[], frameless_inner_3[], frameless_inner_4[];
extern const char frameless_outer_1[], frameless_outer_2[], frameless_outer_3[], frameless_outer_4[];
extern const char frameless_end[];
extern const char __executable_start[], etext[];

enum {
	RULE_ENTRY,
	RULE_MOVED,		/* the stack pointer is where it stays */
	RULE_BODY,
	RULE_UNCOVERED,
	RULES,
};

#ifdef __x86_64__
#define RULE(size, ...) { .cfa = UNWIND_VALUE | UNWIND_BASE_SP, .cfa_offset = (size) + 8, \
	.ra = UNWIND_LOAD | UNWIND_BASE_CFA, .ra_offset = -8, __VA_ARGS__ }
static const struct unwind_rule rules[RULES] = {
	[RULE_ENTRY] = RULE(0),
	[RULE_MOVED] = RULE(40),
	[RULE_BODY] = RULE(40, .fp = UNWIND_LOAD | UNWIND_BASE_CFA, .fp_offset = -16),
};
#else
#define RULE(size, ...) { .cfa = UNWIND_VALUE | UNWIND_BASE_SP, .cfa_offset = (size), __VA_ARGS__ }
static const struct unwind_rule rules[RULES] = {
	[RULE_ENTRY] = RULE(0, .ra = UNWIND_VALUE | 30),
	[RULE_MOVED] = RULE(48, .ra = UNWIND_VALUE | 30),
	[RULE_BODY] = RULE(48, .ra = UNWIND_LOAD | UNWIND_BASE_CFA, .ra_offset = -24,
			   .fp = UNWIND_LOAD | UNWIND_BASE_CFA, .fp_offset = -32),
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
	return ip >= (uintptr_t)frameless_inner && ip < (uintptr_t)frameless_end;
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
	if (i < nr && frameless_is_leaf(ips[i]) && ips[i] >= (uintptr_t)frameless_outer)
		i++;
	else
		return false;
	return i < nr && is_in_c(ips[i]) && i + 2 < nr;
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
	struct unwind_table_header *header = table;

	header->checksum = unwind_table_checksum(table, size);
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
	struct unwind_table_header *header = (void *)data;
	uint16_t blocks[4], rows[16];
	struct unwind_rule *to;
	char *at;

	memset(data, 0, sizeof(data));
	header->magic = UNWIND_TABLE_MAGIC;
	header->version = UNWIND_TABLE_VERSION;
	header->machine = MACHINE;
	header->shift = SHIFT;
	header->start = (uintptr_t)frameless_inner & -(256ull << SHIFT);
	header->rules = RULES;
	put_row(header, blocks, rows, (const void *)frameless_inner, RULE_ENTRY);
	put_row(header, blocks, rows, frameless_inner_1, RULE_MOVED);
	put_row(header, blocks, rows, frameless_inner_2, RULE_BODY);
	put_row(header, blocks, rows, frameless_inner_3, RULE_MOVED);
	put_row(header, blocks, rows, frameless_inner_4, RULE_ENTRY);
	put_row(header, blocks, rows, (const void *)frameless_outer, RULE_ENTRY);
	put_row(header, blocks, rows, frameless_outer_1, RULE_MOVED);
	put_row(header, blocks, rows, frameless_outer_2, RULE_BODY);
	put_row(header, blocks, rows, frameless_outer_3, RULE_MOVED);
	put_row(header, blocks, rows, frameless_outer_4, RULE_ENTRY);
	put_row(header, blocks, rows, frameless_end, RULE_UNCOVERED);

	to = (void *)(header + 1);
	memcpy(to, rules, sizeof(rules));
	/* one span, which begins with row 0 */
	at = (char *)(to + RULES) + sizeof(uint32_t);
	memcpy(at, blocks, header->blocks * sizeof(*blocks));
	at += header->blocks * sizeof(*blocks);
	memcpy(at, rows, header->rows * sizeof(*rows));
	*ret_size = unwind_table_bytes(header);
	frameless_checksum(data, *ret_size);
	return data;
}

void *frameless_filler(uint32_t first, uint32_t blocks, size_t *ret_size)
{
	struct unwind_table_header header = {
		.magic = UNWIND_TABLE_MAGIC, .version = UNWIND_TABLE_VERSION, .machine = MACHINE,
		.shift = SHIFT, .start = (256ull << SHIFT) * first, .blocks = blocks,
		.rows = blocks << 8, .rules = 1,
	};
	uint32_t i, spans = unwind_table_spans(blocks), *span;
	uint16_t *word;
	char *data;

	*ret_size = unwind_table_bytes(&header);
	data = calloc(1, *ret_size);
	if (!data)
		abort();
	memcpy(data, &header, sizeof(header));
	memcpy(data + sizeof(header), rules, sizeof(rules[0]));
	span = (void *)(data + sizeof(header) + sizeof(rules[0]));
	for (i = 0; i < spans; i++)
		span[i] = i << 16;
	word = (void *)(span + spans);
	for (i = 0; i < blocks; i++)
		*word++ = i << 8;
	for (i = 0; i < header.rows; i++)
		*word++ = i & 0xff;
	frameless_checksum(data, *ret_size);
	return data;
}
