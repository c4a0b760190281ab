/* SPDX-License-Identifier: Apache-2.0 */
/* Code, a stack made by hand and the walk on it, for the tests of walks. */
#ifndef UNIT_WALKS_H
#define UNIT_WALKS_H

#include "unit.h"

#include <string.h>

#include "unwind/builder.h"

enum { WORDS = 16384 };

#define STACK 0x7ffc00000000ULL
#define TEXT 0x555500000000ULL
#define JIT 0x700000000000ULL
#define LIMIT 0x7ffffffff000ULL
#define PAC 0x007f000000000000ULL

struct memory {
	uint64_t words[WORDS];
	uint8_t text[0x1000], jit[0x1000];	/* code, at TEXT and JIT */
	size_t reads;
	uint64_t missing;	/* an address that is not present */
};

static inline int unwind_read_word(void *ctx, uint64_t address, __u64 *ret_value)
{
	struct memory *memory = ctx;

	memory->reads++;
	if (address - TEXT < sizeof(memory->text) || address - JIT < sizeof(memory->jit)) {
		memcpy(ret_value, address - JIT < sizeof(memory->jit) ?
				  &memory->jit[address - JIT] : &memory->text[address - TEXT], 8);
		return address == memory->missing ? -1 : 0;
	}
	if (address == memory->missing || address < STACK || address - STACK >= 8 * WORDS)
		return -1;
	*ret_value = memory->words[(address - STACK) / 8];
	return 0;
}

#include <stacktap/unwind.h>

/* Code by its offset in the object; each function is 0x100 bytes. */
enum {
	F_LEAF = 0x000,		/* cfa=sp+8 */
	F_FRAME = 0x100,	/* cfa=sp+32, fp at cfa-16 */
	F_FP = 0x200,		/* cfa=fp+16 */
	F_END = 0x300,
	F_NONE = 0x400,
	F_UNCOVERED = 0x500,
	F_SIGNAL = 0x600,
	F_LINK = 0x700,		/* cfa=sp, ra in the link register */
	F_R10 = 0x800,		/* cfa=r10+16 */
	F_PLT = 0x900,
	F_REALIGNED = 0xa00,	/* cfa=[fp-8]+8 */
	F_LOST = 0xb00,		/* cfa=sp+16, fp undefined */
	F_STUCK = 0xc00,	/* cfa=sp-8 */
	F_SAVES = 0xd00,	/* cfa=sp+16, rbx at cfa-16 */
	F_RBX = 0xe00,		/* cfa=rbx+16 */
	F_LIMIT = 0xf00,
};

static const struct {
	uint64_t at;
	struct unwind_rule rule;
} code[] = {
	{ F_LEAF, { .cfa = UNWIND_VALUE | UNWIND_BASE_SP, .cfa_offset = 8,
		    .ra = UNWIND_LOAD | UNWIND_BASE_CFA, .ra_offset = -8 } },
	{ F_FRAME, { .cfa = UNWIND_VALUE | UNWIND_BASE_SP, .cfa_offset = 32,
		     .ra = UNWIND_LOAD | UNWIND_BASE_CFA, .ra_offset = -8,
		     .fp = UNWIND_LOAD | UNWIND_BASE_CFA, .fp_offset = -16 } },
	{ F_FP, { .cfa = UNWIND_VALUE | UNWIND_BASE_FP, .cfa_offset = 16,
		  .ra = UNWIND_LOAD | UNWIND_BASE_CFA, .ra_offset = -8,
		  .fp = UNWIND_LOAD | UNWIND_BASE_CFA, .fp_offset = -16 } },
	{ F_END, { .cfa = UNWIND_END } },
	{ F_NONE, { .cfa = UNWIND_NO_RULE } },
	{ F_UNCOVERED, { .cfa = UNWIND_UNCOVERED } },
	{ F_SIGNAL, { .cfa = UNWIND_LOAD | UNWIND_BASE_SP, .cfa_offset = 160,
		      .ra = UNWIND_LOAD | UNWIND_BASE_SP, .ra_offset = 168,
		      .fp = UNWIND_LOAD | UNWIND_BASE_SP, .fp_offset = 120,
		      .extra = UNWIND_EXTRA_SIGNAL } },
	{ F_LINK, { .cfa = UNWIND_VALUE | UNWIND_BASE_SP, .ra = UNWIND_VALUE | 30 } },
	{ F_R10, { .cfa = UNWIND_VALUE | 10, .cfa_offset = 16,
		   .ra = UNWIND_LOAD | UNWIND_BASE_CFA, .ra_offset = -8 } },
	{ F_PLT, { .cfa = UNWIND_PLT | UNWIND_BASE_SP, .cfa_offset = 8, .extra = 11,
		   .ra = UNWIND_LOAD | UNWIND_BASE_CFA, .ra_offset = -8 } },
	{ F_REALIGNED, { .cfa = UNWIND_LOAD | UNWIND_BASE_FP, .cfa_offset = -8, .extra = 1,
			 .ra = UNWIND_LOAD | UNWIND_BASE_CFA, .ra_offset = -8,
			 .fp = UNWIND_LOAD | UNWIND_BASE_FP } },
	{ F_LOST, { .cfa = UNWIND_VALUE | UNWIND_BASE_SP, .cfa_offset = 16,
		    .ra = UNWIND_LOAD | UNWIND_BASE_CFA, .ra_offset = -8,
		    .fp = UNWIND_FP_UNDEFINED } },
	{ F_STUCK, { .cfa = UNWIND_VALUE | UNWIND_BASE_SP, .cfa_offset = -8,
		     .ra = UNWIND_LOAD | UNWIND_BASE_CFA, .ra_offset = 8 } },
	{ F_SAVES, { .cfa = UNWIND_VALUE | UNWIND_BASE_SP, .cfa_offset = 16,
		     .ra = UNWIND_LOAD | UNWIND_BASE_CFA, .ra_offset = -8 } },
	{ F_RBX, { .cfa = UNWIND_VALUE | UNWIND_SAVED_REGISTER, .cfa_offset = 16,
		   .ra = UNWIND_LOAD | UNWIND_BASE_CFA, .ra_offset = -8 } },
	{ F_LIMIT, { .cfa = UNWIND_UNCOVERED } },
};

