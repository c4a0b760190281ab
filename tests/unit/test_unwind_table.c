// SPDX-License-Identifier: Apache-2.0
/* The table's format: what the builder writes is found again, and nothing hostile passes. */
#include "unit.h"

#include <string.h>

#include "unwind/builder.h"
#include "unwind/listing.h"
#include "unwind/rule.h"

enum { MEMORY = 64 << 20 };

static uint32_t seed;

static uint32_t number(uint32_t limit)
{
	seed = seed * 1664525 + 1013904223;
	return (seed >> 8) % limit;
}

static struct unwind_rule rule_of(int32_t offset)
{
	return (struct unwind_rule){
		.cfa = UNWIND_VALUE | UNWIND_BASE_SP,
		.cfa_offset = offset,
		.ra = UNWIND_LOAD | UNWIND_BASE_CFA,
		.ra_offset = -8,
	};
}

struct row {
	uint64_t address;
	int32_t offset;
};

/* A table of these rows, in memory of exactly its size. */
static void *build(const struct row *rows, size_t count, uint16_t elf, uint64_t start,
		   size_t *ret_size)
{
	struct builder builder;
	void *data;

	assert_int_equal(builder_init(&builder, machine_find(elf), start, MEMORY), 0);
	for (int pass = 0; pass < 2; pass++) {
		for (size_t i = 0; i < count; i++) {
			struct unwind_rule rule = rule_of(rows[i].offset);

			assert_int_equal(builder_row(&builder, rows[i].address, &rule), 0);
		}
		if (pass == 0)
			assert_int_equal(builder_plan(&builder), 0);
	}
	assert_int_equal(builder_finish(&builder, &data, ret_size), 0);
	builder_done(&builder);
	return data;
}

static void expect(const struct unwind_table *table, uint64_t address, int32_t offset)
{
	const struct unwind_rule *rule = unwind_table_find(table, address);

	assert_non_null(rule);
	assert_int_equal(rule->cfa, UNWIND_VALUE | UNWIND_BASE_SP);
	assert_int_equal(rule->cfa_offset, offset);
}

static void rows_are_found(void **state)
{
	static const uint16_t machines[] = { EM_X86_64, EM_AARCH64 };

	(void)state;
	for (size_t m = 0; m < ARRAY_SIZE(machines); m++) {
		unsigned int unit = machines[m] == EM_AARCH64 ? 4 : 1;
		struct row rows[3000];
		struct unwind_table table;
		uint64_t address = 0x401000;
		struct listing listing;
		size_t size, seen = 0;
		void *data;

		for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
			/* dense, sparse, blocks in between without a row, more than 255 rules */
			address += (uint64_t)unit * (1 + (i % 100 < 60 ? 0 : number(700)));
			rows[i] = (struct row){ address, (int32_t)(8 * (1 + (i * 7) % 900)) };
		}
		data = build(rows, ARRAY_SIZE(rows), machines[m], 0x401000, &size);
		assert_int_equal(unwind_table_check(data, size, &table), 0);
		assert_true(table.wide_count > 0);
		assert_int_equal(unwind_table_find(&table, rows[0].address - unit)->cfa,
				 UNWIND_UNCOVERED);
		for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
			expect(&table, rows[i].address, rows[i].offset);
			expect(&table, rows[i].address + unit - 1, rows[i].offset);
			if (i > 0)
				expect(&table, rows[i].address - 1, rows[i - 1].offset);
		}
		assert_null(unwind_table_find(&table, table.start - 1));
		assert_null(unwind_table_find(&table, table.start + table.bytes));
		for (listing_begin(&listing, &table); listing_next(&listing); seen++)
			if (seen > 0) {
				assert_int_equal(listing.start, rows[seen - 1].address);
				assert_int_equal(listing.rule->cfa_offset, rows[seen - 1].offset);
			}
		assert_int_equal(seen, ARRAY_SIZE(rows) + 1);
		free(data);
	}
}

