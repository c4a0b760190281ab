// SPDX-License-Identifier: Apache-2.0
#include "unwind/cfi.h"

#include <dwarf.h>

#include "unwind/cursor.h"
#include "unwind/program.h"

struct entry {
	size_t at, next;
	uint64_t cie;		/* offset of its common entry; UINT64_MAX: it is one */
	struct cursor body;
};

/* The entry at @offset. False: the end, or nothing that could be an entry. */
static bool read_entry(const struct cfi_section *section, size_t offset, struct entry *ret_entry)
{
	struct cursor cursor = { .at = section->data + offset, .end = section->data + section->size };
	const uint8_t *id_at;
	uint64_t length, id, cie_id;
	unsigned int id_bytes = 4;

	length = cursor_number(&cursor, 4);
	if (length == 0xffffffff) {
		length = cursor_number(&cursor, 8);
		/* only .debug_frame widens the id as well */
		id_bytes = section->is_debug ? 8 : 4;
	}
	if (cursor.bad || length < id_bytes || length > cursor_left(&cursor))
		return false;
	cursor.end = cursor.at + length;
	id_at = cursor.at;
	id = cursor_number(&cursor, id_bytes);
	cie_id = !section->is_debug ? 0 : id_bytes == 8 ? UINT64_MAX : 0xffffffff;
	*ret_entry = (struct entry){
		.at = offset,
		.next = (size_t)(cursor.end - section->data),
		.body = cursor,
	};
	if (id == cie_id)
		ret_entry->cie = UINT64_MAX;
	else if (section->is_debug)
		ret_entry->cie = id;
	else
		ret_entry->cie = (uint64_t)(id_at - section->data) - id;
	return true;
}

/* Bytes of a number in this encoding, 0: a LEB128, -1: not supported. */
static int encoded_bytes(uint8_t encoding)
{
	switch (encoding & 0x0f) {
	case DW_EH_PE_uleb128:
	case DW_EH_PE_sleb128:
		return 0;
	case DW_EH_PE_udata2:
	case DW_EH_PE_sdata2:
		return 2;
	case DW_EH_PE_udata4:
	case DW_EH_PE_sdata4:
		return 4;
	case DW_EH_PE_absptr:
	case DW_EH_PE_signed:
	case DW_EH_PE_udata8:
	case DW_EH_PE_sdata8:
		return 8;
	}
	return -1;
}

static uint64_t read_encoded(const struct cfi_section *section, struct cursor *cursor,
			     uint8_t encoding)
{
	uint64_t place = section->address + (uint64_t)(cursor->at - section->data);
	int bytes = encoded_bytes(encoding);
	uint64_t value;

	if (bytes < 0) {
		cursor->bad = true;
		return 0;
	}
	if (bytes)
		value = cursor_number(cursor, (unsigned int)bytes);
	else if ((encoding & 0x0f) == DW_EH_PE_uleb128)
		value = cursor_uleb(cursor);
	else
		value = (uint64_t)cursor_sleb(cursor);
	if (encoding & DW_EH_PE_signed && bytes && bytes < 8 &&
	    value >> (8 * bytes - 1) & 1)
		value |= ~0ULL << (8 * bytes);
	switch (encoding & 0x70) {
	case DW_EH_PE_absptr:
		return value;
	case DW_EH_PE_pcrel:
		return place + value;
	}
	cursor->bad = true;
	return 0;
}

/* The augmentation of a common entry: what its letters stand for, in their order. */
static bool read_augmentation(struct cursor *cursor, const char *letters, struct cfi_cie *cie)
{
	struct cursor data = *cursor;
	uint64_t size;
	int bytes;

	if (!*letters)
		return true;
	if (*letters != 'z')
		return false;
	cie->has_length = true;
	size = cursor_uleb(cursor);
	data.at = cursor->at;
	if (!cursor_take(cursor, size))
		return false;
	data.end = cursor->at;
	for (letters++; *letters; letters++) {
		uint8_t encoding;

		switch (*letters) {
		case 'L':
			cursor_u8(&data);
			break;
		case 'P':
			encoding = cursor_u8(&data);
			bytes = encoded_bytes(encoding);
			if (bytes < 0 || encoding == DW_EH_PE_aligned)
				return false;
			if (bytes)
				cursor_take(&data, (uint64_t)bytes);
			else
				cursor_uleb(&data);
			break;
		case 'R':
			cie->encoding = cursor_u8(&data);
			break;
		case 'S':
			cie->is_signal = true;
			break;
		case 'B':	/* which key signs return addresses */
		case 'G':	/* tagged stack memory */
			break;
		default:
			return false;
		}
	}
	return !data.bad && !(cie->encoding & DW_EH_PE_indirect);
}

