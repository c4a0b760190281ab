// SPDX-License-Identifier: Apache-2.0
#include "unwind/frames.h"

#include <dwarf.h>
#include <zlib.h>
#include <zstd.h>

#include "unwind/cursor.h"

enum {
	CHUNK = 64 * 1024,
	CHDR_ZSTD = 2,		/* ELFCOMPRESS_ZSTD, younger than some elf.h */
};

static int read_section(const struct elf *elf, struct builder *builder, uint64_t offset,
			uint64_t size, struct cfi_section *section)
{
	uint8_t *data;
	int r;

	if (size == 0)
		return 0;
	if (size > FRAMES_BYTES_MAX || offset > elf->size || size > elf->size - offset)
		return -EFBIG;
	data = builder_alloc(builder, size);
	if (!data)
		return -ENOMEM;
	r = elf_read(elf, offset, data, size);
	if (r < 0) {
		builder_free(builder, data, size);
		return r;
	}
	section->data = data;
	section->size = size;
	return 0;
}

/* Without sections .eh_frame_hdr tells where .eh_frame begins; its segment bounds it. */
static int read_by_header(const struct elf *elf, struct builder *builder,
			  struct cfi_section *section)
{
	uint8_t bytes[16];
	struct cursor cursor = { .at = bytes, .end = bytes + sizeof(bytes) };
	const Elf64_Phdr *header = NULL;
	uint64_t address, value;
	uint8_t encoding;

	for (size_t i = 0; i < elf->phdr_count && !header; i++)
		if (elf->phdrs[i].p_type == PT_GNU_EH_FRAME)
			header = &elf->phdrs[i];
	if (!header || elf_read(elf, header->p_offset, bytes, sizeof(bytes)) < 0 ||
	    cursor_u8(&cursor) != 1)
		return 0;
	encoding = cursor_u8(&cursor);
	cursor_take(&cursor, 2);
	if (encoding == (DW_EH_PE_pcrel | DW_EH_PE_sdata4)) {
		value = cursor_number(&cursor, 4);
		address = header->p_vaddr + 4 + (uint64_t)(int64_t)(int32_t)value;
	} else if (encoding == (DW_EH_PE_pcrel | DW_EH_PE_sdata8)) {
		address = header->p_vaddr + 4 + cursor_number(&cursor, 8);
	} else {
		return 0;
	}
	for (size_t i = 0; i < elf->phdr_count; i++) {
		const Elf64_Phdr *phdr = &elf->phdrs[i];

		if (phdr->p_type != PT_LOAD || address < phdr->p_vaddr ||
		    address - phdr->p_vaddr >= phdr->p_filesz)
			continue;
		section->address = address;
		section->is_open = true;
		return read_section(elf, builder, phdr->p_offset + (address - phdr->p_vaddr),
				    phdr->p_filesz - (address - phdr->p_vaddr), section);
	}
	return 0;
}

int frames_read_eh(const struct elf *elf, struct builder *builder, struct cfi_section *section)
{
	const Elf64_Shdr *shdr = elf_find_section(elf, SHT_NULL, ".eh_frame");

	*section = (struct cfi_section){ .machine = builder->machine };
	/* a file with debug information alone has the header, but not the bytes */
	if (!shdr || shdr->sh_type == SHT_NOBITS || shdr->sh_flags & SHF_COMPRESSED)
		return read_by_header(elf, builder, section);
	section->address = shdr->sh_addr;
	return read_section(elf, builder, shdr->sh_offset, shdr->sh_size, section);
}

static bool inflate_zlib(const uint8_t *from, size_t from_size, uint8_t *to, size_t to_size)
{
	uLongf size = to_size;

	return uncompress(to, &size, from, from_size) == Z_OK && size == to_size;
}

static bool inflate_zstd(const uint8_t *from, size_t from_size, uint8_t *to, size_t to_size)
{
	return ZSTD_decompress(to, to_size, from, from_size) == to_size;
}

/* Replace the section by what it says when it is decompressed. */
static int decompress(struct builder *builder, struct cfi_section *section)
{
	Elf64_Chdr chdr;
	uint8_t *data;
	bool ok;

	if (section->size < sizeof(chdr))
		return -ENOEXEC;
	memcpy(&chdr, section->data, sizeof(chdr));
	if (chdr.ch_size > FRAMES_BYTES_MAX)
		return -EFBIG;
	if (chdr.ch_type != ELFCOMPRESS_ZLIB && chdr.ch_type != CHDR_ZSTD)
		return -ENOTSUP;
	data = builder_alloc(builder, chdr.ch_size);
	if (!data)
		return -ENOMEM;
	ok = (chdr.ch_type == CHDR_ZSTD ? inflate_zstd : inflate_zlib)(
		section->data + sizeof(chdr), section->size - sizeof(chdr), data, chdr.ch_size);
	if (!ok) {
		builder_free(builder, data, chdr.ch_size);
		return -ENOEXEC;
	}
	frames_free(builder, section);
	section->data = data;
	section->size = chdr.ch_size;
	return 0;
}

int frames_read_debug(const struct elf *elf, struct builder *builder, struct cfi_section *section)
{
	const Elf64_Shdr *shdr = elf_find_section(elf, SHT_NULL, ".debug_frame");
	int r;

	*section = (struct cfi_section){ .machine = builder->machine, .is_debug = true };
	if (!shdr || shdr->sh_type == SHT_NOBITS)
		return 0;
	r = read_section(elf, builder, shdr->sh_offset, shdr->sh_size, section);
	if (r == 0 && shdr->sh_flags & SHF_COMPRESSED)
		r = decompress(builder, section);
	if (r < 0)
		frames_free(builder, section);
	return r;
}

void frames_free(struct builder *builder, struct cfi_section *section)
{
	union {
		const uint8_t *data;
		void *memory;
	} owned = { .data = section->data };

	builder_free(builder, owned.memory, section->size);
	section->data = NULL;
	section->size = 0;
}
