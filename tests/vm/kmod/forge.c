// SPDX-License-Identifier: Apache-2.0
#include "forge.h"

#include <elf.h>
#include <errno.h>
#include <stacktap/unwind_table.h>
#include <stdlib.h>
#include <string.h>

#include "frameless.h"

#ifdef __x86_64__
#define MACHINE EM_X86_64
#define SHIFT 0
#else
#define MACHINE EM_AARCH64
#define SHIFT 2
#endif

/* between these two it depends on the machine's page tables where user addresses end */
#define SURE_LIMIT 0x7ffffffff000ull
#define ADDRESS_LIMIT (1ull << 57)

enum {
	MAX_RULES = 400,		/* more than a row can name, so that some are wide */
	MAX_BLOCKS = 2048,
	MAX_ROWS_OF_BLOCK = 12,
};

void dice_seed(struct dice *dice, uint64_t seed)
{
	dice->state = seed * 0x9e3779b97f4a7c15ull + 1;
}

uint64_t dice_roll(struct dice *dice, uint64_t limit)
{
	dice->state ^= dice->state << 13;
	dice->state ^= dice->state >> 7;
	dice->state ^= dice->state << 17;
	return (dice->state >> 11) % limit;
}

static int32_t roll_offset(struct dice *dice)
{
	switch (dice_roll(dice, 12)) {
	case 0:
		return (int32_t)dice_roll(dice, 2u * UNWIND_OFFSET_MAX + 1) - UNWIND_OFFSET_MAX;
	case 1:
		return dice_roll(dice, 2) ? UNWIND_OFFSET_MAX : -UNWIND_OFFSET_MAX;
	case 2:
		return (int32_t)dice_roll(dice, 4096) - 2048;
	default:
		return ((int32_t)dice_roll(dice, 64) - 24) * 8;
	}
}

static uint8_t roll_base(struct dice *dice, int may_be_cfa)
{
	switch (dice_roll(dice, may_be_cfa ? 8 : 6)) {
	case 0:
		return dice_roll(dice, UNWIND_REGISTERS);
	case 1:
		return UNWIND_BASE_FP;
	case 6:
	case 7:
		return UNWIND_BASE_CFA;
	default:
		return UNWIND_BASE_SP;
	}
}

static void roll_value(struct dice *dice, uint8_t *how, int32_t *offset)
{
	*how = (dice_roll(dice, 4) ? UNWIND_LOAD : UNWIND_VALUE) | roll_base(dice, 1);
	*offset = roll_offset(dice);
}

static void roll_rule(struct dice *dice, struct unwind_rule *rule)
{
	memset(rule, 0, sizeof(*rule));
	switch (dice_roll(dice, 16)) {
	case 0:
		rule->cfa = dice_roll(dice, UNWIND_END + 1);
		return;
	case 1:
	case 2:
		rule->cfa = UNWIND_LOAD;
		rule->extra = dice_roll(dice, UNWIND_EXTRA_MASK + 1);
		break;
	case 3:
		rule->cfa = UNWIND_PLT;
		rule->extra = 1 + dice_roll(dice, UNWIND_PLT_ENTRY - 1);
		break;
	default:
		rule->cfa = UNWIND_VALUE;
		break;
	}
	if (!dice_roll(dice, 8))
		rule->extra |= UNWIND_EXTRA_SIGNAL;
	rule->cfa |= roll_base(dice, 0);
	rule->cfa_offset = roll_offset(dice);
	roll_value(dice, &rule->ra, &rule->ra_offset);
	if (dice_roll(dice, 3))
		roll_value(dice, &rule->fp, &rule->fp_offset);
	else
		rule->fp = dice_roll(dice, UNWIND_FP_UNDEFINED + 1);
}

static int32_t roll_saved(struct dice *dice, const struct unwind_rule *rule)
{
	if ((rule->cfa & UNWIND_HOW_MASK) == UNWIND_SPECIAL || dice_roll(dice, 2))
		return UNWIND_SAVED_SAME;
	return dice_roll(dice, 3) ? -8 * (int32_t)dice_roll(dice, 40) : UNWIND_SAVED_LOST;
}

/* the parts of a table in the making */
struct parts {
	struct unwind_table_header header;
	struct unwind_rule rules[MAX_RULES];
	int32_t saved[MAX_RULES];
	struct unwind_span spans[MAX_BLOCKS / 256 + 1];
	uint32_t wide_rows[MAX_BLOCKS * MAX_ROWS_OF_BLOCK];
	uint16_t wide_rules[MAX_BLOCKS * MAX_ROWS_OF_BLOCK];
	uint16_t blocks[MAX_BLOCKS];
	uint16_t rows[MAX_BLOCKS * MAX_ROWS_OF_BLOCK];
};

