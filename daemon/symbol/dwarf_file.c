// SPDX-License-Identifier: Apache-2.0
#include "symbol/dwarf_file.h"

#include <endian.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "base/clock.h"
#include "symbol/kernel_module.h"

#define BLOCK_BYTES ((size_t)16 << 10)
#ifndef ELFCOMPRESS_ZSTD
#define ELFCOMPRESS_ZSTD 2	/* glibc 2.37 */
#endif

enum {
	BLOCKS = 256,			/* of all sections that are kept */
	PACKED_STEP = 64 << 10,
	CODE_MAX = 64,			/* executable sections that are told apart */
};

struct section {
	uint64_t offset, size;		/* in the file; of a compressed one, the size unpacked */
	uint64_t packed_size;
	size_t number;			/* among the file's */
	/* RELOCATED: it is not compressed, and kept whole as if it were, because the file has it otherwise */
	enum { NOT_PACKED, RELOCATED, PACKED_ZLIB, PACKED_ZSTD } packing;
	bool is_relocated;
	uint8_t *bytes;			/* unpacked; NULL: not yet */
	int error;			/* -errno of unpacking it */
};

struct block {
	uint8_t *bytes;
	uint64_t number;
	size_t size;
	enum dwarf_section section;
};

struct code {
	uint64_t start, size;
};

struct dwarf_file {
	const struct elf *elf;
	struct dwarf_file *alt;
	struct section sections[DWARF_SECTIONS];
	uint64_t unpacked;		/* bytes of those */
	struct block blocks[BLOCKS];
	struct code code[CODE_MAX];
	size_t code_count;
	bool has_more_code;		/* than is told apart */
	int failed;			/* see dwarf_take_failure() */
};

static const char *const names[DWARF_SECTIONS] = {
	[DWARF_INFO] = "info",
	[DWARF_ABBREV] = "abbrev",
	[DWARF_LINE] = "line",
	[DWARF_STR] = "str",
	[DWARF_LINE_STR] = "line_str",
	[DWARF_STR_OFFSETS] = "str_offsets",
	[DWARF_ADDR] = "addr",
	[DWARF_RANGES] = "ranges",
	[DWARF_RNGLISTS] = "rnglists",
	[DWARF_ARANGES] = "aranges",
	[DWARF_CU_INDEX] = "cu_index",
};

/* The header of what is compressed as ELF has it. */
static int look_into(const struct elf *elf, struct section *section)
{
	union {
		Elf64_Chdr large;
		Elf32_Chdr small;
	} header;
	const size_t bytes = elf->is_64 ? sizeof(header.large) : sizeof(header.small);
	uint32_t type;
	int r = section->size < bytes ? -ENODATA : elf_read(elf, section->offset, &header, bytes);

	if (r < 0)
		return r;
	type = elf->is_64 ? header.large.ch_type : header.small.ch_type;
	if (type == ELFCOMPRESS_ZLIB)
		section->packing = PACKED_ZLIB;
	else if (type == ELFCOMPRESS_ZSTD)
		section->packing = PACKED_ZSTD;
	else
		return -ENODATA;
	section->offset += bytes;
	section->packed_size = section->size - bytes;
	section->size = elf->is_64 ? header.large.ch_size : header.small.ch_size;
	return 0;
}

/* The same as compilers had it before: "ZLIB", and a size whose first byte is the highest. */
static int look_into_old(const struct elf *elf, struct section *section)
{
	uint64_t size;
	char header[12];
	int r = section->size < sizeof(header) ? -ENODATA :
		elf_read(elf, section->offset, header, sizeof(header));

	if (r < 0 || memcmp(header, "ZLIB", 4))
		return r < 0 ? r : -ENODATA;
	memcpy(&size, header + 4, sizeof(size));
	section->packing = PACKED_ZLIB;
	section->offset += sizeof(header);
	section->packed_size = section->size - sizeof(header);
	section->size = be64toh(size);
	return 0;
}

