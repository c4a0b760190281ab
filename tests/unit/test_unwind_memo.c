// SPDX-License-Identifier: Apache-2.0
/*
 * A walk that remembers finds what one without memory finds: over random tables at random places,
 * lists that replace each other and say different things of the same addresses, and stacks of which
 * any word may be wrong.
 */
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "ring_pair.h"
#include "unwind/builder.h"

enum {
	WORDS = 1024,
	LISTS = 4,
	MAPPINGS = 3,
	ROUNDS = 400,			/* a list is replaced in each */
	WALKS = 150,			/* a round */
	FRAMES = 100,
	EXACT = 4,
	REGISTERS = 33,
	FUNCTIONS = 24,			/* a table */
	CALLS = 20,			/* places where a list's code calls from */
	PLACE = 0x4000,			/* bytes of code at most, and between mappings */
	READS_PER_FRAME = 8,
};

#define STACK 0x7ffc00000000ULL
#define TEXT 0x555500000000ULL
#define LIMIT 0x7ffffffff000ULL
#define PAC (0x7fULL << 48)

struct memory {
	uint64_t base;			/* address of words[0] */
	uint64_t words[WORDS];
	uint64_t missing;
	size_t reads;
	uint32_t looks;			/* percent of looks at the clock that let a walk go on */
	uint32_t granted;		/* frames, by these */
	size_t notes;			/* of tables used */
	const void *noted;		/* the last one */
};

static inline int unwind_read_word(void *ctx, uint64_t address, __u64 *ret_value)
{
	struct memory *memory = ctx;

	memory->reads++;
	assert_true(address % 8 == 0 && address <= LIMIT - 8);
	if (address == memory->missing || address < memory->base ||
	    address - memory->base >= sizeof(memory->words))
		return -1;
	*ret_value = memory->words[(address - memory->base) / 8];
	return 0;
}

static void note(struct memory *memory, const void *table)
{
	memory->notes++;
	memory->noted = table;
}

static uint32_t grant(struct memory *memory);

#define unwind_note_table(memory, table) note(memory, table)
#define unwind_look(memory) grant(memory)
#include <stacktap/unwind.h>

struct list {
	uint64_t number;
	uint16_t machine;
	struct unwind_mapping mappings[MAPPINGS];
	struct unwind_table tables[MAPPINGS];
	void *data[MAPPINGS];
	uint64_t calls[CALLS];		/* return addresses */
};

static struct list lists[LISTS];
static struct unwind_memo memo;
static uint64_t seed, last_number;

static uint64_t random_below(uint64_t limit)
{
	return ring_pair_random(&seed) % limit;
}

static bool random_chance(unsigned int percent)
{
	return random_below(100) < percent;
}

static uint32_t grant(struct memory *memory)
{
	uint32_t more = random_chance(memory->looks) ? 1 + (uint32_t)random_below(8) : 0;

	memory->granted += more;
	return more;
}

/* Mostly what real code has, and of everything else something. */
static struct unwind_rule random_rule(void)
{
	const int32_t odd[] = { 0, 8, -4, -65536, -65528, -65544, -32000, -16, 1 << 30, -(1 << 30) };
	struct unwind_rule rule = {
		.cfa = UNWIND_VALUE | UNWIND_BASE_SP,
		.cfa_offset = (int32_t)(8 + 8 * random_below(4)),
		.ra = UNWIND_LOAD | UNWIND_BASE_CFA,
		.ra_offset = -8,
	};

