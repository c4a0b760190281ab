// SPDX-License-Identifier: Apache-2.0
#include "unwind/builder.h"

#include <string.h>

#include "base/hash.h"

enum { RULES_FIRST = 256 };

/* Every table begins with code that nothing covers, if only for no bytes. */
static int begin(struct builder *builder)
{
	struct unwind_rule uncovered = { .cfa = UNWIND_UNCOVERED };

	builder->rows = builder->wides = builder->blocks = builder->spans = builder->indexed = 0;
	builder->unit = 0;
	builder->cover = (struct builder_cover){ 0 };
	builder->has_pending = false;
	return builder_row(builder, builder->start, &uncovered);
}

int builder_init(struct builder *builder, const struct machine *machine, uint64_t start,
		 size_t memory_limit)
{
	uint64_t block = 1ULL << (UNWIND_BLOCK_SHIFT + machine->shift);

	*builder = (struct builder){
		.machine = machine,
		.start = start & ~(block - 1),
		.memory_limit = memory_limit,
	};
	index_init(&builder->index, POOL_TABLES);
	return begin(builder);
}

int builder_with_saved(struct builder *builder)
{
	const size_t before = index_bytes(&builder->index);

	builder->with_saved = true;
	builder->rule_count = 0;
	index_clear(&builder->index);
	builder->memory -= before - index_bytes(&builder->index);
	return begin(builder);
}

void builder_done(struct builder *builder)
{
	free(builder->rules);
	free(builder->uses);
	index_free(&builder->index);
	free(builder->table);
	*builder = (struct builder){ 0 };
}

static bool charge(struct builder *builder, size_t bytes)
{
	if (bytes > builder->memory_limit - builder->memory)
		return false;
	builder->memory += bytes;
	builder->memory_peak = max_of(builder->memory_peak, builder->memory);
	return true;
}

void *builder_alloc(struct builder *builder, size_t bytes)
{
	void *memory;

	if (!charge(builder, bytes))
		return NULL;
	memory = malloc(max_of(bytes, (size_t)1));
	if (!memory)
		builder->memory -= bytes;
	return memory;
}

void builder_free(struct builder *builder, void *memory, size_t bytes)
{
	if (memory)
		builder->memory -= bytes;
	free(memory);
}

static bool grow(struct builder *builder, void **array, size_t old, size_t new, size_t element)
{
	void *grown;

	if (!charge(builder, (new - old) * element))
		return false;
	grown = reallocarray(*array, new, element);
	if (!grown) {
		builder->memory -= (new - old) * element;
		return false;
	}
	*array = grown;
	return true;
}

static uint64_t hash_of(const void *ctx, uint32_t position)
{
	return hash_bytes((const struct builder_rule *)ctx + position, sizeof(struct builder_rule));
}

static int grow_rules(struct builder *builder)
{
	size_t capacity = builder->rule_capacity ? 2 * builder->rule_capacity : RULES_FIRST;

	if (builder->rule_count < builder->rule_capacity)
		return 0;
	/* what has grown stays so if the next one cannot; the capacity changes when both have */
	if (!grow(builder, (void **)&builder->rules, builder->rule_capacity, capacity,
		  sizeof(*builder->rules)) ||
	    !grow(builder, (void **)&builder->uses, builder->rule_capacity, capacity,
		  sizeof(*builder->uses)))
		return -ENOMEM;
	builder->rule_capacity = capacity;
	return 0;
}

static int grow_index(struct builder *builder)
{
	const size_t before = index_bytes(&builder->index);

	if (index_reserve(&builder->index, hash_of, builder->rules) < 0)
		return -ENOMEM;
	return charge(builder, index_bytes(&builder->index) - before) ? 0 : -ENOMEM;
}

static int add_rule(struct builder *builder, const struct builder_rule *rule, uint64_t hash)
{
	int r;

	if (builder->table)
		return -ESTALE;
	/* their count must fit a table */
	if (builder->rule_count == UNWIND_RULES_MAX)
		return -EFBIG;
	r = grow_rules(builder) ?: grow_index(builder);
	if (r < 0)
		return r;
	builder->uses[builder->rule_count] = 0;
	builder->wants_saved |= builder->machine->saved &&
				(rule->rule.cfa & UNWIND_HOW_MASK) != UNWIND_SPECIAL &&
				(rule->rule.cfa & UNWIND_BASE_MASK) == builder->machine->saved;
	index_insert(&builder->index, hash, (uint32_t)builder->rule_count);
	builder->rules[builder->rule_count++] = *rule;
	return 0;
}

/* A function's rules mostly come again soon: who finds one there need not hash it. */
static uint16_t *recent_of(struct builder *builder, const struct builder_rule *rule)
{
	const uint32_t words = (uint32_t)rule->rule.cfa_offset / UNWIND_WORD;

	return &builder->recent[(words ^ rule->rule.fp ^ (uint32_t)rule->rule.cfa << 3) % BUILDER_RECENT];
}