static struct unwind_table table, plain;	/* plain: the same without saved[] */
static void *table_data, *plain_data;

static int32_t saved_at(uint64_t at)
{
	return at == F_SAVES ? -16 : at == F_LOST ? UNWIND_SAVED_LOST : UNWIND_SAVED_SAME;
}

static int make(bool with_saved, void **ret_data, struct unwind_table *ret_table)
{
	struct builder builder;
	size_t size;

	assert_int_equal(builder_init(&builder, machine_find(EM_X86_64), 0, 1 << 20), 0);
	if (with_saved)
		assert_int_equal(builder_with_saved(&builder), 0);
	for (int pass = 0; pass < 2; pass++) {
		for (size_t i = 0; i < ARRAY_SIZE(code); i++)
			assert_int_equal(builder_row_saved(&builder, code[i].at, &code[i].rule,
							   saved_at(code[i].at)), 0);
		if (pass == 0)
			assert_int_equal(builder_plan(&builder), 0);
	}
	assert_true(builder.wants_saved);
	assert_int_equal(builder_finish(&builder, ret_data, &size), 0);
	builder_done(&builder);
	return unwind_table_check(*ret_data, size, ret_table);
}

static int setup(void **state)
{
	(void)state;
	return make(true, &table_data, &table) || make(false, &plain_data, &plain);
}

static int teardown(void **state)
{
	(void)state;
	free(table_data);
	free(plain_data);
	return 0;
}

struct fixture {
	struct memory memory;
	struct unwind_mapping mappings[2];
	__u64 ips[64], regs[33];
	uint16_t exact[4];
	struct unwind_walk walk;
};

static struct fixture *prepare(uint64_t pc, uint64_t sp, uint64_t fp)
{
	static struct fixture fixture;

	fixture = (struct fixture){
		.mappings = {
			{ .start = TEXT, .end = TEXT + 0x10000, .bias = TEXT, .table = &table },
			{ .start = JIT, .end = JIT + 0x1000 },
		},
		.walk = {
			.pc = pc, .sp = sp, .fp = fp, .machine = UNWIND_MACHINE_X86_64,
			.address_limit = LIMIT, .regs = fixture.regs, .reg_count = 33,
			.mappings = fixture.mappings, .mapping_count = 2,
			.ips = fixture.ips, .max = ARRAY_SIZE(fixture.ips),
			.exact = fixture.exact, .max_exact = ARRAY_SIZE(fixture.exact),
		},
	};
	return &fixture;
}

static void put(struct fixture *fixture, uint64_t address, uint64_t value)
{
	fixture->memory.words[(address - STACK) / 8] = value;
}

static int walk(struct fixture *fixture)
{
	unwind_walk_begin(&fixture->walk);
	return unwind_walk_run(&fixture->walk, &fixture->memory, UINT32_MAX);
}

static void expect(const struct fixture *fixture, size_t count, const uint64_t *ips)
{
	assert_int_equal(fixture->walk.count, count);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(fixture->ips[i], ips[i]);
}

#define EXPECT(fixture, ...)                                                                       \
	expect(fixture, ARRAY_SIZE(((const uint64_t[]){ __VA_ARGS__ })),                           \
	       (const uint64_t[]){ __VA_ARGS__ })

#endif /* UNIT_WALKS_H */