	if (random_chance(8))
		rule.cfa = UNWIND_VALUE | UNWIND_BASE_FP;
	if (random_chance(30)) {
		rule.fp = UNWIND_LOAD | UNWIND_BASE_CFA;
		rule.fp_offset = -16;
	}
	switch (random_below(40)) {
	case 0:
		return (struct unwind_rule){ .cfa = (uint8_t)random_below(3) };
	case 1:
		rule.extra = UNWIND_EXTRA_SIGNAL;
		rule.cfa = UNWIND_LOAD | UNWIND_BASE_SP;
		break;
	case 2:
		rule.cfa = UNWIND_PLT | UNWIND_BASE_SP;
		rule.extra = 11;
		break;
	case 3:
		rule.fp = UNWIND_FP_UNDEFINED;
		rule.fp_offset = 0;
		break;
	case 4:
		rule.ra = UNWIND_VALUE | 30;
		if (random_chance(80))
			rule.ra_offset = 0;
		if (random_chance(20))
			rule.cfa_offset = 0;
		break;
	case 5:
		rule.cfa_offset = odd[random_below(ARRAY_SIZE(odd))];
		break;
	case 6:
		rule.ra_offset = odd[random_below(ARRAY_SIZE(odd))];
		break;
	case 7:
		rule.fp = UNWIND_LOAD | UNWIND_BASE_CFA;
		rule.fp_offset = odd[random_below(ARRAY_SIZE(odd))];
		break;
	case 8:
		rule.cfa = UNWIND_VALUE | UNWIND_SAVED_REGISTER;
		break;
	case 9:
		rule.fp = UNWIND_VALUE | UNWIND_BASE_CFA;
		rule.fp_offset = -16;
		break;
	}
	return rule;
}

static void table_make(struct list *list, size_t i)
{
	struct unwind_rule rules[FUNCTIONS];
	uint64_t at[FUNCTIONS];
	int32_t saved[FUNCTIONS];
	struct builder builder;
	size_t size;

	for (size_t k = 0; k < FUNCTIONS; k++) {
		rules[k] = random_rule();
		at[k] = k * (PLACE / FUNCTIONS) + random_below(PLACE / FUNCTIONS / 2);
		saved[k] = random_chance(10) && (rules[k].cfa & UNWIND_HOW_MASK) != UNWIND_SPECIAL ?
				   -24 : UNWIND_SAVED_SAME;
	}
	assert_int_equal(builder_init(&builder, machine_find(EM_X86_64), 0, 1 << 20), 0);
	if (random_chance(20))
		assert_int_equal(builder_with_saved(&builder), 0);
	for (int pass = 0; pass < 2; pass++) {
		for (size_t k = 0; k < FUNCTIONS; k++)
			assert_int_equal(builder_row_saved(&builder, at[k], &rules[k], saved[k]),
					 0);
		if (pass == 0)
			assert_int_equal(builder_plan(&builder), 0);
	}
	assert_int_equal(builder_finish(&builder, &list->data[i], &size), 0);
	builder_done(&builder);
	assert_int_equal(unwind_table_check(list->data[i], size, &list->tables[i]), 0);
	list->mappings[i].table = &list->tables[i];
}

static void list_free(struct list *list)
{
	for (size_t i = 0; i < MAPPINGS; i++)
		free(list->data[i]);
	memset(list, 0, sizeof(*list));
}

/* All lists have code at the same addresses. */
static void list_make(struct list *list)
{
	list_free(list);
	list->number = ++last_number;
	list->machine = random_chance(80) ? UNWIND_MACHINE_X86_64 : UNWIND_MACHINE_AARCH64;
	for (size_t i = 0; i < MAPPINGS; i++) {
		struct unwind_mapping *mapping = &list->mappings[i];

		mapping->start = TEXT + 2 * PLACE * i;
		mapping->end = mapping->start + PLACE;
		mapping->bias = mapping->start;
		if (i == 0 || random_chance(90))
			table_make(list, i);
	}
	for (size_t i = 0; i < CALLS; i++)
		list->calls[i] = TEXT + 2 * PLACE * random_below(MAPPINGS) + 0x40 * random_below(0x100);
}

/* What a stack may hold, @calls in 100 being return addresses. */
static uint64_t random_word(const struct list *list, unsigned int calls)
{
	if (random_chance(calls))
		return list->calls[random_below(CALLS)] | (random_chance(20) ? PAC : 0);
	switch (random_below(8)) {
	case 0:
		return random_below(16);
	case 1:
		return ring_pair_random(&seed);
	case 2:
		return LIMIT - 16 + 8 * random_below(4);
	default:
		return STACK + 8 * random_below(WORDS);
	}
}

struct found {
	struct unwind_walk walk;
	__u64 ips[FRAMES];
	uint16_t exact[EXACT];
	int end;
	size_t reads;
};

