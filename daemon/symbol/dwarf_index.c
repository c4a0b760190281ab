// SPDX-License-Identifier: Apache-2.0
#include "symbol/dwarf_index.h"

#include <dwarf.h>

#include "symbol/dwarf_ranges.h"

void dwarf_index_init(struct dwarf_index *index, struct dwarf_units *units)
{
	*index = (struct dwarf_index){ .units = units };
}

void dwarf_index_done(struct dwarf_index *index)
{
	free(index->ranges);
	free(index->silent);
	*index = (struct dwarf_index){ 0 };
}

static bool grow(void **array, uint32_t count, uint32_t *room, size_t item)
{
	const uint32_t wanted = *room ? 2 * *room : 1024;
	void *grown;

	if (count < *room)
		return true;
	grown = reallocarray(*array, wanted, item);
	if (!grown)
		return false;
	*array = grown;
	*room = wanted;
	return true;
}

static int add_range(struct dwarf_index *index, uint64_t low, uint64_t high, uint64_t unit)
{
	struct dwarf_range *last = index->count ? &index->ranges[index->count - 1] : NULL;

	if (high <= low || !dwarf_is_code(index->units->file, low))
		return 0;
	if (last && last->unit == unit && last->high == low) {
		last->high = high;
		return 0;
	}
	if (index->count == DWARF_INDEX_RANGES_MAX)
		return -EFBIG;
	if (!grow((void **)&index->ranges, index->count, &index->room, sizeof(*index->ranges)))
		return -ENOMEM;
	index->ranges[index->count++] = (struct dwarf_range){ low, high, unit };
	return 0;
}

static int by_address(const void *a, const void *b)
{
	const struct dwarf_range *x = a, *y = b;

	if (x->low != y->low)
		return x->low < y->low ? -1 : 1;
	return (x->unit > y->unit) - (x->unit < y->unit);
}

/* Sorts them, and cuts what overlaps. */
static void settle(struct dwarf_index *index)
{
	struct dwarf_range *ranges = index->ranges, next, *last;
	uint32_t kept = 0;

	if (!index->count)
		return;
	qsort(ranges, index->count, sizeof(*ranges), by_address);
	for (uint32_t i = 0; i < index->count; i++) {
		next = ranges[i];
		last = kept ? &ranges[kept - 1] : NULL;
		if (last && next.low < last->high)
			next.low = last->high;
		if (next.low < next.high)
			ranges[kept++] = next;
	}
	index->count = kept;
}

/* One table of .debug_aranges, of one unit; where the next begins. */
static int read_table(struct dwarf_index *index, uint64_t *offset)
{
	struct dwarf_file *file = index->units->file;
	struct dwarf_stream stream;
	struct cursor *cursor = &stream.cursor;
	uint64_t begin = *offset, size, unit, low, length, at;
	uint8_t offset_size = 4, address_size, segment_size;
	uint16_t version;
	int r;

	dwarf_stream_open(&stream, file, DWARF_ARANGES, begin);
	r = dwarf_stream_fill(&stream);
	if (r < 0)
		return r;
	size = cursor_u32(cursor);
	if (size == UINT32_MAX) {
		size = cursor_u64(cursor);
		offset_size = 8;
	}
	at = offset_size == 8 ? 12 : 4;
	if (cursor->bad || size > dwarf_size(file, DWARF_ARANGES) - begin - at)
		return -EBADMSG;
	size += at;
	*offset = begin + size;
	version = cursor_u16(cursor);
	unit = cursor_number(cursor, offset_size);
	address_size = cursor_u8(cursor);
	segment_size = cursor_u8(cursor);
	at += 4u + offset_size;
	/* of a form that is not known: the units themselves say it */
	if (cursor->bad || version != 2 || segment_size || (address_size != 4 && address_size != 8))
		return 0;
	for (; at % (2u * address_size); at++)
		cursor_u8(cursor);
	for (; at + 2u * address_size <= size; at += 2u * address_size) {
		r = dwarf_stream_fill(&stream);
		if (r < 0)
			return r;
		low = cursor_number(cursor, address_size);
		length = cursor_number(cursor, address_size);
		r = length <= UINT64_MAX - low ? add_range(index, low, low + length, unit) : 0;
		if (r < 0)
			return r;
	}
	return 0;
}

int dwarf_index_read(struct dwarf_index *index)
{
	const uint64_t whole = dwarf_size(index->units->file, DWARF_ARANGES);
	uint64_t offset = 0;
	int r = 0;

	while (!r && offset < whole)
		r = read_table(index, &offset);
	settle(index);
	return r == -ENOMEM || r == -ETIME ? r : 0;
}

struct unit_ranges {
	struct dwarf_index *index;
	uint64_t unit;
};

static int take_range(void *ctx, uint64_t low, uint64_t high)
{
	const struct unit_ranges *of = ctx;

	return add_range(of->index, low, high, of->unit);
}

static int add_silent(struct dwarf_index *index, uint64_t unit)
{
	if (!grow((void **)&index->silent, index->silent_count, &index->silent_room, sizeof(*index->silent)))
		return -ENOMEM;
	index->silent[index->silent_count++] = unit;
	return 0;
}

static int add_unit(struct dwarf_index *index, uint64_t offset)
{
	struct unit_ranges of = { .index = index, .unit = offset };
	struct dwarf_unit *unit;
	int r = dwarf_unit_open(index->units->file, offset, true, NULL, &unit);

	/* one that is broken costs no other its lines */
	if (r < 0)
		return r == -ENOMEM || r == -ETIME ? r : 0;
	if ((unit->header.type == DW_UT_compile || unit->header.type == DW_UT_skeleton) &&
	    (unit->tag == DW_TAG_compile_unit || unit->tag == DW_TAG_skeleton_unit)) {
		r = dwarf_ranges(unit, &unit->root, take_range, &of);
		/* without ranges, or with some that cannot be read, it is searched itself */
		if (!r || (r < 0 && r != -ENOMEM && r != -ETIME))
			r = add_silent(index, offset);
	}
	dwarf_unit_close(unit);
	return r < 0 ? r : 0;
}

int dwarf_index_make(struct dwarf_index *index)
{
	struct dwarf_index whole = { .units = index->units, .is_whole = true };
	uint32_t i = 0;
	int r;

	while (!(r = i < index->units->count ? 0 : dwarf_units_find_next(index->units))) {
		r = add_unit(&whole, index->units->starts[i++]);
		if (r < 0)
			break;
	}
	/* -ENODATA: there are no more of them; units were left out if a section did not fit */
	if (r == -ENODATA)
		r = dwarf_take_failure(index->units->file);
	if (r < 0) {
		dwarf_index_done(&whole);
		return r;
	}
	settle(&whole);
	dwarf_index_done(index);
	*index = whole;
	return 0;
}

bool dwarf_index_find(const struct dwarf_index *index, uint64_t address, uint64_t *ret_unit)
{
	uint32_t begin = 0, end = index->count;

	while (begin < end) {
		const uint32_t middle = begin + (end - begin) / 2;
		const struct dwarf_range *range = &index->ranges[middle];

		if (address - range->low < range->high - range->low) {
			*ret_unit = range->unit;
			return true;
		}
		if (range->low <= address)
			begin = middle + 1;
		else
			end = middle;
	}
	return false;
}
