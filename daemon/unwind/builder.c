// SPDX-License-Identifier: Apache-2.0
#include "unwind/builder.h"

#include <string.h>

#include "base/hash.h"

enum {
	ROWS_FIRST = 4096,
	RULES_FIRST = 256,
};

int builder_init(struct builder *builder, const struct machine *machine, uint64_t start,
		 size_t memory_limit)
{
	uint64_t block = 1ULL << (UNWIND_BLOCK_SHIFT + machine->shift);
	struct unwind_rule uncovered = { .cfa = UNWIND_UNCOVERED };

	*builder = (struct builder){
		.machine = machine,
		.start = start & ~(block - 1),
		.memory_limit = memory_limit,
	};
	return builder_row(builder, builder->start, &uncovered);
}

void builder_done(struct builder *builder)
{
	free(builder->units);
	free(builder->numbers);
	free(builder->rules);
	free(builder->slots);
	*builder = (struct builder){ 0 };
}

static bool charge(struct builder *builder, size_t bytes)
{
	if (bytes > builder->memory_limit - builder->memory)
		return false;
	builder->memory += bytes;
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

static size_t slot_of(const struct builder *builder, const struct unwind_rule *rule)
{
	size_t slot = hash_bytes(0, rule, sizeof(*rule)) & (builder->slot_count - 1);

	while (builder->slots[slot] &&
	       memcmp(&builder->rules[builder->slots[slot] - 1], rule, sizeof(*rule)) != 0)
		slot = (slot + 1) & (builder->slot_count - 1);
	return slot;
}

static int grow_rules(struct builder *builder)
{
	size_t capacity = builder->rule_capacity ? 2 * builder->rule_capacity : RULES_FIRST;
	size_t slots = 2 * capacity;

	if (!grow(builder, (void **)&builder->rules, builder->rule_capacity, capacity,
		  sizeof(*builder->rules)) ||
	    !grow(builder, (void **)&builder->slots, builder->slot_count, slots,
		  sizeof(*builder->slots)))
		return -ENOMEM;
	builder->rule_capacity = capacity;
	builder->slot_count = slots;
	memset(builder->slots, 0, slots * sizeof(*builder->slots));
	for (size_t i = 0; i < builder->rule_count; i++)
		builder->slots[slot_of(builder, &builder->rules[i])] = (uint16_t)(i + 1);
	return 0;
}

static int find_rule(struct builder *builder, const struct unwind_rule *rule, uint16_t *ret_number)
{
	size_t slot;
	int r;

	if (builder->rule_count &&
	    !memcmp(&builder->rules[builder->last], rule, sizeof(*rule))) {
		*ret_number = builder->last;
		return 0;
	}
	if (builder->rule_count == builder->rule_capacity) {
		r = grow_rules(builder);
		if (r < 0)
			return r;
	}
	slot = slot_of(builder, rule);
	if (!builder->slots[slot]) {
		/* one is left for a table's 65535, for their number + 1 must fit */
		if (builder->rule_count == UNWIND_RULES_MAX)
			return -EFBIG;
		builder->rules[builder->rule_count++] = *rule;
		builder->slots[slot] = (uint16_t)builder->rule_count;
	}
	builder->last = *ret_number = (uint16_t)(builder->slots[slot] - 1);
	return 0;
}

static int grow_rows(struct builder *builder)
{
	size_t capacity = builder->capacity ? builder->capacity + builder->capacity / 2 : ROWS_FIRST;

	if (!grow(builder, (void **)&builder->units, builder->capacity, capacity,
		  sizeof(*builder->units)) ||
	    !grow(builder, (void **)&builder->numbers, builder->capacity, capacity,
		  sizeof(*builder->numbers)))
		return -ENOMEM;
	builder->capacity = capacity;
	return 0;
}

int builder_row(struct builder *builder, uint64_t address, const struct unwind_rule *rule)
{
	uint64_t unit = (address - builder->start) >> builder->machine->shift;
	uint16_t number;
	int r;

	if (address < builder->start || unit >= (uint64_t)UNWIND_BLOCKS_MAX << UNWIND_BLOCK_SHIFT)
		return -EFBIG;
	r = find_rule(builder, rule, &number);
	if (r < 0)
		return r;
	while (builder->count && builder->units[builder->count - 1] >= unit)
		builder->count--;
	if (builder->count && builder->numbers[builder->count - 1] == number)
		return 0;
	if (builder->count == builder->capacity) {
		r = grow_rows(builder);
		if (r < 0)
			return r;
	}
	builder->units[builder->count] = (uint32_t)unit;
	builder->numbers[builder->count++] = number;
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

/* Replace numbers by their rank in use; ret_rules: rules by rank, those without use left out. */
static int rank_rules(struct builder *builder, struct unwind_rule **ret_rules, size_t *ret_count)
{
	_cleanup_free_ struct unwind_rule *rules = NULL;
	_cleanup_free_ uint16_t *ranks = NULL;
	_cleanup_free_ struct use *uses = NULL;
	size_t count = 0;

	uses = calloc(builder->rule_count, sizeof(*uses));
	ranks = calloc(builder->rule_count, sizeof(*ranks));
	rules = calloc(builder->rule_count, sizeof(*rules));
	if (!uses || !ranks || !rules)
		return -ENOMEM;
	for (size_t i = 0; i < builder->rule_count; i++)
		uses[i].number = (uint16_t)i;
	for (size_t i = 0; i < builder->count; i++)
		uses[builder->numbers[i]].count++;
	qsort(uses, builder->rule_count, sizeof(*uses), compare_uses);
	for (; count < builder->rule_count && uses[count].count; count++) {
		ranks[uses[count].number] = (uint16_t)count;
		rules[count] = builder->rules[uses[count].number];
	}
	for (size_t i = 0; i < builder->count; i++)
		builder->numbers[i] = ranks[builder->numbers[i]];
	*ret_rules = steal_ptr(rules);
	*ret_count = count;
	return 0;
}

/* Write the arrays behind @header, whose counts are final; everything is zero yet. */
static void fill(const struct builder *builder, struct unwind_table_header *header,
		 const struct unwind_rule *rules)
{
	struct unwind_rule *to_rules = (struct unwind_rule *)(header + 1);
	uint32_t *spans = (uint32_t *)(to_rules + header->rules);
	uint32_t *wide_rows = spans + unwind_table_spans(header->blocks);
	uint16_t *wide_rules = (uint16_t *)(wide_rows + header->wides);
	uint16_t *blocks = wide_rules + header->wides;
	uint16_t *rows = blocks + header->blocks;
	size_t block = 0, wide = 0;

	memcpy(to_rules, rules, header->rules * sizeof(*rules));
	for (size_t i = 0; i < builder->count; i++) {
		for (; block <= builder->units[i] >> UNWIND_BLOCK_SHIFT; block++) {
			if (!(block & ((1U << UNWIND_BLOCK_SHIFT) - 1)))
				spans[block >> UNWIND_BLOCK_SHIFT] = (uint32_t)i;
			blocks[block] = (uint16_t)(i - spans[block >> UNWIND_BLOCK_SHIFT]);
		}
		rows[i] = (uint16_t)(builder->units[i] & 0xff);
		if (builder->numbers[i] >= UNWIND_ROW_WIDE) {
			rows[i] |= UNWIND_ROW_WIDE << 8;
			wide_rows[wide] = (uint32_t)i;
			wide_rules[wide++] = builder->numbers[i];
		} else {
			rows[i] |= (uint16_t)(builder->numbers[i] << 8);
		}
	}
}

int builder_finish(struct builder *builder, void **ret_data, size_t *ret_size)
{
	_cleanup_free_ struct unwind_rule *rules = NULL;
	struct unwind_table_header header = {
		.magic = UNWIND_TABLE_MAGIC,
		.version = UNWIND_TABLE_VERSION,
		.machine = builder->machine->elf,
		.start = builder->start,
		.rows = (uint32_t)builder->count,
		.shift = builder->machine->shift,
	};
	struct unwind_table_header *to;
	size_t rule_count;
	uint64_t size;
	int r;

	r = rank_rules(builder, &rules, &rule_count);
	if (r < 0)
		return r;
	header.rules = (uint32_t)rule_count;
	header.blocks = (builder->units[builder->count - 1] >> UNWIND_BLOCK_SHIFT) + 1;
	for (size_t i = 0; i < builder->count; i++)
		header.wides += builder->numbers[i] >= UNWIND_ROW_WIDE;
	size = unwind_table_bytes(&header);
	if (size > UNWIND_TABLE_MAX_BYTES)
		return -EFBIG;
	if (size > builder->memory_limit - builder->memory)
		return -ENOMEM;
	to = calloc(1, size);
	if (!to)
		return -ENOMEM;
	*to = header;
	fill(builder, to, rules);
	to->checksum = unwind_table_checksum(to, size);
	*ret_data = to;
	*ret_size = size;
	return 0;
}
