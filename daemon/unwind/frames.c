// SPDX-License-Identifier: Apache-2.0
#include "unwind/frames.h"

#include <dwarf.h>
#include <zlib.h>
#include <zstd.h>

#include "base/cursor.h"

enum {
	CHDR_ZSTD = 2,		/* ELFCOMPRESS_ZSTD, younger than some elf.h */
};

/* An empty section where the file does not hold what it says. */
static void place_section(const struct elf *elf, const struct machine *machine, uint64_t offset,
			  uint64_t size, struct cfi_section *section)
{
	section->elf = elf;
	section->machine = machine;
	section->offset = offset;
	if (size <= FRAMES_BYTES_MAX && offset <= elf->size && size <= elf->size - offset)
		section->size = size;
}

/* Without sections .eh_frame_hdr tells where .eh_frame begins; its segment bounds it. */
static void find_by_header(const struct elf *elf, const struct machine *machine,
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
		return;
	encoding = cursor_u8(&cursor);
	cursor_take(&cursor, 2);
	if (encoding == (DW_EH_PE_pcrel | DW_EH_PE_sdata4)) {
		value = cursor_number(&cursor, 4);
		address = header->p_vaddr + 4 + (uint64_t)(int64_t)(int32_t)value;
	} else if (encoding == (DW_EH_PE_pcrel | DW_EH_PE_sdata8)) {
		address = header->p_vaddr + 4 + cursor_number(&cursor, 8);
	} else {
		return;
	}
	for (size_t i = 0; i < elf->phdr_count; i++) {
		const Elf64_Phdr *phdr = &elf->phdrs[i];

		if (phdr->p_type != PT_LOAD || address < phdr->p_vaddr ||
		    address - phdr->p_vaddr >= phdr->p_filesz)
			continue;
		section->address = address;
		section->is_open = true;
		place_section(elf, machine, phdr->p_offset + (address - phdr->p_vaddr),
			      min_of(phdr->p_filesz - (address - phdr->p_vaddr),
				     (uint64_t)FRAMES_BYTES_MAX), section);
		return;
	}
}

void frames_find_eh(const struct elf *elf, const struct machine *machine,
		    struct cfi_section *section)
{
	const Elf64_Shdr *shdr = elf_find_section(elf, SHT_NULL, ".eh_frame");

	/* a file with debug information alone has the header, but not the bytes */
	if (!shdr || shdr->sh_type == SHT_NOBITS || shdr->sh_flags & SHF_COMPRESSED) {
		find_by_header(elf, machine, section);
		return;
	}
	section->address = shdr->sh_addr;
	place_section(elf, machine, shdr->sh_offset, shdr->sh_size, section);
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

static int decompress_into(struct cfi_section *section, const Elf64_Chdr *chdr,
			   const uint8_t *packed, size_t packed_size, struct builder *builder)
{
	uint8_t *data = builder_alloc(builder, chdr->ch_size);
	bool ok;

	if (!data)
		return -ENOMEM;
	ok = (chdr->ch_type == CHDR_ZSTD ? inflate_zstd : inflate_zlib)(packed, packed_size, data,
									chdr->ch_size);
	if (!ok) {
		builder_free(builder, data, chdr->ch_size);
		return -ENOEXEC;
	}
	section->data = data;
	section->size = chdr->ch_size;
	return 0;
}

/* Replace the section by what it says when it is decompressed. */
static int decompress(struct builder *builder, struct cfi_section *section)
{
	size_t packed_size = section->size - sizeof(Elf64_Chdr);
	uint8_t *packed;
	Elf64_Chdr chdr;
	int r;

	if (section->size < sizeof(chdr))
		return -ENOEXEC;
	r = elf_read(section->elf, section->offset, &chdr, sizeof(chdr));
	if (r < 0)
		return r;
	if (chdr.ch_size > FRAMES_BYTES_MAX)
		return -EFBIG;
	if (chdr.ch_type != ELFCOMPRESS_ZLIB && chdr.ch_type != CHDR_ZSTD)
		return -ENOTSUP;
	packed = builder_alloc(builder, packed_size);
	if (!packed)
		return -ENOMEM;
	r = elf_read(section->elf, section->offset + sizeof(chdr), packed, packed_size);
	if (r == 0)
		r = decompress_into(section, &chdr, packed, packed_size, builder);
	builder_free(builder, packed, packed_size);
	return r;
}

int frames_find_debug(const struct elf *elf, struct builder *builder, struct cfi_section *section)
{
	const Elf64_Shdr *shdr = elf_find_section(elf, SHT_NULL, ".debug_frame");
	int r = 0;

	section->is_debug = true;
	if (!shdr || shdr->sh_type == SHT_NOBITS)
		return 0;
	place_section(elf, builder->machine, shdr->sh_offset, shdr->sh_size, section);
	if (section->size && shdr->sh_flags & SHF_COMPRESSED)
		r = decompress(builder, section);
	if (r < 0)
		section->size = 0;
	return r;
}

void frames_free(struct builder *builder, struct cfi_section *section)
{
	union {
		const uint8_t *data;
		void *memory;
	} owned = { .data = section->data };

	if (section->data)
		builder_free(builder, owned.memory, section->size);
	section->data = NULL;
	section->size = 0;
}
