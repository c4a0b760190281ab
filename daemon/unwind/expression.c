// SPDX-License-Identifier: Apache-2.0
#include "unwind/expression.h"

#include <dwarf.h>

#include "base/cursor.h"

/* rsp + 8, a word more when the address is @late bytes or more into its entry of 16 */
static bool parse_plt(const struct machine *machine, struct cursor cursor,
		      struct expression *ret_expression)
{
	static const uint8_t tail[] = { DW_OP_ge, DW_OP_lit3, DW_OP_shl, DW_OP_plus };
	const uint8_t *bytes;
	uint8_t late;

	if (machine->elf != EM_X86_64 || cursor_u8(&cursor) != DW_OP_breg7 ||
	    cursor_sleb(&cursor) != UNWIND_WORD || cursor_u8(&cursor) != DW_OP_breg16 ||
	    cursor_sleb(&cursor) != 0 || cursor_u8(&cursor) != DW_OP_lit15 ||
	    cursor_u8(&cursor) != DW_OP_and)
		return false;
	late = (uint8_t)(cursor_u8(&cursor) - DW_OP_lit0);
	bytes = cursor_take(&cursor, sizeof(tail));
	if (!bytes || memcmp(bytes, tail, sizeof(tail)) || cursor_left(&cursor) || late == 0 ||
	    late >= UNWIND_PLT_ENTRY)
		return false;
	*ret_expression = (struct expression){
		.how = UNWIND_PLT | UNWIND_BASE_SP,
		.extra = late,
		.offset = UNWIND_WORD,
	};
	return true;
}

static bool add(int64_t *sum, uint64_t number)
{
	return number <= UNWIND_OFFSET_MAX && !__builtin_add_overflow(*sum, (int64_t)number, sum);
}

/* Constants to add, as long as there are any; false: a broken one. */
static bool parse_constants(struct cursor *cursor, int64_t *sum)
{
	while (cursor_left(cursor) && *cursor->at == DW_OP_plus_uconst) {
		cursor_u8(cursor);
		if (!add(sum, cursor_uleb(cursor)))
			return false;
	}
	return !cursor->bad;
}

static bool parse_start(const struct machine *machine, struct cursor *cursor, bool on_cfa,
			uint8_t *ret_base, int64_t *ret_offset)
{
	uint64_t number;
	uint8_t op;

	*ret_offset = 0;
	*ret_base = UNWIND_BASE_CFA;
	if (on_cfa && cursor_left(cursor) && *cursor->at == DW_OP_plus_uconst)
		return true;
	op = cursor_u8(cursor);
	if (op >= DW_OP_breg0 && op <= DW_OP_breg31)
		number = op - DW_OP_breg0;
	else if (op == DW_OP_bregx)
		number = cursor_uleb(cursor);
	else
		return false;
	*ret_offset = cursor_sleb(cursor);
	return machine_base(machine, number, ret_base);
}

bool expression_parse(const struct machine *machine, const uint8_t *data, size_t size, bool on_cfa,
		      struct expression *ret_expression)
{
	struct cursor cursor = { .at = data, .end = data + size };
	int64_t offset, more = 0;
	uint8_t base, how = UNWIND_VALUE;

	if (!on_cfa && parse_plt(machine, cursor, ret_expression))
		return true;
	if (!parse_start(machine, &cursor, on_cfa, &base, &offset) ||
	    !parse_constants(&cursor, &offset))
		return false;
	if (cursor_left(&cursor) && *cursor.at == DW_OP_deref) {
		cursor_u8(&cursor);
		how = UNWIND_LOAD;
		if (!parse_constants(&cursor, &more))
			return false;
	}
	if (cursor.bad || cursor_left(&cursor) || more % UNWIND_WORD ||
	    more / UNWIND_WORD > UNWIND_EXTRA_MASK)
		return false;
	*ret_expression = (struct expression){
		.how = how | base,
		.extra = (uint8_t)(more / UNWIND_WORD),
		.offset = offset,
	};
	return true;
}
