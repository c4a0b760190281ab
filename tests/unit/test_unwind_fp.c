// SPDX-License-Identifier: Apache-2.0
/* The walk in code that nothing describes: by the frame pointer, and back to tables. */
#include "walks.h"

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
	assert_int_equal(f->walk.pc, JIT + 4);		/* of the last frame, which is not read back */
	f = prepare(JIT + 4, STACK, STACK + 0x21);	/* no frame pointer */
	assert_int_equal(walk(f), STACKTAP_END_NO_RULE);
	f = prepare(JIT + 4, STACK + 0x20, STACK);	/* below the stack */
	assert_int_equal(walk(f), STACKTAP_END_NO_RULE);
	f = prepare(TEXT + F_LOST, STACK, STACK + 0x20); /* not the caller's any more */
	put(f, STACK + 8, JIT + 4);
	assert_int_equal(walk(f), STACKTAP_END_NO_RULE);
	EXPECT(f, TEXT + F_LOST, JIT + 4);
	assert_int_equal(f->walk.pc, JIT + 4);
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

/* A library that was mapped a moment ago keeps no frame pointer: the one it left alone is its caller's. */
static void what_leads_through_unknown_code_may_lack_a_frame(void **state)
{
	const uint64_t unknown = JIT + 0x100000;
	struct fixture *f = prepare(TEXT + F_LEAF, STACK, STACK + 0x40);

	(void)state;
	put(f, STACK, unknown + 8);
	put(f, STACK + 8, TEXT + F_FRAME + 8);		/* its caller, whose frame pointer this is */
	put(f, STACK + 0x40, STACK + 0x60);
	put(f, STACK + 0x48, TEXT + F_END + 4);
	assert_int_equal(walk(f), STACKTAP_END_COMPLETE);
	EXPECT(f, TEXT + F_LEAF, unknown + 8, TEXT + F_END + 4);
	assert_true(f->walk.is_unlisted);
	/* code that the list knows to have no table is what frame pointers are for */
	f = prepare(JIT + 4, STACK, STACK + 0x20);
	put(f, STACK + 0x28, TEXT + F_END + 4);
	assert_int_equal(walk(f), STACKTAP_END_COMPLETE);
	assert_false(f->walk.is_unlisted);
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
	assert_true(f->walk.is_unlisted);
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

/* musl's threads on arm64 begin with the frame pointer of who created them. */
static void a_frame_pointer_stays_on_the_stack(void **state)
{
	struct fixture *f = prepare(TEXT + F_LEAF, STACK, STACK + 0x80);

	(void)state;
	put(f, STACK, JIT + 8);
	put(f, STACK + 0x80, STACK + 0xa0);
	put(f, STACK + 0x88, JIT + 0x10);
	put(f, STACK + 0xa8, TEXT + F_END + 4);
	assert_int_equal(walk(f), STACKTAP_END_COMPLETE);
	EXPECT(f, TEXT + F_LEAF, JIT + 8, JIT + 0x10, TEXT + F_END + 4);
	/* the same records, further up than a frame is large: another stack's */
	f = prepare(TEXT + F_LEAF, STACK, STACK + 0x18000);
	put(f, STACK, JIT + 8);
	put(f, STACK + 0x18000, STACK + 0x18020);
	put(f, STACK + 0x18008, JIT + 0x10);
	put(f, STACK + 0x18028, TEXT + F_END + 4);
	assert_int_equal(walk(f), STACKTAP_END_NO_RULE);
	EXPECT(f, TEXT + F_LEAF, JIT + 8);
}

static void the_record_of_go_is_below_the_stack_pointer(void **state)
{
	struct fixture *f = prepare(JIT + 4, STACK + 0x28, STACK + 0x20);

	(void)state;
	f->walk.machine = UNWIND_MACHINE_AARCH64;
	put(f, STACK + 0x20, STACK + 0x30);
	put(f, STACK + 0x28, JIT + 8);			/* 16 bytes, the least there are */
	put(f, STACK + 0x30, STACK + 0x80);
	put(f, STACK + 0x38, JIT + 0x10);
	put(f, STACK + 0x88, TEXT + F_END + 4);
	assert_int_equal(walk(f), STACKTAP_END_COMPLETE);
	EXPECT(f, JIT + 4, JIT + 8, JIT + 0x10, TEXT + F_END + 4);
	/* not further down, and not on x86 */
	f = prepare(JIT + 4, STACK + 0x30, STACK + 0x20);
	f->walk.machine = UNWIND_MACHINE_AARCH64;
	put(f, STACK + 0x28, TEXT + F_END + 4);
	assert_int_equal(walk(f), STACKTAP_END_NO_RULE);
	f = prepare(JIT + 4, STACK + 0x28, STACK + 0x20);
	put(f, STACK + 0x28, TEXT + F_END + 4);
	assert_int_equal(walk(f), STACKTAP_END_NO_RULE);
}

/* @address is behind @call. */
static void put_call(struct fixture *f, uint64_t address, const void *call, size_t bytes)
{
	uint8_t *memory = address - JIT < sizeof(f->memory.jit) ? &f->memory.jit[address - JIT] :
								  &f->memory.text[address - TEXT];

	memcpy(memory - bytes, call, bytes);
}

/* Two frames of JIT code that was called by what has a table. */
static struct fixture *prepare_jit(uint16_t machine)
{
	static const uint32_t bl = 0x94000123, blr = 0xd63f0060;
	struct fixture *f = prepare(JIT + 0x104, STACK, STACK + 0x20);

	f->walk.machine = machine;
	put(f, STACK + 0x20, STACK + 0x48);
	put(f, STACK + 0x28, JIT + 0x240);
	put(f, STACK + 0x50, TEXT + F_END + 0x10);
	if (machine == UNWIND_MACHINE_AARCH64) {
		put_call(f, JIT + 0x240, &blr, sizeof(blr));
		put_call(f, JIT + 0x34c, &bl, sizeof(bl));
		put_call(f, TEXT + F_END + 0x10, &bl, sizeof(bl));
		f->regs[30] = JIT + 0x240;
	} else {
		put_call(f, JIT + 0x240, "\xff\xd0", 2);		/* call *%rax */
		put_call(f, JIT + 0x34c, "\xff\x94\x24\x80\x00\x00\x00", 7);
		put_call(f, TEXT + F_END + 0x10, "\xe8\x00\x00\x00\x00", 5);
	}
	return f;
}

static void expect_jit(struct fixture *f, bool is_guessed)
{
	assert_int_equal(walk(f), STACKTAP_END_COMPLETE);
	EXPECT(f, JIT + 0x104, JIT + 0x240, TEXT + F_END + 0x10);
	assert_int_equal(f->walk.is_guessed, is_guessed);
}

static void steps_by_the_frame_pointer_are_proven_or_guessed(void **state)
{
	static const uint16_t machines[] = { UNWIND_MACHINE_X86_64, UNWIND_MACHINE_AARCH64 };
	struct fixture *f;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(machines); i++) {
		f = prepare_jit(machines[i]);
		put(f, STACK + 8, JIT + 0x300);		/* some address of code */
		put(f, STACK + 0x10, STACK + 0x34c);
		expect_jit(f, false);
		/* a compiled method without frame pointer was stepped over */
		f = prepare_jit(machines[i]);
		put(f, STACK + 8, JIT + 0x34c);
		expect_jit(f, true);
		f = prepare_jit(machines[i]);
		put(f, STACK + 0x38, JIT + 0x34c);
		expect_jit(f, true);
		/* nobody called from there */
		f = prepare_jit(machines[i]);
		memset(&f->memory.jit[0x230], 0, 0x10);
		expect_jit(f, true);
		/* what cannot be looked at may be anything */
		f = prepare_jit(machines[i]);
		f->memory.missing = STACK + 0x10;
		expect_jit(f, true);
		f = prepare_jit(machines[i]);
		f->memory.missing = JIT + 0x238;
		expect_jit(f, true);
		f = prepare_jit(machines[i]);
		put(f, STACK + 0x20, STACK + 0x20 + 0x400);
		put(f, STACK + 0x28 + 0x400, TEXT + F_END + 0x10);
		expect_jit(f, true);
	}
	/* a leaf of arm64, whose caller is in the link register alone */
	f = prepare_jit(UNWIND_MACHINE_AARCH64);
	f->regs[30] = JIT + 0x34c;
	expect_jit(f, true);
	f = prepare_jit(UNWIND_MACHINE_AARCH64);
	f->regs[30] = JIT + 0x300;
	expect_jit(f, false);
}

