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
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