static int find_rule(struct builder *builder, const struct builder_rule *rule,
		     uint16_t *ret_number)
{
	uint16_t *recent = recent_of(builder, rule);
	struct index_probe probe;
	uint32_t i = *recent;
	uint64_t hash;
	int r = 0;

	/* what was looked up before builder_with_saved() may be no rule any more */
	if (i >= builder->rule_count || memcmp(&builder->rules[i], rule, sizeof(*rule)) != 0) {
		hash = hash_bytes(rule, sizeof(*rule));
		probe = index_first(&builder->index, hash);
		do
			i = index_next(&builder->index, &probe);
		while (i != INDEX_NONE && memcmp(&builder->rules[i], rule, sizeof(*rule)) != 0);
		if (i == INDEX_NONE) {
			i = (uint32_t)builder->rule_count;
			r = add_rule(builder, rule, hash);
		}
		if (r < 0)
			return r;
		*recent = (uint16_t)i;
	}
	*ret_number = (uint16_t)i;
	return 0;
}

/* Where the table has its arrays; it is written by the header's counts, as it will be read. */
struct arrays {
	struct unwind_rule *rules;
	int32_t *saved;
	struct unwind_span *spans;
	uint32_t *wide_rows;
	uint16_t *wide_rules, *blocks, *rows;
};

static struct arrays arrays_of(struct unwind_table_header *header)
{
	struct arrays arrays = { .rules = (struct unwind_rule *)(header + 1) };

	arrays.saved = (int32_t *)(arrays.rules + header->rules);
	arrays.spans = (struct unwind_span *)(arrays.saved + (header->saved ? header->rules : 0));
	arrays.wide_rows = (uint32_t *)(arrays.spans + unwind_table_spans(header->blocks));
	arrays.wide_rules = (uint16_t *)(arrays.wide_rows + header->wides);
	arrays.blocks = arrays.wide_rules + header->wides;
	arrays.rows = arrays.blocks + header->indexed;
	return arrays;
}

static uint32_t span_of(uint32_t unit)
{
	return unit >> UNWIND_BLOCK_SHIFT >> UNWIND_BLOCK_SHIFT;
}

/* Entries in blocks[] up to the one before @block, which are all of the last span that was begun. */
static int write_blocks(struct builder *builder, const struct arrays *arrays, uint32_t block)
{
	for (; builder->blocks < block; builder->blocks++) {
		if (builder->indexed >= builder->table->indexed)
			return -ESTALE;
		arrays->blocks[builder->indexed++] =
			(uint16_t)(builder->rows - arrays->spans[builder->spans - 1].row);
	}
	return 0;
}

/* The span of the next row, and those before it that have none. */
static int begin_span(struct builder *builder, const struct arrays *arrays, uint32_t span)
{
	int r = write_blocks(builder, arrays, builder->spans << UNWIND_BLOCK_SHIFT);

	if (r < 0)
		return r;
	for (; builder->spans <= span; builder->spans++)
		arrays->spans[builder->spans] = (struct unwind_span){
			.row = builder->rows,
			.block = builder->spans < span ? UNWIND_SPAN_EMPTY : builder->indexed,
		};
	builder->blocks = span << UNWIND_BLOCK_SHIFT;
	return 0;
}

/* Write the next row. */
static int write_row(struct builder *builder, uint32_t unit, uint16_t number)
{
	const struct unwind_table_header *header = builder->table;
	struct arrays arrays = arrays_of(builder->table);
	uint32_t rule = builder->uses[number], block = unit >> UNWIND_BLOCK_SHIFT;
	int r = 0;

	if (builder->rows >= header->rows || block >= header->blocks || rule >= header->rules)
		return -ESTALE;
	if (span_of(unit) >= builder->spans)
		r = begin_span(builder, &arrays, span_of(unit));
	if (r == 0)
		r = write_blocks(builder, &arrays, block + 1);
	if (r < 0)
		return r;
	if (rule >= UNWIND_ROW_WIDE) {
		if (builder->wides >= header->wides)
			return -ESTALE;
		arrays.wide_rows[builder->wides] = builder->rows;
		arrays.wide_rules[builder->wides++] = (uint16_t)rule;
		rule = UNWIND_ROW_WIDE;
	}
	arrays.rows[builder->rows++] = (uint16_t)((unit & 0xff) | rule << 8);
	return 0;
}

static void add_cover(struct builder *builder, uint32_t unit)
{
	uint64_t bytes = (uint64_t)(unit - builder->unit) << builder->machine->shift;
	const struct unwind_rule *rule = &builder->rules[builder->settled].rule;

	if (rule->cfa == UNWIND_NO_RULE)
		builder->cover.no_rule += bytes;
	else if (rule->cfa != UNWIND_UNCOVERED)
		builder->cover.covered += bytes;
}