static bool parse_cie(const struct cfi_section *section, struct cursor *cursor, struct cfi_cie *cie)
{
	uint8_t version = cursor_u8(cursor);
	const char *letters;
	uint64_t column;

	letters = (const char *)cursor->at;
	while (cursor_u8(cursor))
		;
	if (cursor->bad || (version != 1 && version != 3 && version != 4))
		return false;
	if (version == 4 && (cursor_u8(cursor) != 8 || cursor_u8(cursor) != 0))
		return false;
	cie->code_align = cursor_uleb(cursor);
	cie->data_align = cursor_sleb(cursor);
	column = version == 1 ? cursor_u8(cursor) : cursor_uleb(cursor);
	if (cursor->bad || !read_augmentation(cursor, letters, cie))
		return false;
	/*
	 * A function may keep its return address elsewhere (aarch64's rawmemchr: in x15), but when it
	 * begins to do so this cannot say.
	 */
	cie->is_opaque = column != section->machine->ra || cie->code_align > CFI_ALIGN_MAX ||
			 cie->data_align > CFI_ALIGN_MAX || cie->data_align < -CFI_ALIGN_MAX ||
			 cursor_left(cursor) > CFI_CIE_PROGRAM_MAX ||
			 !program_initial(section->machine, cie, cursor->at, cursor_left(cursor));
	return true;
}

/* The common entry at @offset. NULL: there is none that is understood. */
static const struct cfi_cie *find_cie(struct cfi_section *section, uint64_t offset)
{
	struct cfi_cie *cie = &section->cies[offset / 8 % CFI_CIES];
	struct entry entry;

	if (offset >= section->size)
		return NULL;
	if (cie->offset != offset + 1) {
		*cie = (struct cfi_cie){ .offset = (size_t)offset + 1 };
		cie->is_good = read_entry(section, (size_t)offset, &entry) &&
			       entry.cie == UINT64_MAX && parse_cie(section, &entry.body, cie);
	}
	return cie->is_good ? cie : NULL;
}

static bool parse_fde(struct cfi_section *section, struct entry *entry, struct cfi_fde *fde)
{
	struct cursor *cursor = &entry->body;
	uint64_t size;

	fde->cie = find_cie(section, entry->cie);
	if (!fde->cie)
		return false;
	fde->start = read_encoded(section, cursor, fde->cie->encoding);
	/* a length has the format of the address, but it is not relative and has no sign */
	size = read_encoded(section, cursor, fde->cie->encoding & 0x07);
	if (cursor->bad || !size || size > UINT64_MAX - fde->start)
		return false;
	fde->end = fde->start + size;
	if (fde->cie->has_length && !cursor_take(cursor, cursor_uleb(cursor)))
		return false;
	fde->program = cursor->at;
	fde->program_bytes = cursor_left(cursor);
	return !cursor->bad;
}

/* A terminator ends what one file brought into the link; more may follow. */
static bool is_zero(const struct cfi_section *section, size_t offset)
{
	uint32_t length;

	memcpy(&length, section->data + offset, sizeof(length));
	return length == 0;
}

bool cfi_next(struct cfi_section *section, size_t *offset, size_t *ret_at, struct cfi_fde *ret_fde)
{
	struct entry entry;

	while (*offset < section->size) {
		if (section->size - *offset >= 4 && !is_zero(section, *offset)) {
			if (!read_entry(section, *offset, &entry))
				break;
			*offset = entry.next;
		} else if (section->is_open) {
			break;
		} else {
			*offset += 4;
			continue;
		}
		if (entry.cie != UINT64_MAX && parse_fde(section, &entry, ret_fde)) {
			*ret_at = entry.at;
			return true;
		}
	}
	*offset = section->size;
	return false;
}

int cfi_run(const struct cfi_section *section, const struct cfi_fde *fde,
	    int (*row)(void *ctx, const struct cfi_fde *fde, uint64_t address,
		       const struct cfi_state *state),
	    void *ctx)
{
	struct program program;

	if (fde->cie->is_opaque)
		return row(ctx, fde, fde->start, NULL);
	program_begin(&program, section->machine, fde);
	for (;;) {
		uint64_t address = program.address;
		enum program_end end;
		int r;

		/* the row is complete when the address moves on */
		end = program_step(&program);
		r = row(ctx, fde, address, end == PROGRAM_BAD ? NULL : &program.state);
		if (r || end != PROGRAM_MOVED)
			return r;
		program.address = program.next;
		if (program.address >= fde->end)
			return 0;
	}
}
