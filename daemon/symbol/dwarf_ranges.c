// SPDX-License-Identifier: Apache-2.0
#include "symbol/dwarf_ranges.h"

#include <dwarf.h>

struct list {
	const struct dwarf_unit *unit;
	int (*each)(void *ctx, uint64_t low, uint64_t high);
	void *ctx;
	int count;
};

static int take(struct list *list, uint64_t low, uint64_t high)
{
	if (high <= low)
		return 0;
	if (++list->count > DWARF_RANGES_MAX)
		return -EFBIG;
	return list->each(list->ctx, low, high);
}

static uint64_t indexed(const struct dwarf_unit *unit, uint64_t number)
{
	const struct dwarf_value value = { .form = DW_FORM_addrx, .number = number };
	uint64_t address;

	return dwarf_value_address(unit, &value, &address) ? address : 0;
}

/* One entry of DWARF 5's lists; 1: the last. */
static int next_entry(struct list *list, struct cursor *cursor, uint64_t *base)
{
	const struct dwarf_unit *unit = list->unit;
	const uint8_t size = unit->header.address_size;
	const uint8_t kind = cursor_u8(cursor);
	uint64_t low, high;

	switch (kind) {
	case DW_RLE_base_addressx:
		*base = indexed(unit, cursor_uleb(cursor));
		return 0;
	case DW_RLE_startx_endx:
		low = indexed(unit, cursor_uleb(cursor));
		high = indexed(unit, cursor_uleb(cursor));
		break;
	case DW_RLE_startx_length:
		low = indexed(unit, cursor_uleb(cursor));
		high = low + cursor_uleb(cursor);
		break;
	case DW_RLE_offset_pair:
		low = *base + cursor_uleb(cursor);
		high = *base + cursor_uleb(cursor);
		break;
	case DW_RLE_base_address:
		*base = cursor_number(cursor, size);
		return 0;
	case DW_RLE_start_end:
		low = cursor_number(cursor, size);
		high = cursor_number(cursor, size);
		break;
	case DW_RLE_start_length:
		low = cursor_number(cursor, size);
		high = low + cursor_uleb(cursor);
		break;
	default:
		return 1;
	}
	return cursor->bad ? 1 : take(list, low, high);
}

static int read_list(struct list *list, struct dwarf_stream *stream, uint64_t base)
{
	int r;

	do {
		r = dwarf_stream_fill(stream);
		if (!r)
			r = next_entry(list, &stream->cursor, &base);
	} while (!r);
	return r < 0 ? r : 0;
}

/* Before DWARF 5: pairs of addresses. */
static int read_pairs(struct list *list, struct dwarf_stream *stream, uint64_t base)
{
	const uint8_t size = list->unit->header.address_size;
	const uint64_t highest = size == 8 ? UINT64_MAX : UINT32_MAX;
	uint64_t low, high;
	int r;

	for (;;) {
		r = dwarf_stream_fill(stream);
		if (r < 0)
			return r;
		low = cursor_number(&stream->cursor, size);
		high = cursor_number(&stream->cursor, size);
		if (stream->cursor.bad || (!low && !high))
			return 0;
		if (low == highest) {
			base = high;
			continue;
		}
		r = take(list, base + low, base + high);
		if (r < 0)
			return r;
	}
}

static int read_ranges(struct list *list, const struct dwarf_value *value)
{
	const struct dwarf_unit *unit = list->unit;
	const uint8_t size = unit->header.offset_size;
	struct dwarf_stream stream;
	uint64_t offset = value->number + unit->ranges_start;

	if (unit->header.version < 5) {
		dwarf_stream_open(&stream, unit->linked, DWARF_RANGES, offset);
		return read_pairs(list, &stream, unit->low);
	}
	if (value->form == DW_FORM_rnglistx) {
		offset = 0;
		if (value->number > UINT32_MAX ||
		    dwarf_peek(unit->file, DWARF_RNGLISTS, unit->rnglists_base + value->number * size, &offset,
			       size) < 0)
			return 0;
		offset += unit->rnglists_base;
	}
	dwarf_stream_open(&stream, unit->file, DWARF_RNGLISTS, offset);
	return read_list(list, &stream, unit->low);
}

int dwarf_ranges(const struct dwarf_unit *unit, const struct dwarf_facts *facts,
		 int (*each)(void *ctx, uint64_t low, uint64_t high), void *ctx)
{
	struct list list = { .unit = unit, .each = each, .ctx = ctx };
	uint64_t low, high;
	int r = 0;

	if (facts->ranges.form) {
		r = read_ranges(&list, &facts->ranges);
	} else if (facts->high.form && dwarf_value_address(unit, &facts->low, &low)) {
		/* an address, or how far from the first */
		if (!dwarf_value_address(unit, &facts->high, &high))
			high = low + facts->high.number;
		r = take(&list, low, high);
	}
	return r < 0 ? r : list.count;
}