/* -EFBIG: it is too large to be unpacked, and nothing is right without it. */
static int find_section(struct dwarf_file *file, enum dwarf_section i, bool is_split)
{
	const char *suffix = is_split && i != DWARF_CU_INDEX ? ".dwo" : "";
	const struct elf *elf = file->elf;
	const Elf64_Shdr *shdr;
	struct section *section = &file->sections[i];
	char name[32];
	bool is_old;
	int r = 0;

	snprintf(name, sizeof(name), ".debug_%s%s", names[i], suffix);
	shdr = elf_find_section(elf, SHT_NULL, name);
	is_old = !shdr;
	if (is_old) {
		snprintf(name, sizeof(name), ".zdebug_%s%s", names[i], suffix);
		shdr = elf_find_section(elf, SHT_NULL, name);
	}
	if (!shdr || shdr->sh_type == SHT_NOBITS || shdr->sh_offset > elf->size)
		return 0;
	section->offset = shdr->sh_offset;
	section->size = min_of(shdr->sh_size, elf->size - shdr->sh_offset);
	if (is_old)
		r = look_into_old(elf, section);
	else if (shdr->sh_flags & SHF_COMPRESSED)
		r = look_into(elf, section);
	section->number = (size_t)(shdr - elf->shdrs);
	section->is_relocated = kernel_module_is(elf) && kernel_module_has_relocations(elf, section->number);
	if (section->is_relocated && !section->packing)
		section->packing = RELOCATED;
	if (!r && section->packing && section->size > DWARF_UNPACKED_MAX)
		r = -EFBIG;
	if (r < 0)
		*section = (struct section){ .size = 0 };
	return r == -EFBIG && (i == DWARF_INFO || i == DWARF_LINE || i == DWARF_STR) ? r : 0;
}

static void find_code(struct dwarf_file *file)
{
	const struct elf *elf = file->elf;

	for (size_t i = 0; i < elf->shdr_count; i++) {
		const Elf64_Shdr *shdr = &elf->shdrs[i];

		if (!(shdr->sh_flags & SHF_ALLOC) || !(shdr->sh_flags & SHF_EXECINSTR))
			continue;
		if (file->code_count == CODE_MAX) {
			file->has_more_code = true;
			return;
		}
		file->code[file->code_count++] = (struct code){ shdr->sh_addr, shdr->sh_size };
	}
}

int dwarf_file_open(const struct elf *elf, bool is_split, struct dwarf_file **ret_file)
{
	struct dwarf_file *file = calloc(1, sizeof(*file));
	int r = 0;

	if (!file)
		return -ENOMEM;
	file->elf = elf;
	for (enum dwarf_section i = 0; !r && i < DWARF_SECTIONS; i++)
		r = find_section(file, i, is_split);
	if (!r && (!file->sections[DWARF_INFO].size || !file->sections[DWARF_ABBREV].size))
		r = -ENODATA;
	if (r < 0) {
		dwarf_file_close(file);
		return r;
	}
	find_code(file);
	*ret_file = file;
	return 0;
}

void dwarf_set_alt(struct dwarf_file *file, struct dwarf_file *alt)
{
	file->alt = alt;
}

struct dwarf_file *dwarf_alt(const struct dwarf_file *file)
{
	return file->alt;
}

void dwarf_file_close(struct dwarf_file *file)
{
	if (!file)
		return;
	for (size_t i = 0; i < DWARF_SECTIONS; i++)
		free(file->sections[i].bytes);
	for (size_t i = 0; i < BLOCKS; i++)
		free(file->blocks[i].bytes);
	free(file);
}

uint64_t dwarf_size(const struct dwarf_file *file, enum dwarf_section section)
{
	return file->sections[section].size;
}

bool dwarf_is_code(const struct dwarf_file *file, uint64_t address)
{
	for (size_t i = 0; i < file->code_count; i++)
		if (address - file->code[i].start < file->code[i].size)
			return true;
	return (!file->code_count || file->has_more_code) && address;
}

struct unpacking {
	const struct elf *elf;
	struct section *section;
	uint64_t read;			/* of what is packed */
	uint8_t *packed;		/* PACKED_STEP */
};

static int next_packed(struct unpacking *unpacking, size_t *ret_size)
{
	const struct section *section = unpacking->section;
	const size_t size = (size_t)min_of((uint64_t)PACKED_STEP, section->packed_size - unpacking->read);
	int r = size ? elf_read(unpacking->elf, section->offset + unpacking->read, unpacking->packed, size) :
		       -ENODATA;

	unpacking->read += size;
	*ret_size = size;
	return r;
}