/* The pending row stays as it is, unless it says what the row before does. */
static int settle(struct builder *builder)
{
	uint32_t unit = builder->pending_unit;
	uint16_t number = builder->pending;

	if (!builder->has_pending)
		return 0;
	builder->has_pending = false;
	if (builder->rows && builder->settled == number)
		return 0;
	if (builder->rows)
		add_cover(builder, unit);
	if (!builder->table && (!builder->rows || span_of(unit) != span_of(builder->unit)))
		builder->indexed += UNWIND_SPAN_BLOCKS;
	builder->unit = unit;
	builder->settled = number;
	if (builder->table)
		return write_row(builder, unit, number);
	builder->uses[number]++;
	builder->rows++;
	return 0;
}

int builder_row(struct builder *builder, uint64_t address, const struct unwind_rule *rule)
{
	return builder_row_saved(builder, address, rule, UNWIND_SAVED_SAME);
}

int builder_row_saved(struct builder *builder, uint64_t address, const struct unwind_rule *rule,
		      int32_t saved)
{
	struct builder_rule both = {
		.rule = *rule,
		.saved = builder->with_saved ? saved : UNWIND_SAVED_SAME,
	};
	uint64_t unit = (address - builder->start) >> builder->machine->shift;
	uint16_t number;
	int r;

	if (address < builder->start || unit >= (uint64_t)UNWIND_BLOCKS_MAX << UNWIND_BLOCK_SHIFT)
		return -EFBIG;
	r = find_rule(builder, &both, &number);
	if (r < 0)
		return r;
	if (builder->has_pending && builder->pending_unit < unit) {
		r = settle(builder);
		if (r < 0)
			return r;
	}
	builder->has_pending = true;
	builder->pending_unit = (uint32_t)unit;
	builder->pending = number;
	return 0;
}

struct use {
	uint32_t count;
	uint16_t number;
};

static int compare_uses(const void *a, const void *b)
{
	const struct use *x = a, *y = b;

	if (x->count != y->count)
		return x->count < y->count ? 1 : -1;
	return x->number < y->number ? -1 : x->number > y->number;
}

/* The rules in use by how often they are. */
static struct use *rank_rules(const struct builder *builder, struct unwind_table_header *header)
{
	struct use *uses = calloc(builder->rule_count, sizeof(*uses));

	if (!uses)
		return NULL;
	for (size_t i = 0; i < builder->rule_count; i++)
		uses[i] = (struct use){ .count = builder->uses[i], .number = (uint16_t)i };
	qsort(uses, builder->rule_count, sizeof(*uses), compare_uses);
	while (header->rules < builder->rule_count && uses[header->rules].count) {
		if (header->rules >= UNWIND_ROW_WIDE)
			header->wides += uses[header->rules].count;
		header->rules++;
	}
	return uses;
}

int builder_plan(struct builder *builder)
{
	_cleanup_free_ struct use *uses = NULL;
	struct unwind_table_header header = {
		.magic = UNWIND_TABLE_MAGIC,
		.version = UNWIND_TABLE_VERSION,
		.machine = builder->machine->elf,
		.start = builder->start,
		.shift = builder->machine->shift,
		.saved = builder->with_saved ? builder->machine->saved : 0,
	};
	struct arrays arrays;
	uint64_t bytes;
	int r;

	r = settle(builder);
	if (r < 0)
		return r;
	header.rows = builder->rows;
	header.blocks = (builder->unit >> UNWIND_BLOCK_SHIFT) + 1;
	/* the last span ends with its last row */
	header.indexed = builder->indexed - (-header.blocks & (UNWIND_SPAN_BLOCKS - 1));
	uses = rank_rules(builder, &header);
	if (!uses)
		return -ENOMEM;
	bytes = unwind_table_bytes(&header);
	if (bytes > UNWIND_TABLE_MAX_BYTES)
		return -EFBIG;
	if (!charge(builder, bytes))
		return -ENOMEM;
	builder->table = calloc(1, bytes);
	if (!builder->table)
		return -ENOMEM;
	builder->table_bytes = bytes;
	*builder->table = header;
	arrays = arrays_of(builder->table);
	for (size_t i = 0; i < builder->rule_count; i++)
		builder->uses[uses[i].number] = (uint32_t)i;
	for (size_t i = 0; i < header.rules; i++) {
		arrays.rules[i] = builder->rules[uses[i].number].rule;
		if (header.saved)
			arrays.saved[i] = builder->rules[uses[i].number].saved;
	}
	return begin(builder);
}

int builder_finish(struct builder *builder, void **ret_data, size_t *ret_size)
{
	int r;

	r = settle(builder);
	if (r < 0)
		return r;
	if (builder->rows != builder->table->rows || builder->blocks != builder->table->blocks ||
	    builder->indexed != builder->table->indexed ||
	    builder->wides != builder->table->wides)
		return -ESTALE;
	builder->table->checksum = unwind_table_checksum(builder->table, builder->table_bytes);
	*ret_data = steal_ptr(builder->table);
	*ret_size = builder->table_bytes;
	return 0;
}
