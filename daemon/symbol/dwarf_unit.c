// SPDX-License-Identifier: Apache-2.0
#include "symbol/dwarf_unit.h"

#include <dwarf.h>

enum {
	HEADER_MIN = 11,
	HEADER_MAX = 40,
	BRIEF = 512,			/* most first entries are shorter, */
	BRIEF_MAX = 64 << 10,		/* and no sane one is longer */
};

static int parse_header(struct cursor *cursor, struct dwarf_header *header)
{
	uint64_t length = cursor_u32(cursor);
	const uint8_t *begin = cursor->at - 4;

	header->offset_size = 4;
	if (length == UINT32_MAX) {
		header->offset_size = 8;
		length = cursor_u64(cursor);
	}
	if (cursor->bad)
		return -ENODATA;
	header->size = (uint64_t)(cursor->at - begin);
	if (length > UINT64_MAX - header->size)
		return -ENODATA;
	header->size += length;
	header->version = cursor_u16(cursor);
	header->type = DW_UT_compile;
	if (header->version >= 5) {
		header->type = cursor_u8(cursor);
		header->address_size = cursor_u8(cursor);
		header->abbrev_offset = cursor_number(cursor, header->offset_size);
		if (header->type == DW_UT_skeleton || header->type == DW_UT_split_compile)
			header->dwo_id = cursor_u64(cursor);
		else if (header->type == DW_UT_type || header->type == DW_UT_split_type)
			cursor_take(cursor, 8 + header->offset_size);
	} else {
		header->abbrev_offset = cursor_number(cursor, header->offset_size);
		header->address_size = cursor_u8(cursor);
	}
	header->bytes = (uint8_t)(cursor->at - begin);
	return 0;
}

int dwarf_header_read(struct dwarf_file *file, uint64_t offset, struct dwarf_header *ret_header)
{
	const uint64_t whole = dwarf_size(file, DWARF_INFO);
	uint8_t bytes[HEADER_MAX];
	struct cursor cursor = { .at = bytes };
	size_t size;
	int r;

	*ret_header = (struct dwarf_header){ .offset = offset };
	if (offset >= whole)
		return -ENODATA;
	size = (size_t)min_of((uint64_t)HEADER_MAX, whole - offset);
	r = dwarf_read(file, DWARF_INFO, offset, bytes, size);
	if (r < 0)
		return r;
	cursor.end = bytes + size;
	r = parse_header(&cursor, ret_header);
	if (r < 0 || ret_header->size < HEADER_MIN || ret_header->size > whole - offset)
		return -ENODATA;
	if (cursor.bad || ret_header->version < 2 || ret_header->version > 5 ||
	    (ret_header->address_size != 4 && ret_header->address_size != 8) ||
	    ret_header->bytes > ret_header->size)
		return -EBADMSG;
	return 0;
}

void dwarf_value_read(struct cursor *cursor, const struct dwarf_header *header, uint16_t form, int64_t implicit,
		      struct dwarf_value *ret_value)
{
	uint64_t number = 0, length = 0;