static int unpack_zlib(struct unpacking *unpacking)
{
	z_stream stream = { 0 };
	int r = inflateInit(&stream) == Z_OK ? 0 : -EFBIG, result = Z_OK;
	size_t size;

	if (r < 0)
		return r;
	stream.next_out = unpacking->section->bytes;
	stream.avail_out = (uInt)unpacking->section->size;
	while (!r && result == Z_OK && stream.avail_out) {
		if (!stream.avail_in) {
			r = next_packed(unpacking, &size);
			if (r < 0)
				break;
			stream.next_in = unpacking->packed;
			stream.avail_in = (uInt)size;
		}
		result = inflate(&stream, Z_NO_FLUSH);
		/* gold and ld -r put one stream behind the other */
		if (result == Z_STREAM_END && stream.avail_out)
			result = inflateReset(&stream);
	}
	inflateEnd(&stream);
	return r ? r : stream.avail_out ? -EBADMSG : 0;
}

static int unpack_zstd(struct unpacking *unpacking)
{
	ZSTD_DStream *stream = ZSTD_createDStream();
	ZSTD_outBuffer out = { unpacking->section->bytes, (size_t)unpacking->section->size, 0 };
	ZSTD_inBuffer in = { unpacking->packed, 0, 0 };
	int r = stream ? 0 : -EFBIG;
	size_t result;

	while (!r && out.pos < out.size) {
		if (in.pos == in.size) {
			in.pos = 0;
			r = next_packed(unpacking, &in.size);
			if (r < 0)
				break;
		}
		result = ZSTD_decompressStream(stream, &out, &in);
		if (ZSTD_isError(result))
			r = ZSTD_getErrorCode(result) == ZSTD_error_memory_allocation ? -EFBIG : -EBADMSG;
	}
	ZSTD_freeDStream(stream);
	return r;
}

static int unpack_any(struct unpacking *unpacking)
{
	const struct section *section = unpacking->section;
	int r;

	if (section->packing == RELOCATED)
		r = elf_read(unpacking->elf, section->offset, section->bytes, section->size);
	else
		r = section->packing == PACKED_ZLIB ? unpack_zlib(unpacking) : unpack_zstd(unpacking);
	if (!r && section->is_relocated) {
		r = kernel_module_relocate(unpacking->elf, section->number, section->bytes, section->size);
		/* not as what is damaged here and there: nothing in it is right; nor is the next parser to be had for more memory */
		r = r == -EBADMSG ? -EUCLEAN : r == -ENOMEM ? -EFBIG : r;
	}
	return r;
}

/* Texts and what else has no errors would be empty, and right by their looks. */
static int note_failure(struct dwarf_file *file, int r)
{
	if (r == -ENOMEM || r == -ETIME || r == -EFBIG || r == -EUCLEAN)
		file->failed = r;
	return r;
}

int dwarf_take_failure(struct dwarf_file *file)
{
	const int failed = file ? file->failed : 0;

	if (file)
		file->failed = 0;
	return failed;
}

static int unpack(struct dwarf_file *file, struct section *section)
{
	struct unpacking unpacking = { .elf = file->elf, .section = section };
	int r;

	if (section->bytes || section->error)
		return note_failure(file, section->error);
	unpacking.packed = malloc(PACKED_STEP);
	if (file->unpacked + section->size <= DWARF_UNPACKED_MAX)
		section->bytes = malloc(section->size + 1);
	/* the parser that another question finds has no more room for it */
	if (!unpacking.packed || !section->bytes)
		section->error = -EFBIG;
	else
		section->error = unpack_any(&unpacking);
	free(unpacking.packed);
	r = section->error;
	if (r)
		free(steal_ptr(section->bytes));
	else
		file->unpacked += section->size;
	/* the next question has time of its own */
	if (r == -ETIME)
		section->error = 0;
	return note_failure(file, r);
}

static bool is_inside(const struct section *section, uint64_t offset, uint64_t size)
{
	return offset <= section->size && size <= section->size - offset;
}

int dwarf_read(struct dwarf_file *file, enum dwarf_section i, uint64_t offset, void *ret_bytes, size_t size)
{
	struct section *section = &file->sections[i];
	int r;

	if (!is_inside(section, offset, size))
		return -ENODATA;
	if (!section->packing)
		return note_failure(file, elf_read(file->elf, section->offset + offset, ret_bytes, size));
	/* what is in memory is read without end, too */
	if (file->elf->deadline && clock_monotonic() > file->elf->deadline)
		return note_failure(file, -ETIME);
	r = unpack(file, section);
	if (!r)
		memcpy(ret_bytes, section->bytes + offset, size);
	return r;
}

