// SPDX-License-Identifier: Apache-2.0
#include "symbol/dwarf_split.h"

#include <dwarf.h>

enum {
	INDEX_HEADER = 16,
	COLUMNS_MAX = 8,		/* kinds of sections */
	PROBES_MAX = 4096,		/* of a hash table that is never full */
	UNITS_MAX = 4096,		/* of one .dwo file that are looked at: more than one is of LTO */
};

/* What a column is of. */
enum { COLUMN_INFO = 1, COLUMN_ABBREV = 3, COLUMN_STR_OFFSETS = 6, COLUMN_RNGLISTS = 8 };

/* Where a .dwo file's part of a package is; of a .dwo file alone that is all of it. */
struct place {
	struct dwarf_parts parts;
	uint64_t end;			/* of its .debug_info */
};

static int read_index(struct dwarf_split *split)
{
	struct dwarf_package_index *index = &split->index;
	uint8_t bytes[INDEX_HEADER];
	struct cursor cursor = { .at = bytes, .end = bytes + sizeof(bytes) };
	int r = dwarf_peek(split->file, DWARF_CU_INDEX, 0, bytes, sizeof(bytes));

	if (r < 0)
		return r;
	/* GNU's has 32 bits, of which the others are 0 */
	index->version = cursor_u16(&cursor);
	cursor_u16(&cursor);
	index->columns = cursor_u32(&cursor);
	index->rows = cursor_u32(&cursor);
	index->slots = cursor_u32(&cursor);
	if ((index->version != 2 && index->version != 5) || !index->columns || index->columns > COLUMNS_MAX ||
	    !index->slots || index->slots & (index->slots - 1))
		return -EBADMSG;
	return 0;
}

int dwarf_split_open(struct dwarf_split *split, int fd, uint64_t size, uint64_t deadline)
{
	int r = elf_open(&split->elf, fd, size, deadline);

	if (r < 0)
		return r == -ENOEXEC ? -ENODATA : r;
	r = dwarf_file_open(&split->elf, true, &split->file);
	if (!r) {
		dwarf_units_init(&split->units, split->file);
		r = dwarf_size(split->file, DWARF_CU_INDEX) ? read_index(split) : 0;
	} else {
		split->file = NULL;
	}
	if (r < 0)
		dwarf_split_close(split);
	return r;
}

void dwarf_split_close(struct dwarf_split *split)
{
	dwarf_units_done(&split->units);
	dwarf_file_close(split->file);
	elf_close(&split->elf);
	*split = (struct dwarf_split){ .file = NULL };
}

static int peek_number(struct dwarf_split *split, uint64_t offset, size_t size, uint64_t *ret_number)
{
	uint8_t bytes[8];
	struct cursor cursor = { .at = bytes, .end = bytes + size };
	int r = dwarf_peek(split->file, DWARF_CU_INDEX, offset, bytes, size);

	*ret_number = r < 0 ? 0 : cursor_number(&cursor, (unsigned int)size);
	return r;
}

/* The row of an id, from 1 on: by a hash table with steps that the id makes. */
static int find_row(struct dwarf_split *split, uint64_t id, uint64_t *ret_row)
{
	const uint64_t mask = split->index.slots - 1, step = ((id >> 32) & mask) | 1;
	const uint64_t rows = INDEX_HEADER + 8 * (uint64_t)split->index.slots;
	uint64_t slot = id & mask, found;

	for (unsigned int i = 0; i < PROBES_MAX && i <= mask; i++, slot = (slot + step) & mask) {
		int r = peek_number(split, INDEX_HEADER + 8 * slot, 8, &found) ?:
			peek_number(split, rows + 4 * slot, 4, ret_row);

		if (r < 0)
			return r;
		if (!*ret_row || *ret_row > split->index.rows)
			return -ENOENT;
		if (found == id)
			return 0;
	}
	return -ENOENT;
}