static void spans_reach_far(void **state)
{
	const struct row rows[] = { { 0x1000, 8 }, { 0x1001, 16 }, { 0x1000 + (70 << 20), 24 } };
	struct unwind_table table;
	size_t size;
	void *data = build(rows, ARRAY_SIZE(rows), EM_X86_64, 0x1000, &size);

	(void)state;
	assert_int_equal(unwind_table_check(data, size, &table), 0);
	assert_true(table.block_count > 65536);
	/* 1,119 spans in which no row begins cost 8 bytes each, and the last one has blocks up to its row */
	assert_true(size < 10000);
	assert_int_equal(table.spans[0].block, 0);
	assert_int_equal(table.spans[1].block, UNWIND_SPAN_EMPTY);
	expect(&table, 0x1000, 8);
	expect(&table, 0x1000 + (35 << 20), 16);
	expect(&table, 0x1000 + (70 << 20) - 1, 16);
	expect(&table, 0x1000 + (70 << 20), 24);
	free(data);
}

static void full_blocks_count_from_their_span(void **state)
{
	enum { ROWS = 3 * 65536 };
	struct row *rows = calloc(ROWS, sizeof(*rows));
	struct unwind_table table;
	size_t size;
	void *data;

	(void)state;
	/* a row at every byte: the most rows that a span can hold */
	assert_non_null(rows);
	for (size_t i = 0; i < ROWS; i++)
		rows[i] = (struct row){ 0x10000 + i, (int32_t)(8 + 8 * (i % 300)) };
	data = build(rows, ROWS, EM_X86_64, 0x10000, &size);
	assert_int_equal(unwind_table_check(data, size, &table), 0);
	for (size_t i = 0; i < ROWS; i++)
		expect(&table, rows[i].address, rows[i].offset);
	free(data);
	free(rows);
}

static void equal_rows_merge_and_the_last_of_an_address_wins(void **state)
{
	const struct row rows[] = { { 16, 8 }, { 20, 8 }, { 24, 16 }, { 24, 8 }, { 30, 24 } };
	struct unwind_table table;
	size_t size;
	void *data = build(rows, ARRAY_SIZE(rows), EM_X86_64, 0, &size);

	(void)state;
	assert_int_equal(unwind_table_check(data, size, &table), 0);
	/* uncovered, 8, 24 */
	assert_int_equal(table.row_count, 3);
	expect(&table, 29, 8);
	expect(&table, 30, 24);
	free(data);
}

static void limits_are_kept(void **state)
{
	struct unwind_rule rule = rule_of(8);
	struct builder builder;
	int r = 0;

	(void)state;
	assert_int_equal(builder_init(&builder, machine_find(EM_X86_64), 0x1000, 256 << 10), 0);
	assert_int_equal(builder_row(&builder, 0xfff, &rule), -EFBIG);
	assert_int_equal(builder_row(&builder, 0x1000 + (1ULL << 32), &rule), -EFBIG);
	for (uint32_t i = 0; i < 200000 && r == 0; i++) {
		rule = rule_of((int32_t)(8 * (i % 1000)));
		r = builder_row(&builder, 0x1000 + i, &rule);
	}
	assert_int_equal(r, 0);
	assert_int_equal(builder_plan(&builder), -ENOMEM);
	assert_true(builder.memory <= 256 << 10);
	builder_done(&builder);

	assert_int_equal(builder_init(&builder, machine_find(EM_X86_64), 0, MEMORY), 0);
	r = 0;
	for (uint32_t i = 0; i < 70000 && r == 0; i++) {
		rule = rule_of((int32_t)(8 * i));
		r = builder_row(&builder, i, &rule);
	}
	assert_int_equal(r, -EFBIG);
	assert_int_equal(builder.rule_count, UNWIND_RULES_MAX);
	builder_done(&builder);
}

