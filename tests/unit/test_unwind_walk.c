// SPDX-License-Identifier: Apache-2.0
/* The walk on stacks made by hand: every kind of rule, every end. */
#include "unit.h"

#include <string.h>

#include "unwind/builder.h"

enum { WORDS = 512 };

#define STACK 0x7ffc00000000ULL
#define TEXT 0x555500000000ULL
#define JIT 0x700000000000ULL
#define LIMIT 0x7ffffffff000ULL
#define PAC 0x007f000000000000ULL

struct memory {
	uint64_t words[WORDS];
	size_t reads;
	uint64_t missing;	/* an address that is not present */
};

static inline int unwind_read_word(void *ctx, uint64_t address, __u64 *ret_value)
{
	struct memory *memory = ctx;

	memory->reads++;
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

static void frames_with_and_without_frame_pointer(void **state)
{
	struct fixture *f = prepare(TEXT + F_LEAF, STACK, 0x1234);

	(void)state;
	put(f, STACK, TEXT + F_FRAME + 5);
	put(f, STACK + 0x18, STACK + 0x60);		/* fp of the next */
	put(f, STACK + 0x20, TEXT + F_FP + 5);
	put(f, STACK + 0x60, 77);
	put(f, STACK + 0x68, TEXT + F_LEAF + 9);
	put(f, STACK + 0x70, TEXT + F_END + 3);
	assert_int_equal(walk(f), STACKTAP_END_COMPLETE);
	EXPECT(f, TEXT + F_LEAF, TEXT + F_FRAME + 5, TEXT + F_FP + 5, TEXT + F_LEAF + 9,
	       TEXT + F_END + 3);
	assert_int_equal(f->walk.fp_count, 0);
	assert_int_equal(f->walk.exact_count, 0);
	assert_int_equal(f->memory.reads, 6);
}

static void a_call_at_the_end_of_a_function_is_its_own(void **state)
{
	/* the address behind the call belongs to F_FRAME; by that rule the walk would go wrong */
	struct fixture *f = prepare(TEXT + F_LEAF, STACK, 0);

	(void)state;
	put(f, STACK, TEXT + F_FRAME);
	put(f, STACK + 8, TEXT + F_END + 1);
	assert_int_equal(walk(f), STACKTAP_END_COMPLETE);
	EXPECT(f, TEXT + F_LEAF, TEXT + F_FRAME, TEXT + F_END + 1);
}

static void the_first_frame_is_exact(void **state)
{
	struct fixture *f = prepare(TEXT + F_FRAME, STACK, 0);

	(void)state;
	put(f, STACK + 0x18, TEXT + F_END + 1);
	assert_int_equal(walk(f), STACKTAP_END_COMPLETE);
	EXPECT(f, TEXT + F_FRAME, TEXT + F_END + 1);
}

static void a_signal_leads_to_an_exact_frame_on_another_stack(void **state)
{
	uint64_t frame = STACK + 0x200;
	struct fixture *f = prepare(TEXT + F_LEAF + 2, frame - 8, 0);

	(void)state;
	put(f, frame - 8, TEXT + F_SIGNAL + 1);
	put(f, frame + 160, STACK + 0x80);		/* rsp: below */
	put(f, frame + 168, TEXT + F_R10);		/* first byte: exact, or it is F_LINK's */
	put(f, frame + 120, 0x99);
	put(f, frame + 56, STACK + 0xa0);		/* r10 of the interrupted code */
	put(f, STACK + 0xa8, TEXT + F_END + 1);
	assert_int_equal(walk(f), STACKTAP_END_COMPLETE);
	EXPECT(f, TEXT + F_LEAF + 2, TEXT + F_SIGNAL + 1, TEXT + F_R10, TEXT + F_END + 1);
	assert_int_equal(f->walk.exact_count, 1);
	assert_int_equal(f->exact[0], 2);
}

static void registers_are_known_in_the_first_frame_alone(void **state)
{
	struct fixture *f = prepare(TEXT + F_R10 + 1, STACK, 0);

	(void)state;
	f->regs[10] = STACK + 0x10;
	put(f, STACK + 0x18, TEXT + F_R10 + 5);
	assert_int_equal(walk(f), STACKTAP_END_NO_RULE);
	EXPECT(f, TEXT + F_R10 + 1, TEXT + F_R10 + 5);
	f = prepare(TEXT + F_R10 + 1, STACK, 0);
	f->walk.regs = NULL;
	assert_int_equal(walk(f), STACKTAP_END_NO_RULE);
	f = prepare(TEXT + F_R10 + 1, STACK, 0);
	f->walk.reg_count = 10;
	assert_int_equal(walk(f), STACKTAP_END_NO_RULE);
}

static void a_saved_register_is_followed(void **state)
{
	struct fixture *f = prepare(TEXT + F_LEAF, STACK, 0);

	(void)state;
	/* untouched since the first frame */
	f->regs[3] = STACK + 0x40;
	put(f, STACK, TEXT + F_RBX + 5);
	put(f, STACK + 0x48, TEXT + F_END + 1);
	assert_int_equal(walk(f), STACKTAP_END_COMPLETE);
	EXPECT(f, TEXT + F_LEAF, TEXT + F_RBX + 5, TEXT + F_END + 1);
	/* saved by one of the callees */
	f = prepare(TEXT + F_LEAF, STACK, 0);
	f->regs[3] = 0x77;
	put(f, STACK, TEXT + F_SAVES + 5);
	put(f, STACK + 8, STACK + 0x40);
	put(f, STACK + 0x10, TEXT + F_LEAF + 5);
	put(f, STACK + 0x18, TEXT + F_RBX + 5);
	put(f, STACK + 0x48, TEXT + F_END + 1);
	assert_int_equal(walk(f), STACKTAP_END_COMPLETE);
	assert_int_equal(f->walk.count, 5);
	/* lost by one, or by one of which nothing is known */
	f = prepare(TEXT + F_LOST, STACK, 0);
	f->regs[3] = STACK + 0x40;
	put(f, STACK + 8, TEXT + F_RBX + 5);
	put(f, STACK + 0x48, TEXT + F_END + 1);
	assert_int_equal(walk(f), STACKTAP_END_NO_RULE);
	f = prepare(TEXT + F_LEAF, STACK, 0);
	f->regs[3] = STACK + 0x40;
	f->mappings[0].table = &plain;
	put(f, STACK, TEXT + F_RBX + 5);
	put(f, STACK + 0x48, TEXT + F_END + 1);
	assert_int_equal(walk(f), STACKTAP_END_NO_RULE);
	EXPECT(f, TEXT + F_LEAF, TEXT + F_RBX + 5);
	/* without frame pointers nothing is known of callees */
	f = prepare(JIT + 4, STACK, STACK + 0x20);
	f->regs[3] = STACK + 0x40;
	put(f, STACK + 0x28, TEXT + F_RBX + 5);
	assert_int_equal(walk(f), STACKTAP_END_NO_RULE);
	/* what a signal interrupted has it in the context */
	f = prepare(TEXT + F_SIGNAL, STACK, 0);
	put(f, STACK + 160, STACK + 0x180);
	put(f, STACK + 168, TEXT + F_LEAF);
	put(f, STACK + 128, STACK + 0x1c0);
	put(f, STACK + 0x180, TEXT + F_RBX + 5);
	put(f, STACK + 0x1c8, TEXT + F_END + 1);
	assert_int_equal(walk(f), STACKTAP_END_COMPLETE);
	assert_int_equal(f->walk.count, 4);
}

static void a_link_register_is_stripped_of_its_signature(void **state)
{
	struct fixture *f = prepare(TEXT + F_LINK, STACK, 0);

	(void)state;
	f->walk.machine = UNWIND_MACHINE_AARCH64;
	f->walk.pac_mask = PAC;
	f->regs[30] = PAC | (TEXT + F_LEAF + 4);
	put(f, STACK, PAC | (TEXT + F_END + 4));
	assert_int_equal(walk(f), STACKTAP_END_COMPLETE);
	EXPECT(f, TEXT + F_LINK, TEXT + F_LEAF + 4, TEXT + F_END + 4);
}

static void a_link_register_is_found_above_a_signal(void **state)
{
	struct fixture *f = prepare(TEXT + F_SIGNAL, STACK, 0);

	(void)state;
	/* x30 is the word below sp in the kernel's context */
	f->walk.machine = UNWIND_MACHINE_AARCH64;
	put(f, STACK + 160, STACK + 0x100);
	put(f, STACK + 168, TEXT + F_LINK);
	put(f, STACK + 152, TEXT + F_END + 4);
	assert_int_equal(walk(f), STACKTAP_END_COMPLETE);
	EXPECT(f, TEXT + F_SIGNAL, TEXT + F_LINK, TEXT + F_END + 4);
}

static void plt_entries_have_pushed_late(void **state)
{
	struct fixture *f = prepare(TEXT + F_PLT + 10, STACK, 0);

	(void)state;
	put(f, STACK, TEXT + F_END + 1);
	assert_int_equal(walk(f), STACKTAP_END_COMPLETE);
	f = prepare(TEXT + F_PLT + 0x10 + 11, STACK, 0);
	put(f, STACK + 8, TEXT + F_END + 1);
	assert_int_equal(walk(f), STACKTAP_END_COMPLETE);
	EXPECT(f, TEXT + F_PLT + 0x10 + 11, TEXT + F_END + 1);
}

static void realigned_frames_load_their_cfa(void **state)
{
	struct fixture *f = prepare(TEXT + F_REALIGNED, STACK, STACK + 0x40);

	(void)state;
	put(f, STACK + 0x38, STACK + 0x80);
	put(f, STACK + 0x40, STACK + 0x90);
	put(f, STACK + 0x80, TEXT + F_FP + 1);
	put(f, STACK + 0x98, TEXT + F_END + 1);
	assert_int_equal(walk(f), STACKTAP_END_COMPLETE);
	EXPECT(f, TEXT + F_REALIGNED, TEXT + F_FP + 1, TEXT + F_END + 1);
}

static void code_without_information_goes_by_the_frame_pointer(void **state)
{
	struct fixture *f = prepare(JIT + 4, STACK, STACK + 0x20);

	(void)state;
	put(f, STACK + 0x20, STACK + 0x40);
	put(f, STACK + 0x28, TEXT + F_UNCOVERED + 5);
	put(f, STACK + 0x40, 0x77);
	put(f, STACK + 0x48, TEXT + F_LEAF + 5);
	put(f, STACK + 0x50, TEXT + F_END + 5);
	assert_int_equal(walk(f), STACKTAP_END_COMPLETE);
	EXPECT(f, JIT + 4, TEXT + F_UNCOVERED + 5, TEXT + F_LEAF + 5, TEXT + F_END + 5);
	assert_int_equal(f->walk.fp_count, 2);
}

static void a_leaf_without_information_has_its_caller_in_the_link_register(void **state)
{
	struct fixture *f = prepare(TEXT + F_UNCOVERED, STACK, STACK + 0x20);

	(void)state;
	f->walk.machine = UNWIND_MACHINE_AARCH64;
	f->walk.pac_mask = PAC;
	put(f, STACK + 0x28, PAC | (TEXT + F_END + 4));
	f->regs[30] = PAC | (TEXT + F_FRAME + 4);
	/* by its own rule F_FRAME would find its caller at another place */
	assert_int_equal(walk(f), STACKTAP_END_COMPLETE);
	EXPECT(f, TEXT + F_UNCOVERED, TEXT + F_FRAME + 4, TEXT + F_END + 4);
	/* it keeps a frame and has called nobody, or has called somebody */
	f->walk.pc = TEXT + F_UNCOVERED;
	f->walk.sp = STACK;
	f->walk.fp = STACK + 0x20;
	f->regs[30] = TEXT + F_END + 4;
	assert_int_equal(walk(f), STACKTAP_END_COMPLETE);
	EXPECT(f, TEXT + F_UNCOVERED, TEXT + F_END + 4);
	f->walk.pc = TEXT + F_UNCOVERED + 8;
	f->walk.sp = STACK;
	f->walk.fp = STACK + 0x20;
	f->regs[30] = TEXT + F_UNCOVERED + 4;
	assert_int_equal(walk(f), STACKTAP_END_COMPLETE);
	EXPECT(f, TEXT + F_UNCOVERED + 8, TEXT + F_END + 4);
	/* what is no code is no caller */
	f = prepare(TEXT + F_UNCOVERED, STACK, STACK + 0x20);
	f->walk.machine = UNWIND_MACHINE_AARCH64;
	f->regs[30] = 0x1234560000;
	put(f, STACK + 0x28, TEXT + F_END + 4);
	assert_int_equal(walk(f), STACKTAP_END_COMPLETE);
	EXPECT(f, TEXT + F_UNCOVERED, TEXT + F_END + 4);
}

static void a_frame_pointer_that_leads_nowhere_is_not_followed(void **state)
{
	struct fixture *f = prepare(JIT + 4, STACK, STACK + 0x20);

	(void)state;
	put(f, STACK + 0x28, 0x1234560000);		/* nothing is mapped there */
	assert_int_equal(walk(f), STACKTAP_END_NO_RULE);
	EXPECT(f, JIT + 4);
	f = prepare(JIT + 4, STACK, STACK + 0x21);	/* no frame pointer */
	assert_int_equal(walk(f), STACKTAP_END_NO_RULE);
	f = prepare(JIT + 4, STACK + 0x20, STACK);	/* below the stack */
	assert_int_equal(walk(f), STACKTAP_END_NO_RULE);
	f = prepare(TEXT + F_LOST, STACK, STACK + 0x20); /* not the caller's any more */
	put(f, STACK + 8, JIT + 4);
	assert_int_equal(walk(f), STACKTAP_END_NO_RULE);
	EXPECT(f, TEXT + F_LOST, JIT + 4);
}

static void only_a_chain_of_frame_pointers_ends_with_0(void **state)
{
	const uint64_t unknown = JIT + 0x100000;
	struct fixture *f = prepare(JIT + 4, STACK, STACK + 0x20);

	(void)state;
	put(f, STACK + 0x28, JIT + 8);
	assert_int_equal(walk(f), STACKTAP_END_COMPLETE);
	EXPECT(f, JIT + 4, JIT + 8);
	f = prepare(JIT + 4, STACK, STACK + 0x20);
	put(f, STACK + 0x20, STACK + 0x40);		/* and there is nothing */
	put(f, STACK + 0x28, JIT + 8);
	assert_int_equal(walk(f), STACKTAP_END_COMPLETE);
	EXPECT(f, JIT + 4, JIT + 8);
	f = prepare(JIT + 4, STACK, 0);			/* any number */
	assert_int_equal(walk(f), STACKTAP_END_NO_RULE);
	f = prepare(JIT + 4, STACK, STACK + 0x20);	/* points to any zeroes */
	assert_int_equal(walk(f), STACKTAP_END_NO_RULE);
	EXPECT(f, JIT + 4);
	f = prepare(TEXT + F_LEAF, STACK, 0);
	put(f, STACK, TEXT + F_UNCOVERED + 5);
	assert_int_equal(walk(f), STACKTAP_END_NO_RULE);
	f = prepare(unknown, STACK, STACK + 0x20);	/* what may be anything */
	put(f, STACK + 0x28, unknown + 8);
	assert_int_equal(walk(f), STACKTAP_END_NO_RULE);
	EXPECT(f, unknown, unknown + 8);
}

static void after_a_frame_record_rules_find_the_stack_by_the_next(void **state)
{
	struct fixture *f = prepare(JIT + 4, STACK, STACK + 0x20);

	(void)state;
	f->walk.machine = UNWIND_MACHINE_AARCH64;
	put(f, STACK + 0x20, STACK + 0x60);
	put(f, STACK + 0x28, TEXT + F_FRAME + 4);
	put(f, STACK + 0x60, STACK + 0x80);
	put(f, STACK + 0x68, TEXT + F_LEAF + 4);	/* its sp is known again: 0x70 */
	put(f, STACK + 0x70, TEXT + F_FRAME + 8);
	put(f, STACK + 0x88, STACK + 0x77);
	put(f, STACK + 0x90, TEXT + F_END + 4);
	assert_int_equal(walk(f), STACKTAP_END_COMPLETE);
	EXPECT(f, JIT + 4, TEXT + F_FRAME + 4, TEXT + F_LEAF + 4, TEXT + F_FRAME + 8,
	       TEXT + F_END + 4);
	assert_int_equal(f->walk.fp_count, 1);
	/* one that keeps no record does not tell where sp is */
	f = prepare(JIT + 4, STACK, STACK + 0x20);
	f->walk.machine = UNWIND_MACHINE_AARCH64;
	put(f, STACK + 0x20, STACK + 0x60);
	put(f, STACK + 0x28, TEXT + F_LEAF + 4);
	put(f, STACK + 0x30, TEXT + F_END + 4);
	assert_int_equal(walk(f), STACKTAP_END_NO_RULE);
	EXPECT(f, JIT + 4, TEXT + F_LEAF + 4);
	/* nor does one whose record would lie below what called it */
	f = prepare(JIT + 4, STACK, STACK + 0x40);
	f->walk.machine = UNWIND_MACHINE_AARCH64;
	put(f, STACK + 0x40, STACK + 0x10);
	put(f, STACK + 0x48, TEXT + F_FRAME + 4);
	put(f, STACK + 0x18, TEXT + F_END + 4);
	assert_int_equal(walk(f), STACKTAP_END_NO_RULE);
}

static void code_that_no_list_knows_calls_its_like(void **state)
{
	const uint64_t unknown = JIT + 0x100000;
	struct fixture *f = prepare(unknown, STACK, STACK + 0x20);

	(void)state;
	put(f, STACK + 0x20, STACK + 0x40);
	put(f, STACK + 0x28, unknown + 0x1000);
	put(f, STACK + 0x40, STACK + 0x60);
	put(f, STACK + 0x48, unknown - 0x2000);
	put(f, STACK + 0x68, TEXT + F_END + 1);
	assert_int_equal(walk(f), STACKTAP_END_COMPLETE);
	EXPECT(f, unknown, unknown + 0x1000, unknown - 0x2000, TEXT + F_END + 1);
	/* not from an object that has a table, and not far away */
	f = prepare(TEXT + F_UNCOVERED, STACK, STACK + 0x20);
	put(f, STACK + 0x28, TEXT + 0x20000);
	assert_int_equal(walk(f), STACKTAP_END_NO_RULE);
	EXPECT(f, TEXT + F_UNCOVERED);
	f = prepare(unknown, STACK, STACK + 0x20);
	put(f, STACK + 0x28, unknown - (257 << 20));
	assert_int_equal(walk(f), STACKTAP_END_NO_RULE);
	EXPECT(f, unknown);
}

static void what_cannot_be_said_ends_the_walk(void **state)
{
	struct fixture *f = prepare(TEXT + F_NONE, STACK, STACK + 0x20);

	(void)state;
	put(f, STACK + 0x28, TEXT + F_LEAF + 5);	/* a frame pointer would lead there */
	assert_int_equal(walk(f), STACKTAP_END_NO_RULE);
	EXPECT(f, TEXT + F_NONE);
}

static void stacks_must_grow(void **state)
{
	struct fixture *f = prepare(TEXT + F_STUCK, STACK + 0x40, 0);

	(void)state;
	assert_int_equal(walk(f), STACKTAP_END_BAD_FRAME);
	/* the same CFA again is fine where code was interrupted, not for a caller */
	f = prepare(TEXT + F_LINK, STACK, 0);
	f->regs[30] = TEXT + F_LINK + 8;
	assert_int_equal(walk(f), STACKTAP_END_BAD_FRAME);
	EXPECT(f, TEXT + F_LINK, TEXT + F_LINK + 8);
	/* a frame pointer that points below */
	f = prepare(TEXT + F_FP, STACK + 0x80, STACK);
	assert_int_equal(walk(f), STACKTAP_END_BAD_FRAME);
	f = prepare(TEXT + F_FP, STACK, STACK + 4);
	assert_int_equal(walk(f), STACKTAP_END_BAD_FRAME);
	f = prepare(TEXT + F_FP, STACK, LIMIT - 16);
	assert_int_equal(walk(f), STACKTAP_END_BAD_FRAME);
	f = prepare(TEXT + F_FP, STACK, UINT64_MAX - 15);
	assert_int_equal(walk(f), STACKTAP_END_BAD_FRAME);
}

static void signals_in_circles_end_at_the_depth(void **state)
{
	struct fixture *f = prepare(TEXT + F_SIGNAL, STACK, 0);

	(void)state;
	put(f, STACK + 160, STACK);
	put(f, STACK + 168, TEXT + F_SIGNAL);
	assert_int_equal(walk(f), STACKTAP_END_DEPTH);
	assert_int_equal(f->walk.exact_count, ARRAY_SIZE(f->exact));
	assert_int_equal(f->walk.count, 1 + ARRAY_SIZE(f->exact));
}

static void return_addresses_are_user_addresses(void **state)
{
	struct fixture *f = prepare(TEXT + F_LEAF, STACK, 0);

	(void)state;
	put(f, STACK, 0xffffffff81000000ULL);
	assert_int_equal(walk(f), STACKTAP_END_BAD_FRAME);
	EXPECT(f, TEXT + F_LEAF);
	f = prepare(TEXT + F_LEAF, STACK, 0);
	put(f, STACK, 0);
	assert_int_equal(walk(f), STACKTAP_END_COMPLETE);
	EXPECT(f, TEXT + F_LEAF);
}

static void missing_pages_are_told(void **state)
{
	struct fixture *f = prepare(TEXT + F_LEAF, STACK, 0);

	(void)state;
	put(f, STACK, TEXT + F_LEAF + 4);
	f->memory.missing = STACK + 8;
	assert_int_equal(walk(f), STACKTAP_END_UNREADABLE);
	EXPECT(f, TEXT + F_LEAF, TEXT + F_LEAF + 4);
}

static void walks_stop_at_the_depth_and_go_on(void **state)
{
	struct fixture *f = prepare(TEXT + F_LEAF, STACK, 0);
	int end;

	(void)state;
	for (size_t i = 0; i < WORDS; i++)
		put(f, STACK + 8 * i, TEXT + F_LEAF + 4);
	put(f, STACK + 8 * 40, TEXT + F_END + 4);
	unwind_walk_begin(&f->walk);
	for (uint32_t until = 10; until <= 40; until += 10) {
		end = unwind_walk_run(&f->walk, &f->memory, until);
		assert_int_equal(end, STACKTAP_END_NONE);
		assert_int_equal(f->walk.count, until);
	}
	end = unwind_walk_run(&f->walk, &f->memory, 64);
	assert_int_equal(end, STACKTAP_END_COMPLETE);
	assert_int_equal(f->walk.count, 42);
	/* exactly as many as fit, and one more */
	f->walk.max = 42;
	f->walk.pc = TEXT + F_LEAF;
	f->walk.sp = STACK;
	assert_int_equal(walk(f), STACKTAP_END_COMPLETE);
	f->walk.max = 41;
	f->walk.pc = TEXT + F_LEAF;
	f->walk.sp = STACK;
	assert_int_equal(walk(f), STACKTAP_END_DEPTH);
	assert_int_equal(f->walk.count, 41);
}

static void without_mappings_frame_pointers_remain(void **state)
{
	struct fixture *f = prepare(TEXT + F_LEAF, STACK, STACK + 0x20);

	(void)state;
	f->walk.mapping_count = 0;
	put(f, STACK + 0x28, 0x1000);
	assert_int_equal(walk(f), STACKTAP_END_COMPLETE);
	EXPECT(f, TEXT + F_LEAF, 0x1000);
}

static void mappings_are_found_at_their_edges(void **state)
{
	struct unwind_mapping mappings[5];
	struct unwind_walk w = { .mappings = mappings, .mapping_count = ARRAY_SIZE(mappings) };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(mappings); i++)
		mappings[i] = (struct unwind_mapping){ .start = 0x1000 * (2 * i + 1),
						       .end = 0x1000 * (2 * i + 2) };
	for (uint64_t address = 0; address < 0xc000; address += 0x7f) {
		uint64_t page = address >> 12;
		bool is_mapped = page % 2 == 1 && page / 2 < ARRAY_SIZE(mappings);

		assert_ptr_equal(unwind_walk_find(&w, address),
				 is_mapped ? &mappings[page / 2] : NULL);
	}
	assert_null(unwind_walk_find(&w, UINT64_MAX));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frames_with_and_without_frame_pointer),
		cmocka_unit_test(a_call_at_the_end_of_a_function_is_its_own),
		cmocka_unit_test(the_first_frame_is_exact),
		cmocka_unit_test(a_signal_leads_to_an_exact_frame_on_another_stack),
		cmocka_unit_test(registers_are_known_in_the_first_frame_alone),
		cmocka_unit_test(a_saved_register_is_followed),
		cmocka_unit_test(a_link_register_is_stripped_of_its_signature),
		cmocka_unit_test(a_link_register_is_found_above_a_signal),
		cmocka_unit_test(plt_entries_have_pushed_late),
		cmocka_unit_test(realigned_frames_load_their_cfa),
		cmocka_unit_test(code_without_information_goes_by_the_frame_pointer),
		cmocka_unit_test(a_leaf_without_information_has_its_caller_in_the_link_register),
		cmocka_unit_test(a_frame_pointer_that_leads_nowhere_is_not_followed),
		cmocka_unit_test(only_a_chain_of_frame_pointers_ends_with_0),
		cmocka_unit_test(after_a_frame_record_rules_find_the_stack_by_the_next),
		cmocka_unit_test(code_that_no_list_knows_calls_its_like),
		cmocka_unit_test(what_cannot_be_said_ends_the_walk),
		cmocka_unit_test(stacks_must_grow),
		cmocka_unit_test(signals_in_circles_end_at_the_depth),
		cmocka_unit_test(return_addresses_are_user_addresses),
		cmocka_unit_test(missing_pages_are_told),
		cmocka_unit_test(walks_stop_at_the_depth_and_go_on),
		cmocka_unit_test(without_mappings_frame_pointers_remain),
		cmocka_unit_test(mappings_are_found_at_their_edges),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