int dwarf_bytes(struct dwarf_file *file, enum dwarf_section i, uint64_t offset, size_t size,
		const uint8_t **ret_bytes, void **ret_owned)
{
	struct section *section = &file->sections[i];
	int r;

	*ret_owned = NULL;
	if (!is_inside(section, offset, size))
		return -ENODATA;
	if (section->packing) {
		r = unpack(file, section);
		*ret_bytes = section->bytes + offset;
		return r;
	}
	*ret_owned = malloc(size + 1);
	if (!*ret_owned)
		return note_failure(file, -ENOMEM);
	r = elf_read(file->elf, section->offset + offset, *ret_owned, size);
	*ret_bytes = *ret_owned;
	if (r < 0)
		free(steal_ptr(*ret_owned));
	return note_failure(file, r);
}

/* The block of @i that @offset is in, which is inside of it. */
static int get_block(struct dwarf_file *file, enum dwarf_section i, uint64_t offset, const struct block **ret_block)
{
	const struct section *section = &file->sections[i];
	const uint64_t number = offset / BLOCK_BYTES;
	struct block *block = &file->blocks[(number + i * 37) % BLOCKS];
	int r = 0;

	if (!block->bytes || block->section != i || block->number != number) {
		if (!block->bytes)
			block->bytes = malloc(BLOCK_BYTES);
		if (!block->bytes)
			return note_failure(file, -ENOMEM);
		block->section = i;
		block->number = number;
		block->size = (size_t)min_of((uint64_t)BLOCK_BYTES, section->size - number * BLOCK_BYTES);
		r = elf_read(file->elf, section->offset + number * BLOCK_BYTES, block->bytes, block->size);
		if (r < 0)
			free(steal_ptr(block->bytes));
	}
	*ret_block = block;
	return note_failure(file, r);
}

int dwarf_peek(struct dwarf_file *file, enum dwarf_section i, uint64_t offset, void *ret_bytes, size_t size)
{
	uint8_t *to = ret_bytes;

	if (file->sections[i].packing)
		return dwarf_read(file, i, offset, ret_bytes, size);
	if (!is_inside(&file->sections[i], offset, size))
		return -ENODATA;
	while (size) {
		const size_t at = offset % BLOCK_BYTES, part = min_of(size, BLOCK_BYTES - at);
		const struct block *block;
		int r = get_block(file, i, offset, &block);

		if (r < 0)
			return r;
		memcpy(to, block->bytes + at, part);
		to += part;
		offset += part;
		size -= part;
	}
	return 0;
}

/* As much of a string as there is at @offset. False: it goes on. */
static bool add_text(char *text, size_t *length, const uint8_t *bytes, size_t size)
{
	const size_t part = strnlen((const char *)bytes, min_of(size, (size_t)DWARF_TEXT_MAX - 1 - *length));

	memcpy(text + *length, bytes, part);
	*length += part;
	text[*length] = '\0';
	return part < size;
}

const char *dwarf_text(struct dwarf_file *file, enum dwarf_section i, uint64_t offset,
		       char ret_text[static DWARF_TEXT_MAX])
{
	struct section *section = &file->sections[i];
	size_t length = 0;
	bool is_whole = false;

	ret_text[0] = '\0';
	if (section->packing) {
		if (offset < section->size && !unpack(file, section))
			add_text(ret_text, &length, section->bytes + offset, section->size - offset);
		return ret_text;
	}
	while (!is_whole && offset < section->size) {
		const size_t at = offset % BLOCK_BYTES;
		const struct block *block;

		if (get_block(file, i, offset, &block) < 0)
			break;
		is_whole = add_text(ret_text, &length, block->bytes + at, block->size - at);
		offset += block->size - at;
	}
	return ret_text;
}

void dwarf_stream_open(struct dwarf_stream *stream, struct dwarf_file *file, enum dwarf_section section,
		       uint64_t offset)
{
	stream->file = file;
	stream->section = section;
	stream->next = offset;
	stream->cursor = (struct cursor){ .at = stream->window, .end = stream->window };
}

int dwarf_stream_fill(struct dwarf_stream *stream)
{
	const uint64_t whole = dwarf_size(stream->file, stream->section);
	const size_t left = (size_t)(stream->cursor.end - stream->cursor.at);
	size_t more;
	int r;

	if (left >= DWARF_WINDOW / 2 || stream->next >= whole)
		return 0;
	more = (size_t)min_of((uint64_t)(DWARF_WINDOW - left), whole - stream->next);
	memmove(stream->window, stream->cursor.at, left);
	r = dwarf_peek(stream->file, stream->section, stream->next, stream->window + left, more);
	if (r < 0)
		return r;
	stream->next += more;
	stream->cursor.at = stream->window;
	stream->cursor.end = stream->window + left + more;
	return 0;
}