/* A register that code uses for something else may be 0. */
static void a_chain_that_ends_in_code_without_table_is_guessed(void **state)
{
	static const uint64_t last[] = { JIT + 0x240, TEXT + F_UNCOVERED + 0x40 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(last); i++) {
		struct fixture *f = prepare(JIT + 0x104, STACK, STACK + 0x20);

		put(f, STACK + 0x28, last[i]);
		put_call(f, last[i], "\xff\xd0", 2);
		assert_int_equal(walk(f), STACKTAP_END_COMPLETE);
		EXPECT(f, JIT + 0x104, last[i]);
		assert_int_equal(f->walk.is_guessed, i == 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(code_without_information_goes_by_the_frame_pointer),
		cmocka_unit_test(a_leaf_without_information_has_its_caller_in_the_link_register),
		cmocka_unit_test(a_frame_pointer_that_leads_nowhere_is_not_followed),
		cmocka_unit_test(only_a_chain_of_frame_pointers_ends_with_0),
		cmocka_unit_test(after_a_frame_record_rules_find_the_stack_by_the_next),
		cmocka_unit_test(what_leads_through_unknown_code_may_lack_a_frame),
		cmocka_unit_test(code_that_no_list_knows_calls_its_like),
		cmocka_unit_test(a_frame_pointer_stays_on_the_stack),
		cmocka_unit_test(steps_by_the_frame_pointer_are_proven_or_guessed),
		cmocka_unit_test(a_chain_that_ends_in_code_without_table_is_guessed),
		cmocka_unit_test(the_record_of_go_is_below_the_stack_pointer),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
