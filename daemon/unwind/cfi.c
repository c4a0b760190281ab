// SPDX-License-Identifier: Apache-2.0
#include "unwind/cfi.h"

#include <dwarf.h>

#include "base/cursor.h"
#include "unwind/program.h"

struct entry {
	size_t at, next;
	uint64_t cie;		/* offset of its common entry; UINT64_MAX: it is one */
	struct cursor body;
	const uint8_t *bytes;	/* at `at` */
};

/* Has @window begin somewhat before @offset. */
static const uint8_t *move_window(struct cfi_section *section, struct cfi_window *window, size_t offset,
				  size_t size)
{
	size_t before = min_of(offset, (size_t)CFI_WINDOW / 4), all;
	int r;

	/* entries follow each other mostly, and sometimes come in small steps back */
	if (before + size > CFI_WINDOW)
		before = 0;
	all = min_of(section->size - (offset - before), (size_t)CFI_WINDOW);
	window->size = 0;
	r = elf_read(section->elf, section->offset + offset - before, window->bytes, all);
	if (r < 0) {
		section->error = r;
		return NULL;
	}
	window->offset = offset - before;
	window->size = all;
	return window->bytes + before;
}

/* [@offset, @offset + @size) of the section, which it has; good until the next call. */
static inline const uint8_t *bytes_at(struct cfi_section *section, struct cfi_window *window,
				      size_t offset, size_t size)
{
	if (section->data)
		return section->data + offset;
	if (offset >= window->offset && offset - window->offset <= window->size &&
	    size <= window->size - (offset - window->offset))
		return window->bytes + (offset - window->offset);
	return move_window(section, window, offset, size);
}

/* Nearly all numbers have four bytes, which take one load where the compiler knows that. */
static inline uint64_t read_number(struct cursor *cursor, unsigned int bytes)
{
	return bytes == 4 ? cursor_number(cursor, 4) : cursor_number(cursor, bytes);
}

/*
 * The entry at @offset. False: the end, or nothing that could be an entry. One that is too large
 * has an empty body.
 */
static bool read_entry(struct cfi_section *section, struct cfi_window *window, size_t offset,
		       struct entry *ret_entry)
{
	size_t left = section->size - offset, head = min_of(left, (size_t)12);
	struct cursor cursor;
	uint64_t length, id, cie_id;
	unsigned int id_bytes = 4;
	size_t id_at;

	cursor.at = bytes_at(section, window, offset, head);
	if (!cursor.at)
		return false;
	cursor = (struct cursor){ .at = cursor.at, .end = cursor.at + head };
	length = cursor_number(&cursor, 4);
	id_at = 4;
	if (length == 0xffffffff) {
		length = cursor_number(&cursor, 8);
		id_at = 12;
		/* only .debug_frame widens the id as well */
		id_bytes = section->is_debug ? 8 : 4;
	}
	if (cursor.bad || length < id_bytes || length > left - id_at)
		return false;
	*ret_entry = (struct entry){ .at = offset, .next = offset + id_at + (size_t)length };
	if (id_at + length > CFI_WINDOW)
		return true;
	ret_entry->bytes = bytes_at(section, window, offset, id_at + (size_t)length);
	if (!ret_entry->bytes)
		return false;
	cursor = (struct cursor){
		.at = ret_entry->bytes + id_at,
		.end = ret_entry->bytes + id_at + length,
	};
	id = read_number(&cursor, id_bytes);
	ret_entry->body = cursor;
	cie_id = !section->is_debug ? 0 : id_bytes == 8 ? UINT64_MAX : 0xffffffff;
	if (id == cie_id)
		ret_entry->cie = UINT64_MAX;
	else
		ret_entry->cie = section->is_debug ? id : offset + id_at - id;
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

static uint64_t read_encoded(const struct cfi_section *section, struct entry *entry,
			     uint8_t encoding)
{
	struct cursor *cursor = &entry->body;
	uint64_t place = section->address + entry->at + (uint64_t)(cursor->at - entry->bytes);
	int bytes = encoded_bytes(encoding);
	uint64_t value;

	if (bytes < 0) {
		cursor->bad = true;
		return 0;
	}
	if (bytes)
		value = read_number(cursor, (unsigned int)bytes);
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
	 * A function may keep its return address elsewhere (aarch64's rawmemchr: in x15), but when
	 * it begins to do so this cannot say.
	 */
	cie->is_opaque = column != section->machine->ra || cie->code_align > CFI_ALIGN_MAX ||
			 cie->data_align > CFI_ALIGN_MAX || cie->data_align < -CFI_ALIGN_MAX ||
			 cursor_left(cursor) > CFI_CIE_PROGRAM_MAX;
	if (cie->is_opaque)
		return true;
	memcpy(cie->program, cursor->at, cursor_left(cursor));
	cie->is_opaque = !program_initial(section->machine, cie, cie->program, cursor_left(cursor));
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
		cie->is_good = read_entry(section, &section->cie_window, (size_t)offset, &entry) &&
			       entry.bytes && entry.cie == UINT64_MAX &&
			       parse_cie(section, &entry.body, cie);
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
	fde->start = read_encoded(section, entry, fde->cie->encoding);
	/* a length has the format of the address, but it is not relative and has no sign */
	size = read_encoded(section, entry, fde->cie->encoding & 0x07);
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
static bool is_terminator(struct cfi_section *section, size_t offset)
{
	const uint8_t *bytes;
	uint32_t length;

	if (section->size - offset < sizeof(length))
		return true;
	bytes = bytes_at(section, &section->window, offset, sizeof(length));
	if (!bytes)
		return false;
	memcpy(&length, bytes, sizeof(length));
	return length == 0;
}

bool cfi_next(struct cfi_section *section, size_t *offset, size_t *ret_at, struct cfi_fde *ret_fde)
{
	struct entry entry;

	while (*offset < section->size) {
		if (is_terminator(section, *offset)) {
			if (section->is_open || section->size - *offset < 4)
				break;
			*offset += 4;
			continue;
		}
		if (!read_entry(section, &section->window, *offset, &entry))
			break;
		*offset = entry.next;
		if (entry.bytes && entry.cie != UINT64_MAX && parse_fde(section, &entry, ret_fde)) {
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