static void found_walk(struct found *found, struct memory *memory, const struct unwind_walk *from,
		       uint32_t step)
{
	struct unwind_walk *walk = &found->walk;
	int end;

	*walk = *from;
	walk->ips = found->ips;
	walk->exact = found->exact;
	memory->reads = 0;
	unwind_walk_begin(walk);
	do {
		uint32_t before = walk->count;

		memory->granted = 0;
		walk->pause = random_chance(30) ? walk->searches + 1 + (uint32_t)random_below(3) : 0;
		end = unwind_walk_run(walk, memory, before + step);
		assert_true(walk->count <= walk->max && walk->exact_count <= EXACT);
		assert_true(walk->count <= before + step + memory->granted);
		assert_true(end != STACKTAP_END_NONE || walk->count > before);
	} while (end == STACKTAP_END_NONE);
	found->end = end;
	found->reads = memory->reads;
}

/* Returns how many frames were remembered. */
static uint32_t walk_both(const struct list *list, struct memory *memory)
{
	unsigned int calls = random_chance(70) ? 97 : 60;
	__u64 regs[REGISTERS];
	struct unwind_walk from = {
		.machine = list->machine,
		.address_limit = LIMIT,
		.pac_mask = PAC,
		.regs = random_chance(80) ? regs : NULL,
		.reg_count = REGISTERS,
		.mappings = list->mappings,
		.mapping_count = MAPPINGS,
		.max = random_chance(50) ? FRAMES : 1 + (uint32_t)random_below(12),
		.max_exact = EXACT,
		.pc = list->calls[random_below(CALLS)] + random_below(2),
		.fp = STACK + 8 * random_below(WORDS) + (random_chance(10) ? random_below(8) : 0),
	};
	static struct found with, without;

	/* below what offsets reach as well, and where the address space ends */
	memory->base = random_chance(85) ? STACK :
		       (const uint64_t[]){ 0, LIMIT - 8 * WORDS,
					   LIMIT - 4 * WORDS }[random_below(3)];
	memory->looks = (uint32_t)random_below(100);
	from.sp = memory->base + 8 * random_below(random_chance(70) ? 32 : WORDS) +
		  (random_chance(2) ? 4 : 0);
	for (size_t i = 0; i < WORDS; i++)
		memory->words[i] = random_word(list, calls);
	for (size_t i = 0; i < REGISTERS; i++)
		regs[i] = random_word(list, 30);
	memory->missing = random_chance(30) ? memory->base + 8 * random_below(WORDS) : 0;

	found_walk(&without, memory, &from, FRAMES + 1);
	from.memo = &memo;
	from.memo_tag = unwind_memo_tag(list->number, random_below(3));
	found_walk(&with, memory, &from, 1 + (uint32_t)random_below(FRAMES));

	assert_int_equal(with.end, without.end);
	assert_int_equal(with.walk.count, without.walk.count);
	assert_memory_equal(with.ips, without.ips, with.walk.count * sizeof(with.ips[0]));
	assert_int_equal(with.walk.exact_count, without.walk.exact_count);
	assert_memory_equal(with.exact, without.exact,
			    with.walk.exact_count * sizeof(with.exact[0]));
	assert_int_equal(with.walk.fp_count, without.walk.fp_count);
	assert_true(with.reads <= (size_t)READS_PER_FRAME * (with.walk.count + 1));
	return without.walk.searches - with.walk.searches;
}

static void what_is_remembered_is_what_would_be_found(void **state _unused_)
{
	static struct memory memory;
	uint64_t remembered = 0, deepest = 0;

	seed = 1;
	memset(&memo, 0, sizeof(memo));
	for (size_t i = 0; i < LISTS; i++)
		list_make(&lists[i]);
	for (size_t round = 0; round < ROUNDS; round++) {
		list_make(&lists[random_below(LISTS)]);
		for (size_t i = 0; i < WALKS; i++) {
			uint32_t n = walk_both(&lists[random_below(LISTS)], &memory);

			remembered += n;
			deepest = max_of(deepest, (uint64_t)n);
		}
	}
	for (size_t i = 0; i < LISTS; i++)
		list_free(&lists[i]);
	/* or nothing was tried */
	assert_true(remembered > ROUNDS * WALKS);
	assert_true(deepest > FRAMES / 4);
}

