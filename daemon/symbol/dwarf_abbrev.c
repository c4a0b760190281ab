// SPDX-License-Identifier: Apache-2.0
#include "symbol/dwarf_abbrev.h"

#include <dwarf.h>

enum {
	ABBREVS_MAX = 1 << 18,		/* of one table */
	ATTRIBUTES_MAX = 1 << 21,
};

static bool grow(void **array, uint32_t count, size_t item)
{
	void *grown;

	/* at powers of two */
	if (count & (count - 1) || (count && count < 64))
		return true;
	grown = reallocarray(*array, count ? 2 * (size_t)count : 64, item);
	if (!grown)
		return false;
	*array = grown;
	return true;
}

static void add_size(struct dwarf_abbrev *abbrev, uint16_t form)
{
	switch (form) {
	case DW_FORM_addr:
		abbrev->addresses++;
		break;
	case DW_FORM_strp:
	case DW_FORM_line_strp:
	case DW_FORM_sec_offset:
	case DW_FORM_strp_sup:
	case DW_FORM_GNU_strp_alt:
	case DW_FORM_GNU_ref_alt:
		abbrev->offsets++;
		break;
	case DW_FORM_flag_present:
	case DW_FORM_implicit_const:
		break;
	case DW_FORM_data1:
	case DW_FORM_ref1:
	case DW_FORM_flag:
	case DW_FORM_strx1:
	case DW_FORM_addrx1:
		abbrev->bytes += 1;
		break;
	case DW_FORM_data2:
	case DW_FORM_ref2:
	case DW_FORM_strx2:
	case DW_FORM_addrx2:
		abbrev->bytes += 2;
		break;
	case DW_FORM_strx3:
	case DW_FORM_addrx3:
		abbrev->bytes += 3;
		break;
	case DW_FORM_data4:
	case DW_FORM_ref4:
	case DW_FORM_strx4:
	case DW_FORM_addrx4:
	case DW_FORM_ref_sup4:
		abbrev->bytes += 4;
		break;
	case DW_FORM_data8:
	case DW_FORM_ref8:
	case DW_FORM_ref_sig8:
	case DW_FORM_ref_sup8:
		abbrev->bytes += 8;
		break;
	case DW_FORM_data16:
		abbrev->bytes += 16;
		break;
	default:
		abbrev->is_fixed = false;
	}
}

static int read_attributes(struct dwarf_stream *stream, struct dwarf_abbrevs *table, struct dwarf_abbrev *abbrev)
{
	struct dwarf_attribute attribute;
	uint64_t name, form;
	int r;

	abbrev->first = table->attribute_count;
	abbrev->is_fixed = true;
	for (;;) {
		r = dwarf_stream_fill(stream);
		if (r < 0)
			return r;
		name = cursor_uleb(&stream->cursor);
		form = cursor_uleb(&stream->cursor);
		attribute.implicit = form == DW_FORM_implicit_const ? cursor_sleb(&stream->cursor) : 0;
		if (stream->cursor.bad || name > UINT16_MAX || form > UINT16_MAX)
			return -EBADMSG;
		if (!name && !form)
			break;
		/* sums of 16 bits stay within them */
		if (table->attribute_count == ATTRIBUTES_MAX || abbrev->count == UINT16_MAX / 16)
			return -EFBIG;
		if (!grow((void **)&table->attributes, table->attribute_count, sizeof(attribute)))
			return -ENOMEM;
		attribute.name = (uint16_t)name;
		attribute.form = (uint16_t)form;
		table->attributes[table->attribute_count++] = attribute;
		abbrev->count++;
		add_size(abbrev, attribute.form);
	}
	return 0;
}

static int by_code(const void *a, const void *b)
{
	const struct dwarf_abbrev *x = a, *y = b;

	return (x->code > y->code) - (x->code < y->code);
}

static int read_table(struct dwarf_stream *stream, uint64_t code, struct dwarf_abbrevs *table)
{
	struct dwarf_abbrev abbrev;
	bool is_sorted = true;
	uint64_t tag;
	int r;

	for (;;) {
		memset(&abbrev, 0, sizeof(abbrev));
		r = dwarf_stream_fill(stream);
		if (r < 0)
			return r;
		abbrev.code = cursor_uleb(&stream->cursor);
		if (!abbrev.code)
			break;
		tag = cursor_uleb(&stream->cursor);
		abbrev.tag = tag <= UINT16_MAX ? (uint16_t)tag : 0;
		abbrev.has_children = cursor_u8(&stream->cursor);
		r = read_attributes(stream, table, &abbrev);
		if (r < 0)
			return r;
		if (code && abbrev.code != code) {
			table->attribute_count = 0;
			continue;
		}
		if (table->count == ABBREVS_MAX)
			return -EFBIG;
		if (!grow((void **)&table->abbrevs, table->count, sizeof(abbrev)))
			return -ENOMEM;
		is_sorted &= !table->count || table->abbrevs[table->count - 1].code < abbrev.code;
		table->abbrevs[table->count++] = abbrev;
		if (code)
			return 0;
	}
	if (stream->cursor.bad)
		return -EBADMSG;
	if (!is_sorted)
		qsort(table->abbrevs, table->count, sizeof(*table->abbrevs), by_code);
	return 0;
}

int dwarf_abbrevs_read(struct dwarf_file *file, uint64_t offset, uint64_t code,
		       struct dwarf_abbrevs **ret_abbrevs)
{
	struct dwarf_abbrevs *table = calloc(1, sizeof(*table));
	struct dwarf_stream stream;
	int r;

	if (!table)
		return -ENOMEM;
	table->offset = offset;
	table->references = 1;
	dwarf_stream_open(&stream, file, DWARF_ABBREV, offset);
	r = read_table(&stream, code, table);
	if (r < 0) {
		dwarf_abbrevs_unref(table);
		return r;
	}
	*ret_abbrevs = table;
	return 0;
}

void dwarf_abbrevs_unref(struct dwarf_abbrevs *abbrevs)
{
	if (!abbrevs || --abbrevs->references)
		return;
	free(abbrevs->abbrevs);
	free(abbrevs->attributes);
	free(abbrevs);
}

const struct dwarf_abbrev *dwarf_abbrevs_find(const struct dwarf_abbrevs *abbrevs, uint64_t code)
{
	uint32_t begin = 0, end = abbrevs->count;

	/* most tables have 1, 2, 3, … */
	if (code - 1 < end && abbrevs->abbrevs[code - 1].code == code)
		return &abbrevs->abbrevs[code - 1];
	while (begin < end) {
		const uint32_t middle = begin + (end - begin) / 2;

		if (abbrevs->abbrevs[middle].code == code)
			return &abbrevs->abbrevs[middle];
		if (abbrevs->abbrevs[middle].code < code)
			begin = middle + 1;
		else
			end = middle;
	}
	return NULL;
}