static void roll_rows(struct dice *dice, struct parts *parts)
{
	struct unwind_table_header *header = &parts->header;
	uint32_t block, nr, low, in_span = 0;
	struct unwind_span *span;

	for (block = 0; block < header->blocks; block++) {
		span = &parts->spans[block >> UNWIND_BLOCK_SHIFT];
		if (!(block & (UNWIND_SPAN_BLOCKS - 1))) {
			/* of every fourth span nothing is known */
			in_span = dice_roll(dice, 4);
			span->row = header->rows;
			span->block = in_span ? header->indexed : UNWIND_SPAN_EMPTY;
		}
		if (!in_span)
			continue;
		parts->blocks[header->indexed++] = header->rows - span->row;
		nr = dice_roll(dice, MAX_ROWS_OF_BLOCK + 1);
		for (low = dice_roll(dice, 40); nr && low < 256; nr--) {
			uint32_t rule = dice_roll(dice, header->rules);

			if (rule >= UNWIND_ROW_WIDE) {
				parts->wide_rows[header->wides] = header->rows;
				parts->wide_rules[header->wides++] = rule;
				rule = UNWIND_ROW_WIDE;
			}
			parts->rows[header->rows++] = low | rule << 8;
			low += 1 + dice_roll(dice, 60);
		}
	}
}

static uint8_t *put(uint8_t *at, const void *part, size_t size)
{
	memcpy(at, part, size);
	return at + size;
}

void *forge_table(struct dice *dice, uint64_t start, uint64_t bytes, size_t *ret_size)
{
	struct parts *parts = calloc(1, sizeof(*parts));
	uint64_t block = 256ull << SHIFT;
	struct unwind_table_header *header;
	uint8_t *data, *at;
	uint32_t i;

	if (!parts)
		abort();
	header = &parts->header;
	*header = (struct unwind_table_header) {
		.magic = UNWIND_TABLE_MAGIC, .version = UNWIND_TABLE_VERSION, .machine = MACHINE,
		.shift = SHIFT, .start = start & -block, .rules = 1 + dice_roll(dice, MAX_RULES),
		.saved = dice_roll(dice, 3) ? 0 : UNWIND_SAVED_REGISTER,
	};
	header->blocks = bytes / block + 1 < MAX_BLOCKS ? bytes / block + 1 : MAX_BLOCKS;
	for (i = 0; i < header->rules; i++) {
		roll_rule(dice, &parts->rules[i]);
		parts->saved[i] = roll_saved(dice, &parts->rules[i]);
	}
	roll_rows(dice, parts);

	*ret_size = unwind_table_bytes(header);
	data = calloc(1, *ret_size);
	if (!data)
		abort();
	at = put(data, header, sizeof(*header));
	at = put(at, parts->rules, header->rules * sizeof(*parts->rules));
	if (header->saved)
		at = put(at, parts->saved, header->rules * sizeof(*parts->saved));
	at = put(at, parts->spans, unwind_table_spans(header->blocks) * sizeof(*parts->spans));
	at = put(at, parts->wide_rows, header->wides * sizeof(*parts->wide_rows));
	at = put(at, parts->wide_rules, header->wides * sizeof(*parts->wide_rules));
	at = put(at, parts->blocks, header->indexed * sizeof(*parts->blocks));
	put(at, parts->rows, header->rows * sizeof(*parts->rows));
	frameless_checksum(data, *ret_size);
	free(parts);
	return data;
}

void forge_spoil(struct dice *dice, void *data, size_t size)
{
	static const uint32_t edges[] = {
		0, 1, 0x7f, 0x80, 0xff, 0x100, 0x7fff, 0xffff, 0x10000, 0x7fffffff, 0x80000000,
		0xfffffff8, 0xffffffff,
	};
	unsigned int nr = 1 + dice_roll(dice, 8);
	uint8_t *bytes = data;
	uint32_t edge;
	size_t at;

	while (nr--) {
		/* half of them in the header and what follows it */
		at = dice_roll(dice, dice_roll(dice, 2) || size < 512 ? size : 256);
		edge = edges[dice_roll(dice, sizeof(edges) / sizeof(edges[0]))];
		switch (dice_roll(dice, 4)) {
		case 0:
			bytes[at] = dice_roll(dice, 256);
			break;
		case 1:
			bytes[at] ^= 1u << dice_roll(dice, 8);
			break;
		case 2:
			at &= ~(size_t)1;
			memcpy(bytes + at, &edge, 2);
			break;
		default:
			at &= ~(size_t)3;
			memcpy(bytes + at, &edge, 4);
			break;
		}
	}
	if (dice_roll(dice, 16))
		frameless_checksum(data, size);
}