/* What is remembered must not look unused. */
static void tables_are_noted_when_the_clock_moves(void **state _unused_)
{
	static struct memory memory = { .base = STACK };
	struct unwind_walk from = {
		.machine = UNWIND_MACHINE_X86_64, .address_limit = LIMIT, .sp = STACK, .max = FRAMES,
		.memo = &memo, .max_exact = EXACT,
	};
	const struct unwind_rule rules[] = {
		{ .cfa = UNWIND_VALUE | UNWIND_BASE_SP, .cfa_offset = 8,
		  .ra = UNWIND_LOAD | UNWIND_BASE_CFA, .ra_offset = -8 },
		{ .cfa = UNWIND_END },
	};
	struct unwind_table table = { .bytes = 0x200, .rules = rules, .block_count = 2, .index_count = 2,
				      .row_count = 2, .rule_count = 2 };
	const uint16_t rows[] = { 0, 1 << 8 }, blocks[] = { 0, 1 };
	struct unwind_mapping mappings[] = {
		{ .start = TEXT - 0x200, .end = TEXT },
		{ .start = TEXT, .end = TEXT + 0x200, .bias = TEXT, .table = &table },
	};
	static struct found found;
	struct unwind_span spans[] = { { 0 } };

	table.rows = rows;
	table.blocks = blocks;
	table.spans = spans;
	memset(&memo, 0, sizeof(memo));
	from.mappings = mappings;
	from.mapping_count = ARRAY_SIZE(mappings);
	from.pc = TEXT + 4;
	for (size_t i = 0; i < 20; i++)
		memory.words[i] = TEXT + (i < 19 ? 8 : 0x108);
	seed = 1;
	for (size_t i = 0; i < 12; i++) {
		uint32_t is_new = i % 4 == 0;

		from.memo_tag = unwind_memo_tag(1 + i / 4, 254 + i / 2);
		memory.notes = 0;
		memory.noted = &table;
		found_walk(&found, &memory, &from, FRAMES);
		assert_int_equal(found.end, STACKTAP_END_COMPLETE);
		assert_int_equal(found.walk.count, 21);
		/* the first frame, one of its callers, the outermost */
		assert_int_equal(found.walk.searches, is_new ? 3 : 0);
		assert_int_equal(memory.notes, i % 2 == 0 ? 3 : 0);
		assert_ptr_equal(memory.noted, &table);
		assert_int_equal(found.reads, 20);
	}
}