/* A file that changes while it is compiled must not get more room than was counted. */
static void a_second_pass_that_differs_is_refused(void **state)
{
	static const struct row first[] = { { 0x1000, 8 }, { 0x1010, 16 }, { 0x2000, 24 } };
	static const struct row second[][4] = {
		{ { 0x1000, 8 }, { 0x1010, 16 }, { 0x2000, 32 } },		/* a new rule */
		{ { 0x1000, 8 }, { 0x1010, 16 }, { 0x1020, 8 }, { 0x1030, 24 } }, /* a row more */
		{ { 0x1000, 8 }, { 0x1010, 16 } },				/* a row less */
		{ { 0x1000, 8 }, { 0x1010, 16 }, { 0x20000, 24 } },		/* too far */
	};

	(void)state;
	/* many rows more, which would not fit the padding either */
	for (size_t i = 0; i < ARRAY_SIZE(second) + 1; i++) {
		struct builder builder;
		struct unwind_rule rule;
		size_t size;
		void *data;
		int r = 0;

		assert_int_equal(builder_init(&builder, machine_find(EM_X86_64), 0x1000, MEMORY),
				 0);
		for (size_t k = 0; k < ARRAY_SIZE(first); k++) {
			rule = rule_of(first[k].offset);
			assert_int_equal(builder_row(&builder, first[k].address, &rule), 0);
		}
		assert_int_equal(builder_plan(&builder), 0);
		for (size_t k = 0; i == ARRAY_SIZE(second) && k < 200 && r == 0; k++) {
			rule = rule_of(k % 2 ? 16 : 8);
			r = builder_row(&builder, 0x1000 + k, &rule);
		}
		for (size_t k = 0; i < ARRAY_SIZE(second) && k < ARRAY_SIZE(second[i]) &&
				   second[i][k].address && r == 0; k++) {
			rule = rule_of(second[i][k].offset);
			r = builder_row(&builder, second[i][k].address, &rule);
		}
		if (r == 0)
			r = builder_finish(&builder, &data, &size);
		assert_int_equal(r, -ESTALE);
		builder_done(&builder);
	}
}

/* Give a changed table a fitting checksum, so that the check has to find what is wrong itself. */
static int check_sealed(void *data, size_t size)
{
	struct unwind_table_header *header = data;
	struct unwind_table table;

	header->checksum = unwind_table_checksum(data, size);
	return unwind_table_check(data, size, &table);
}

static void broken_headers_are_refused(void **state)
{
	const struct row rows[] = { { 0x1000, 8 }, { 0x1010, 16 } };
	struct unwind_table_header good, *header;
	struct unwind_table table;
	size_t size;
	void *data = build(rows, ARRAY_SIZE(rows), EM_X86_64, 0x1000, &size);

	(void)state;
	header = data;
	good = *header;
	assert_int_equal(unwind_table_check(data, size, &table), 0);
	assert_int_equal(unwind_table_check(data, size - 8, &table), -EINVAL);
	assert_int_equal(unwind_table_check(data, 40, &table), -EINVAL);
	assert_int_equal(unwind_table_check(data, 0, &table), -EINVAL);
	header->checksum++;
	assert_int_equal(unwind_table_check(data, size, &table), -EINVAL);
#define refused(change)                                                                            \
	do {                                                                                       \
		*header = good;                                                                    \
		change;                                                                            \
		assert_int_equal(check_sealed(data, size), -EINVAL);                               \
	} while (0)
	refused(header->magic++);
	refused(header->version++);
	refused(header->shift = 3);
	refused(header->zero[1] = 1);
	refused(header->indexed++);
	refused(header->indexed--);
	refused(header->saved = 3);
	refused(header->saved = 1);
	refused(header->start++);
	refused(header->start = 1ULL << 63);
	refused(header->rows++);
	refused(header->rows = 0);
	refused(header->blocks++);
	refused(header->wides++);
	refused(header->rules--);
	refused(header->rows = 0xffffffff);
	refused(header->blocks = 0xffffffff);
	refused(header->wides = 0xffffffff);
#undef refused
	*header = good;
	assert_int_equal(check_sealed(data, size), 0);
	free(data);
}