	if (form == DW_FORM_indirect) {
		number = cursor_uleb(cursor);
		/* one in another would be without an end */
		form = number <= UINT16_MAX && number != DW_FORM_indirect &&
		       number != DW_FORM_implicit_const ? (uint16_t)number : 0;
	}
	ret_value->form = form;
	ret_value->text = NULL;
	switch (form) {
	case DW_FORM_addr:
		number = cursor_number(cursor, header->address_size);
		break;
	case DW_FORM_ref_addr:
		number = cursor_number(cursor, header->version < 3 ? header->address_size : header->offset_size);
		break;
	case DW_FORM_strp:
	case DW_FORM_line_strp:
	case DW_FORM_sec_offset:
	case DW_FORM_strp_sup:
	case DW_FORM_GNU_strp_alt:
	case DW_FORM_GNU_ref_alt:
		number = cursor_number(cursor, header->offset_size);
		break;
	case DW_FORM_flag_present:
		number = 1;
		break;
	case DW_FORM_implicit_const:
		number = (uint64_t)implicit;
		break;
	case DW_FORM_data1:
	case DW_FORM_ref1:
	case DW_FORM_flag:
	case DW_FORM_strx1:
	case DW_FORM_addrx1:
		number = cursor_u8(cursor);
		break;
	case DW_FORM_data2:
	case DW_FORM_ref2:
	case DW_FORM_strx2:
	case DW_FORM_addrx2:
		number = cursor_u16(cursor);
		break;
	case DW_FORM_strx3:
	case DW_FORM_addrx3:
		number = cursor_u16(cursor);
		number |= (uint64_t)cursor_u8(cursor) << 16;
		break;
	case DW_FORM_data4:
	case DW_FORM_ref4:
	case DW_FORM_strx4:
	case DW_FORM_addrx4:
	case DW_FORM_ref_sup4:
		number = cursor_u32(cursor);
		break;
	case DW_FORM_data8:
	case DW_FORM_ref8:
	case DW_FORM_ref_sig8:
	case DW_FORM_ref_sup8:
		number = cursor_u64(cursor);
		break;
	case DW_FORM_data16:
		length = 16;
		break;
	case DW_FORM_sdata:
		number = (uint64_t)cursor_sleb(cursor);
		break;
	case DW_FORM_udata:
	case DW_FORM_ref_udata:
	case DW_FORM_strx:
	case DW_FORM_addrx:
	case DW_FORM_loclistx:
	case DW_FORM_rnglistx:
	case DW_FORM_GNU_addr_index:
	case DW_FORM_GNU_str_index:
		number = cursor_uleb(cursor);
		break;
	case DW_FORM_string:
		ret_value->text = cursor_text(cursor);
		break;
	case DW_FORM_block1:
		length = cursor_u8(cursor);
		break;
	case DW_FORM_block2:
		length = cursor_u16(cursor);
		break;
	case DW_FORM_block4:
		length = cursor_u32(cursor);
		break;
	case DW_FORM_block:
	case DW_FORM_exprloc:
		length = cursor_uleb(cursor);
		break;
	default:
		cursor->bad = true;
	}
	ret_value->number = number;
	if (length)
		cursor_take(cursor, length);
}

static struct cursor cursor_in(const struct dwarf_unit *unit, uint32_t at)
{
	return (struct cursor){ .at = unit->bytes + at, .end = unit->bytes + unit->header.size };
}

/* Over attributes, without a look at them. */
static void skip(struct cursor *cursor, const struct dwarf_unit *unit, const struct dwarf_abbrev *abbrev)
{
	const struct dwarf_attribute *attributes = unit->abbrevs->attributes;
	struct dwarf_value value;

	if (abbrev->is_fixed) {
		cursor_take(cursor, abbrev->bytes + abbrev->addresses * unit->header.address_size +
				    (uint64_t)abbrev->offsets * unit->header.offset_size);
		return;
	}
	for (uint32_t i = 0; i < abbrev->count && !cursor->bad; i++)
		dwarf_value_read(cursor, &unit->header, attributes[abbrev->first + i].form, 0, &value);
}

int dwarf_entry_at(const struct dwarf_unit *unit, uint32_t at, struct dwarf_entry *ret_entry)
{
	struct cursor cursor;
	uint64_t code;

	*ret_entry = (struct dwarf_entry){ .at = at };
	if (at < unit->header.bytes || at >= unit->header.size)
		return -EBADMSG;
	cursor = cursor_in(unit, at);
	code = cursor_uleb(&cursor);
	if (code) {
		ret_entry->abbrev = dwarf_abbrevs_find(unit->abbrevs, code);
		if (!ret_entry->abbrev)
			return -EBADMSG;
		ret_entry->tag = ret_entry->abbrev->tag;
		ret_entry->has_children = ret_entry->abbrev->has_children;
		skip(&cursor, unit, ret_entry->abbrev);
	}
	ret_entry->next = (uint32_t)(cursor.at - unit->bytes);
	return cursor.bad ? -EBADMSG : 0;
}

static struct dwarf_value *place_of(struct dwarf_facts *facts, uint16_t name)
{
	switch (name) {
	case DW_AT_low_pc:
		return &facts->low;
	case DW_AT_high_pc:
		return &facts->high;
	case DW_AT_ranges:
		return &facts->ranges;
	case DW_AT_name:
		return &facts->name;
	case DW_AT_linkage_name:
	case DW_AT_MIPS_linkage_name:
		return &facts->linkage_name;
	case DW_AT_abstract_origin:
		return &facts->abstract_origin;
	case DW_AT_specification:
		return &facts->specification;
	case DW_AT_decl_file:
		return &facts->decl_file;
	case DW_AT_decl_line:
		return &facts->decl_line;
	case DW_AT_call_file:
		return &facts->call_file;
	case DW_AT_call_line:
		return &facts->call_line;
	case DW_AT_call_column:
		return &facts->call_column;
	case DW_AT_stmt_list:
		return &facts->stmt_list;
	case DW_AT_comp_dir:
		return &facts->comp_dir;
	case DW_AT_sibling:
		return &facts->sibling;
	case DW_AT_dwo_name:
	case DW_AT_GNU_dwo_name:
		return &facts->dwo_name;
	case DW_AT_GNU_dwo_id:
		return &facts->dwo_id;
	case DW_AT_str_offsets_base:
		return &facts->str_offsets_base;
	case DW_AT_addr_base:
	case DW_AT_GNU_addr_base:
		return &facts->addr_base;
	case DW_AT_rnglists_base:
		return &facts->rnglists_base;
	case DW_AT_GNU_ranges_base:
		return &facts->ranges_base;
	default:
		return NULL;
	}
}