/* Most samples of arm64 hit a leaf that saved nothing. */
static void a_leafs_link_register_is_remembered(void **state _unused_)
{
	static struct memory memory = { .base = STACK };
	__u64 regs[REGISTERS] = { [UNWIND_LINK_REGISTER] = (TEXT + 0x108) | PAC };
	const struct unwind_rule rules[] = {
		{ .cfa = UNWIND_VALUE | UNWIND_BASE_SP, .cfa_offset = 16,
		  .ra = UNWIND_VALUE | UNWIND_LINK_REGISTER },
		{ .cfa = UNWIND_VALUE | UNWIND_BASE_SP, .cfa_offset = 8,
		  .ra = UNWIND_LOAD | UNWIND_BASE_CFA, .ra_offset = -8 },
	};
	const uint16_t rows[] = { 0, 1 << 8 }, blocks[] = { 0, 1 };
	struct unwind_span spans[] = { { 0 } };
	struct unwind_table table = { .bytes = 0x200, .rules = rules, .rows = rows, .blocks = blocks,
				      .spans = spans, .block_count = 2, .index_count = 2, .row_count = 2,
				      .rule_count = 2 };
	struct unwind_mapping mapping = { .start = TEXT, .end = TEXT + 0x200, .bias = TEXT,
					  .table = &table };
	struct unwind_walk from = {
		.machine = UNWIND_MACHINE_AARCH64, .address_limit = LIMIT, .pac_mask = PAC,
		.pc = TEXT + 4, .sp = STACK, .regs = regs, .reg_count = REGISTERS,
		.mappings = &mapping, .mapping_count = 1, .max = FRAMES, .max_exact = EXACT,
		.memo = &memo, .memo_tag = unwind_memo_tag(1, 0),
	};
	static struct found found;

	memset(&memo, 0, sizeof(memo));
	seed = 1;
	/* who was called by a leaf has nothing to go by, whatever is remembered of that leaf */
	memory.words[2] = TEXT + 0x110;
	memory.words[3] = TEXT + 5;
	for (size_t i = 0; i < 3; i++) {
		found_walk(&found, &memory, &from, FRAMES);
		assert_int_equal(found.end, STACKTAP_END_NO_RULE);
		assert_int_equal(found.walk.count, 4);
		assert_int_equal(found.ips[1], TEXT + 0x108);
		assert_int_equal(found.ips[2], TEXT + 0x110);
		assert_int_equal(found.ips[3], TEXT + 5);
		/* the leaf and both callers, the last of which is looked up each time */
		assert_int_equal(found.walk.searches, i == 0 ? 4 : 1);
		assert_int_equal(found.reads, 2);
	}
	/* what is no address is refused as it is without memory */
	regs[UNWIND_LINK_REGISTER] = LIMIT;
	found_walk(&found, &memory, &from, FRAMES);
	assert_int_equal(found.end, STACKTAP_END_BAD_FRAME);
	regs[UNWIND_LINK_REGISTER] = 0;
	found_walk(&found, &memory, &from, FRAMES);
	assert_int_equal(found.end, STACKTAP_END_COMPLETE);
	assert_int_equal(found.walk.count, 1);
}

/* Remembered is only what a return address of the user's may lead to. */
static void no_call_returns_to_the_limit(void **state _unused_)
{
	static struct memory memory = { .base = STACK };
	const struct unwind_rule rules[] = {
		{ .cfa = UNWIND_VALUE | UNWIND_BASE_SP, .cfa_offset = 8,
		  .ra = UNWIND_LOAD | UNWIND_BASE_CFA, .ra_offset = -8 },
	};
	const uint16_t rows[] = { 0 }, blocks[] = { 0, 1 };
	struct unwind_span spans[] = { { 0 } };
	struct unwind_table table = { .bytes = 0x100, .rules = rules, .rows = rows, .blocks = blocks,
				      .spans = spans, .block_count = 1, .index_count = 1, .row_count = 1,
				      .rule_count = 1 };
	struct unwind_mapping mapping = { .start = LIMIT - 0x100, .end = LIMIT,
					  .bias = LIMIT - 0x100, .table = &table };
	struct unwind_walk from = {
		.machine = UNWIND_MACHINE_X86_64, .address_limit = LIMIT, .sp = STACK,
		.mappings = &mapping, .mapping_count = 1, .max = FRAMES, .max_exact = EXACT,
		.memo = &memo, .memo_tag = unwind_memo_tag(1, 0),
	};
	const struct { uint64_t word; int end; } ends[] = {
		{ LIMIT, STACKTAP_END_BAD_FRAME }, { 0, STACKTAP_END_COMPLETE },
		{ UINT64_MAX, STACKTAP_END_BAD_FRAME }, { LIMIT - 1, STACKTAP_END_NO_RULE },
	};
	static struct found found;

	memset(&memo, 0, sizeof(memo));
	seed = 1;
	for (size_t round = 0; round < 3; round++) {
		/* that code runs, so far as anybody knows */
		from.pc = LIMIT - 1;
		for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
			memory.words[0] = memory.words[1] = LIMIT - 16;
			memory.words[2] = ends[i].word;
			memory.words[3] = 0x1000;
			found_walk(&found, &memory, &from, FRAMES);
			assert_int_equal(found.end, ends[i].end);
			assert_int_equal(found.walk.count, ends[i].end == STACKTAP_END_NO_RULE ? 5 : 3);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_leafs_link_register_is_remembered),
		cmocka_unit_test(what_is_remembered_is_what_would_be_found),
		cmocka_unit_test(tables_are_noted_when_the_clock_moves),
		cmocka_unit_test(no_call_returns_to_the_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