static int read_row(struct dwarf_split *split, uint64_t row, struct place *place)
{
	const struct dwarf_package_index *index = &split->index;
	const uint64_t table = INDEX_HEADER + 12 * (uint64_t)index->slots, width = 4 * index->columns;
	uint64_t column, start, size;

	for (uint32_t i = 0; i < index->columns; i++) {
		const uint64_t at = table + row * width + 4 * i;
		int r = peek_number(split, table + 4 * i, 4, &column) ?: peek_number(split, at, 4, &start) ?:
			peek_number(split, at + index->rows * width, 4, &size);

		if (r < 0)
			return r;
		if (column == COLUMN_INFO) {
			place->parts.info = start;
			place->end = start + size;
		} else if (column == COLUMN_ABBREV) {
			place->parts.abbrev = start;
		} else if (column == COLUMN_STR_OFFSETS) {
			place->parts.str_offsets = start;
		} else if (column == COLUMN_RNGLISTS && index->version == 5) {
			place->parts.rnglists = start;
		}
	}
	return 0;
}

static bool is_of(struct dwarf_split *split, const struct dwarf_header *header, const struct dwarf_parts *parts,
		  uint64_t id, int *ret_error)
{
	struct dwarf_unit *unit;
	uint64_t found;
	bool is;

	*ret_error = 0;
	if (header->version >= 5)
		return header->type == DW_UT_split_compile && header->dwo_id == id;
	*ret_error = dwarf_unit_open(split->file, header->offset, true, parts, &unit);
	if (*ret_error < 0)
		return false;
	is = dwarf_unit_dwo_id(unit, &found) && found == id;
	dwarf_unit_close(unit);
	return is;
}

/* Among the units there; a broken one costs no other. */
static int find_unit(struct dwarf_split *split, const struct place *place, uint64_t id, uint64_t *ret_offset)
{
	struct dwarf_header header;
	uint64_t offset = place->parts.info;
	int r;

	for (unsigned int i = 0; i < UNITS_MAX && offset < place->end; i++, offset += header.size) {
		r = dwarf_header_read(split->file, offset, &header);
		if (r == -EBADMSG)
			continue;
		if (r < 0)
			return r;
		if (is_of(split, &header, &place->parts, id, &r)) {
			*ret_offset = offset;
			return 0;
		}
		if (r == -ENOMEM || r == -ETIME)
			return r;
	}
	return -ENOENT;
}

/* Where the unit of this id is. */
static int locate(struct dwarf_split *split, uint64_t id, struct place *place, uint64_t *ret_offset)
{
	uint64_t row;
	int r = 0;

	*place = (struct place){ .end = dwarf_size(split->file, DWARF_INFO) };
	if (split->index.slots)
		r = find_row(split, id, &row) ?: read_row(split, row, place);
	return r ?: find_unit(split, place, id, ret_offset);
}

static int find(struct dwarf_split *split, const struct dwarf_unit *skeleton, struct dwarf_unit **ret_unit)
{
	struct place place;
	uint64_t id, offset;
	int r = dwarf_unit_dwo_id(skeleton, &id) ? locate(split, id, &place, &offset) : -ENOENT;

	if (!r)
		r = dwarf_units_get(&split->units, offset, &place.parts, NULL, ret_unit);
	if (r < 0)
		return r;
	if ((*ret_unit)->header.version != skeleton->header.version ||
	    (*ret_unit)->header.address_size != skeleton->header.address_size)
		return -ENOENT;
	dwarf_unit_link(*ret_unit, skeleton);
	return 0;
}

/* Whatever is wrong with it, the linked file's lines are there. */
static int tolerate(int r)
{
	return !r || r == -ENOMEM || r == -ETIME ? r : -ENOENT;
}

int dwarf_split_find(struct dwarf_split *split, const struct dwarf_unit *skeleton, struct dwarf_unit **ret_unit)
{
	return tolerate(split->file ? find(split, skeleton, ret_unit) : -ENOENT);
}

int dwarf_split_has(struct dwarf_split *split, uint64_t id)
{
	struct place place;
	uint64_t offset;

	return tolerate(split->file ? locate(split, id, &place, &offset) : -ENOENT);
}