int dwarf_entry_facts(const struct dwarf_unit *unit, const struct dwarf_entry *entry,
		      struct dwarf_facts *ret_facts)
{
	struct cursor cursor = cursor_in(unit, entry->at);
	const struct dwarf_attribute *attributes = unit->abbrevs->attributes, *attribute;
	struct dwarf_value spare;

	memset(ret_facts, 0, sizeof(*ret_facts));
	cursor_uleb(&cursor);
	for (uint32_t i = 0; i < entry->abbrev->count && !cursor.bad; i++) {
		attribute = &attributes[entry->abbrev->first + i];
		dwarf_value_read(&cursor, &unit->header, attribute->form, attribute->implicit,
				 place_of(ret_facts, attribute->name) ?: &spare);
	}
	return cursor.bad ? -EBADMSG : 0;
}

int dwarf_entry_behind(const struct dwarf_unit *unit, const struct dwarf_entry *entry, uint32_t *ret_at)
{
	struct dwarf_entry inner;
	uint32_t depth = 1;
	int r;

	*ret_at = entry->next;
	if (!entry->has_children)
		return 0;
	for (uint32_t at = entry->next; depth; at = inner.next) {
		r = dwarf_entry_at(unit, at, &inner);
		if (r < 0)
			return r;
		if (!inner.tag)
			depth--;
		else if (inner.has_children)
			depth++;
		*ret_at = inner.next;
	}
	return 0;
}

static bool number_of(const struct dwarf_value *value, uint64_t *ret_number)
{
	if (value->form)
		*ret_number = value->number;
	return value->form;
}

static void take_root(struct dwarf_unit *unit)
{
	const struct dwarf_facts *root = &unit->root;
	const bool is_new = unit->header.version >= 5;
	/* behind the header of a table that has one */
	const uint64_t header = unit->header.offset_size == 8 ? 16 : 8;

	if (!number_of(&root->str_offsets_base, &unit->str_offsets_base) && is_new)
		unit->str_offsets_base = header;
	if (!number_of(&root->addr_base, &unit->addr_base) && is_new)
		unit->addr_base = header;
	if (!number_of(&root->rnglists_base, &unit->rnglists_base) && is_new)
		unit->rnglists_base = header + 4;
	unit->str_offsets_base += unit->parts.str_offsets;
	unit->rnglists_base += unit->parts.rnglists;
	unit->ranges_start = is_new ? unit->parts.rnglists : 0;
	unit->is_skeleton = unit->header.type == DW_UT_skeleton || (root->dwo_name.form && root->dwo_id.form);
	dwarf_value_address(unit, &root->low, &unit->low);
}

static int read_root(struct dwarf_unit *unit)
{
	struct dwarf_entry entry;
	int r = dwarf_entry_at(unit, unit->header.bytes, &entry);

	if (r < 0 || !entry.tag)
		return r < 0 ? r : -EBADMSG;
	unit->tag = entry.tag;
	r = dwarf_entry_facts(unit, &entry, &unit->root);
	if (!r)
		take_root(unit);
	return r;
}

static int read_bytes(struct dwarf_unit *unit, size_t size)
{
	free(steal_ptr(unit->owned));
	return dwarf_bytes(unit->file, DWARF_INFO, unit->header.offset, size, &unit->bytes, &unit->owned);
}

/* As much of it as its first entry takes. */
static int open_brief(struct dwarf_unit *unit)
{
	const uint64_t whole = unit->header.size;
	struct cursor cursor;
	uint64_t size = min_of((uint64_t)BRIEF, whole);
	int r = read_bytes(unit, (size_t)size);

	if (r < 0)
		return r;
	unit->header.size = size;
	cursor = cursor_in(unit, unit->header.bytes);
	r = dwarf_abbrevs_read(unit->file, unit->header.abbrev_offset, cursor_uleb(&cursor), &unit->abbrevs);
	if (!r)
		r = read_root(unit);
	if (r == -EBADMSG && unit->abbrevs && size < whole) {
		unit->header.size = min_of((uint64_t)BRIEF_MAX, whole);
		r = read_bytes(unit, (size_t)unit->header.size) ?: read_root(unit);
	}
	unit->header.size = whole;
	return r;
}

