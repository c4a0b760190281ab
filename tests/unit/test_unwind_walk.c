// SPDX-License-Identifier: Apache-2.0
/* The walk on stacks made by hand: every kind of rule, every end. */
#include "walks.h"

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