void *forge_noise(struct dice *dice, size_t *ret_size)
{
	struct unwind_table_header header = {
		.magic = UNWIND_TABLE_MAGIC, .version = UNWIND_TABLE_VERSION, .machine = MACHINE,
		.shift = dice_roll(dice, UNWIND_SHIFT_MAX + 1),
		.start = dice_roll(dice, 1u << 20) << 10,
		.blocks = dice_roll(dice, 300), .indexed = dice_roll(dice, 300), .rows = dice_roll(dice, 2000),
		.wides = dice_roll(dice, 4) ? 0 : dice_roll(dice, 50), .rules = dice_roll(dice, 300),
		.saved = dice_roll(dice, 2) ? 0 : UNWIND_SAVED_REGISTER,
	};
	size_t i;
	uint8_t *data;

	*ret_size = unwind_table_bytes(&header);
	data = malloc(*ret_size);
	if (!data)
		abort();
	for (i = 0; i < *ret_size; i++)
		data[i] = dice_roll(dice, 256);
	memcpy(data, &header, sizeof(header));
	frameless_checksum(data, *ret_size);
	return data;
}

int forge_verdict(const void *data, size_t size)
{
	struct unwind_table table;
	uint16_t machine;

	memcpy(&machine, (const char *)data + offsetof(struct unwind_table_header, machine),
	       sizeof(machine));
	return machine == MACHINE ? unwind_table_check(data, size, &table) : -EINVAL;
}

uint32_t forge_list(struct dice *dice, struct stacktap_mapping *mappings, uint32_t max,
		    const uint64_t *ids, const uint64_t *starts, unsigned int nr_ids)
{
	uint64_t text[2], at, step, here = (uintptr_t)&text;
	uint32_t count = 1 + dice_roll(dice, dice_roll(dice, 4) ? 12 : max), i;

	frameless_text(&text[0], &text[1]);
	/* many over the code alone, or few over all there is, so that data passes for code, too */
	at = dice_roll(dice, 2) ? text[0] : 0;
	step = at ? (text[1] - text[0]) / count + 1 : (here + (1u << 24)) / count;
	for (i = 0; i < count; i++) {
		struct stacktap_mapping *mapping = &mappings[i];
		unsigned int which = nr_ids ? dice_roll(dice, nr_ids) : 0;

		mapping->start = at;
		mapping->end = at += 1 + dice_roll(dice, step);
		mapping->table_id = nr_ids && dice_roll(dice, 8) ? ids[which] : 0;
		mapping->bias = dice_roll(dice, 4) && nr_ids ?
				mapping->start - starts[which] - dice_roll(dice, 4096) :
				dice_roll(dice, UINT64_MAX);
	}
	/* and then, mostly, a mistake */
	for (i = dice_roll(dice, 3); i; i--) {
		struct stacktap_mapping *mapping = &mappings[dice_roll(dice, count)];

		switch (dice_roll(dice, 6)) {
		case 0:
			mapping->end = mapping->start;
			break;
		case 1:
			mapping->start = dice_roll(dice, UINT64_MAX);
			break;
		case 2:
			mapping->end = dice_roll(dice, 2) ? UINT64_MAX : ADDRESS_LIMIT;
			break;
		case 3:
			mapping->end += dice_roll(dice, 1u << 20);
			break;
		case 4:
			mapping->start -= dice_roll(dice, 2);
			break;
		default:
			mappings[count - 1].end = SURE_LIMIT;
			break;
		}
	}
	return count;
}

int forge_list_verdict(const struct stacktap_mapping *mappings, uint32_t count)
{
	uint64_t end = 0;
	uint32_t i;
	int unsure = 0;

	for (i = 0; i < count; i++) {
		if (mappings[i].start < end || mappings[i].start >= mappings[i].end ||
		    mappings[i].end >= ADDRESS_LIMIT)
			return -EINVAL;
		end = mappings[i].end;
		unsure |= end > SURE_LIMIT;
	}
	return unsure;
}