static int open_whole(struct dwarf_unit *unit)
{
	int r = unit->header.size > DWARF_UNIT_BYTES_MAX ? -EFBIG : read_bytes(unit, (size_t)unit->header.size);

	if (!r)
		r = dwarf_abbrevs_read(unit->file, unit->header.abbrev_offset, 0, &unit->abbrevs);
	return r ?: read_root(unit);
}

int dwarf_unit_open(struct dwarf_file *file, uint64_t offset, bool is_brief, const struct dwarf_parts *parts,
		    struct dwarf_unit **ret_unit)
{
	struct dwarf_unit *unit = calloc(1, sizeof(*unit));
	int r = unit ? dwarf_header_read(file, offset, &unit->header) : -ENOMEM;

	if (!r) {
		unit->file = unit->linked = file;
		if (parts)
			unit->parts = *parts;
		unit->header.abbrev_offset += unit->parts.abbrev;
		r = is_brief ? open_brief(unit) : open_whole(unit);
	}
	if (r < 0) {
		dwarf_unit_close(unit);
		return r;
	}
	*ret_unit = unit;
	return 0;
}

void dwarf_unit_link(struct dwarf_unit *unit, const struct dwarf_unit *skeleton)
{
	unit->linked = skeleton->file;
	unit->addr_base = skeleton->addr_base;
	unit->low = skeleton->low;
	unit->is_skeleton = false;
	if (unit->header.version < 5)
		unit->ranges_start = skeleton->root.ranges_base.number;
}

bool dwarf_unit_dwo_id(const struct dwarf_unit *unit, uint64_t *ret_id)
{
	const struct dwarf_header *header = &unit->header;

	*ret_id = header->version >= 5 ? header->dwo_id : unit->root.dwo_id.number;
	return header->version < 5 ? unit->root.dwo_id.form :
	       header->type == DW_UT_skeleton || header->type == DW_UT_split_compile;
}

void dwarf_unit_close(struct dwarf_unit *unit)
{
	if (!unit)
		return;
	dwarf_abbrevs_unref(unit->abbrevs);
	free(unit->owned);
	free(unit);
}

bool dwarf_value_address(const struct dwarf_unit *unit, const struct dwarf_value *value, uint64_t *ret_address)
{
	const uint8_t size = unit->header.address_size;
	uint64_t address = 0;

	switch (value->form) {
	case DW_FORM_addr:
		*ret_address = value->number;
		return true;
	case DW_FORM_addrx:
	case DW_FORM_addrx1:
	case DW_FORM_addrx2:
	case DW_FORM_addrx3:
	case DW_FORM_addrx4:
	case DW_FORM_GNU_addr_index:
		if (value->number > UINT32_MAX ||
		    dwarf_peek(unit->linked, DWARF_ADDR, unit->addr_base + value->number * size, &address,
			       size) < 0)
			return false;
		*ret_address = address;
		return true;
	default:
		return false;
	}
}

const char *dwarf_value_text(const struct dwarf_unit *unit, const struct dwarf_value *value,
			     char ret_text[static DWARF_TEXT_MAX])
{
	const uint8_t size = unit->header.offset_size;
	uint64_t offset = 0;

	ret_text[0] = '\0';
	switch (value->form) {
	case DW_FORM_string:
		snprintf(ret_text, DWARF_TEXT_MAX, "%s", value->text);
		return ret_text;
	case DW_FORM_strp:
		return dwarf_text(unit->file, DWARF_STR, value->number, ret_text);
	case DW_FORM_line_strp:
		return dwarf_text(unit->file, DWARF_LINE_STR, value->number, ret_text);
	case DW_FORM_strp_sup:
	case DW_FORM_GNU_strp_alt:
		return dwarf_alt(unit->file) ? dwarf_text(dwarf_alt(unit->file), DWARF_STR, value->number, ret_text) :
					       ret_text;
	case DW_FORM_strx:
	case DW_FORM_strx1:
	case DW_FORM_strx2:
	case DW_FORM_strx3:
	case DW_FORM_strx4:
	case DW_FORM_GNU_str_index:
		if (value->number > UINT32_MAX ||
		    dwarf_peek(unit->file, DWARF_STR_OFFSETS, unit->str_offsets_base + value->number * size,
			       &offset, size) < 0)
			return ret_text;
		return dwarf_text(unit->file, DWARF_STR, offset, ret_text);
	default:
		return ret_text;
	}
}