/* The element at @element with another value. */
static void refused(void *data, size_t size, const void *element, size_t element_size,
		    uint32_t value)
{
	uint8_t *at = (uint8_t *)data + ((const uint8_t *)element - (const uint8_t *)data);
	uint32_t old = 0;

	/* little-endian, as everything that is unwound */
	memcpy(&old, at, element_size);
	assert_int_not_equal(old, value);
	memcpy(at, &value, element_size);
	assert_int_equal(check_sealed(data, size), -EINVAL);
	memcpy(at, &old, element_size);
}

static void broken_arrays_are_refused(void **state)
{
	struct row rows[601];
	struct unwind_table table;
	uint8_t *bytes;
	size_t size;
	void *data;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		rows[i] = (struct row){ 0x1000 + 3 * i, (int32_t)(8 * (i % 300)) };
	data = build(rows, ARRAY_SIZE(rows), EM_X86_64, 0x1000, &size);
	assert_int_equal(unwind_table_check(data, size, &table), 0);
	assert_true(table.wide_count > 2 && table.block_count > 3);
	bytes = data;
	/* a block that begins behind the next one, beyond all rows, or not at the first row */
	refused(data, size, &table.blocks[1], sizeof(table.blocks[0]),
		table.blocks[2] + 1);
	refused(data, size, &table.blocks[1], sizeof(table.blocks[0]),
		0x7fff);
	refused(data, size, &table.blocks[table.block_count - 1], sizeof(table.blocks[0]),
		table.row_count + 1);
	refused(data, size, &table.blocks[0], sizeof(table.blocks[0]),
		1);
	refused(data, size, &table.spans[0].row, 4, 1);
	refused(data, size, &table.spans[0].row, 4, 0xffffffff);
	/* nor where blocks are not their span's */
	refused(data, size, &table.spans[0].block, 4, 1);
	refused(data, size, &table.spans[0].block, 4, UNWIND_SPAN_EMPTY);
	/* rows that do not ascend, or with a rule that there is not */
	refused(data, size, &table.rows[2], sizeof(table.rows[0]),
		table.rows[1]);
	refused(data, size, &table.wide_rules[0], sizeof(table.wide_rules[0]),
		table.rule_count);
	refused(data, size, &table.wide_rules[table.wide_count - 1], sizeof(table.wide_rules[0]),
		0xffff);
	/* a rule that means nothing, out of use as it may be */
	refused(data, size, &table.rules[table.rule_count - 1].cfa, 1, UNWIND_SPECIAL | 0x3f);
	/* a list beside that is not about the rows that need it */
	refused(data, size, &table.wide_rows[0], sizeof(table.wide_rows[0]),
		table.wide_rows[0] + 1);
	refused(data, size, &table.wide_rows[1], sizeof(table.wide_rows[0]),
		table.wide_rows[0]);
	refused(data, size, &table.rows[table.wide_rows[0]], sizeof(table.rows[0]),
		table.rows[table.wide_rows[0]] & 0xff);
	refused(data, size, &table.rows[0], sizeof(table.rows[0]),
		table.rows[0] | UNWIND_ROW_WIDE << 8);
	assert_int_equal(check_sealed(data, size), 0);
	assert_true((const uint8_t *)(table.rows + table.row_count) < bytes + size);
	bytes[size - 1] = 1;
	assert_int_equal(check_sealed(data, size), -EINVAL);
	free(data);
}

static void broken_rules_are_refused(void **state)
{
	static const struct unwind_rule bad[] = {
		{ .cfa = UNWIND_END + 1 },
		{ .cfa = UNWIND_END, .ra = UNWIND_VALUE },
		{ .cfa = UNWIND_NO_RULE, .cfa_offset = 8 },
		{ .cfa = UNWIND_VALUE | UNWIND_BASE_CFA, .ra = UNWIND_LOAD | UNWIND_BASE_CFA },
		{ .cfa = UNWIND_VALUE | 33, .ra = UNWIND_LOAD | UNWIND_BASE_CFA },
		{ .cfa = UNWIND_VALUE | 7, .ra = UNWIND_SPECIAL },
		{ .cfa = UNWIND_VALUE | 7, .ra = UNWIND_PLT | 7 },
		{ .cfa = UNWIND_VALUE | 7, .ra = UNWIND_LOAD | 0x3c },
		{ .cfa = UNWIND_VALUE | 7, .ra = UNWIND_LOAD | 7, .fp = UNWIND_FP_UNDEFINED + 1 },
		{ .cfa = UNWIND_VALUE | 7, .ra = UNWIND_LOAD | 7, .fp = UNWIND_PLT | 7 },
		{ .cfa = UNWIND_VALUE | 7, .ra = UNWIND_LOAD | 7, .fp_offset = 8 },
		{ .cfa = UNWIND_VALUE | 7, .ra = UNWIND_LOAD | 7, .extra = 1 },
		{ .cfa = UNWIND_PLT | 7, .ra = UNWIND_LOAD | 7 },
		{ .cfa = UNWIND_PLT | 7, .ra = UNWIND_LOAD | 7, .extra = UNWIND_PLT_ENTRY },
		{ .cfa = UNWIND_VALUE | 7, .ra = UNWIND_LOAD | 7, .cfa_offset = INT32_MIN },
		{ .cfa = UNWIND_VALUE | 7, .ra = UNWIND_LOAD | 7, .ra_offset = INT32_MAX },
		{ .cfa = UNWIND_VALUE | 7, .ra = UNWIND_LOAD | 7, .fp = UNWIND_LOAD | 7,
		  .fp_offset = INT32_MAX },
	};
	static const struct unwind_rule good[] = {
		{ .cfa = UNWIND_UNCOVERED },
		{ .cfa = UNWIND_END },
		{ .cfa = UNWIND_LOAD | 7, .ra = UNWIND_LOAD | 7, .extra = 0xff },
		{ .cfa = UNWIND_PLT | 7, .ra = UNWIND_VALUE | 30, .extra = 11 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_false(unwind_rule_valid(&bad[i]));
	for (size_t i = 0; i < ARRAY_SIZE(good); i++)
		assert_true(unwind_rule_valid(&good[i]));
}

/* Whatever passes must be safe to look up; the sanitizers watch. */
static void any_changed_byte_is_refused_or_harmless(void **state)
{
	struct row rows[700];
	struct unwind_table table;
	size_t size, passed = 0;
	uint8_t *data;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		rows[i] = (struct row){ 0x1000 + 3 * i, (int32_t)(8 * (i % 300)) };
	data = build(rows, ARRAY_SIZE(rows), EM_X86_64, 0x1000, &size);
	for (size_t at = 0; at < size; at++) {
		static const uint8_t changes[] = { 1, 0x80, 0xff };

		for (size_t i = 0; i < ARRAY_SIZE(changes); i++) {
			data[at] ^= changes[i];
			((struct unwind_table_header *)(void *)data)->checksum =
				unwind_table_checksum(data, size);
			if (unwind_table_check(data, size, &table) == 0) {
				passed++;
				for (uint64_t offset = 0; offset < table.bytes; offset += 5)
					unwind_table_find(&table, table.start + offset);
			}
			data[at] ^= changes[i];
		}
	}
	/* offsets of rules may have any value, most else not */
	assert_true(passed > 0 && passed < 3 * size);
	free(data);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_are_found),
		cmocka_unit_test(spans_reach_far),
		cmocka_unit_test(full_blocks_count_from_their_span),
		cmocka_unit_test(equal_rows_merge_and_the_last_of_an_address_wins),
		cmocka_unit_test(limits_are_kept),
		cmocka_unit_test(a_second_pass_that_differs_is_refused),
		cmocka_unit_test(broken_headers_are_refused),
		cmocka_unit_test(broken_arrays_are_refused),
		cmocka_unit_test(broken_rules_are_refused),
		cmocka_unit_test(any_changed_byte_is_refused_or_harmless),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
