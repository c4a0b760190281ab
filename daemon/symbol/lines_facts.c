// SPDX-License-Identifier: Apache-2.0
#include "symbol/lines_facts.h"

#include <assert.h>
#include <string.h>

#include "symbol/htlhash.h"
#include "symbol/kernel_module.h"
#include "symbol/pclntab.h"

static bool has_bytes(const struct elf *elf, uint32_t type, const char *name)
{
	const Elf64_Shdr *shdr = elf_find_section(elf, type, name);

	return shdr && shdr->sh_type != SHT_NOBITS && shdr->sh_size;
}

/* The beginning of a section that has a file's name: NUL-terminated, or empty. */
static size_t read_link(const struct elf *elf, const char *name, uint8_t *ret_bytes, size_t size)
{
	const Elf64_Shdr *shdr = elf_find_section(elf, SHT_NULL, name);

	if (!shdr || shdr->sh_type == SHT_NOBITS)
		return 0;
	size = (size_t)min_of((uint64_t)size, shdr->sh_size);
	if (elf_read(elf, shdr->sh_offset, ret_bytes, size) < 0 || !memchr(ret_bytes, '\0', size))
		return 0;
	return size;
}

void lines_link(const struct elf *elf, struct lines_link *ret_link)
{
	uint8_t bytes[4096];
	size_t size = read_link(elf, ".gnu_debuglink", bytes, sizeof(bytes));
	size_t length = size ? strlen((char *)bytes) : 0, at = (length + 4) & ~(size_t)3;

	memset(ret_link, 0, sizeof(*ret_link));
	if (length && length < sizeof(ret_link->name) && at + sizeof(ret_link->crc) <= size) {
		memcpy(ret_link->name, bytes, length);
		memcpy(&ret_link->crc, bytes + at, sizeof(ret_link->crc));
	}
}

static void read_alt_link(const struct elf *elf, struct lines_facts *facts)
{
	uint8_t bytes[4096];
	size_t size = read_link(elf, ".gnu_debugaltlink", bytes, sizeof(bytes));
	size_t at = size ? strlen((char *)bytes) + 1 : 0;
	bool is_shared;

	if (at && at <= sizeof(facts->alt_link))
		memcpy(facts->alt_link, bytes, at);
	for (size_t i = 0; at + i < size && 2 * i + 2 < sizeof(facts->alt_build_id); i++)
		snprintf(facts->alt_build_id + 2 * i, 3, "%02x", bytes[at + i]);
	if (facts->alt_build_id[0])
		return;
	static_assert(sizeof(facts->alt_link) == ELF_SUPPLEMENTARY_MAX, "a whole path");
	if (!elf_supplementary(elf, &is_shared, facts->alt_link, facts->alt_build_id) || is_shared)
		facts->alt_link[0] = facts->alt_build_id[0] = '\0';
}

/* What a linker has still to change: addresses in it are none yet. What dwz makes is not such, nor what is known to be placed. */
bool lines_is_relocatable(const struct elf *elf)
{
	return elf->type == ET_REL && !kernel_module_is(elf) &&
	       (elf_find_section(elf, SHT_RELA, NULL) || elf_find_section(elf, SHT_REL, NULL));
}

/* In whatever order the file has them. */
static int read_segments(const struct elf *elf, struct lines_facts *facts)
{
	_cleanup_free_ struct object_segment *segments = NULL;
	size_t count;
	int r = elf_segments(elf, &segments, &count);

	/* a file of debug information has the headers without the bytes, or with those of notes alone */
	facts->image = UINT64_MAX;
	for (size_t i = 0; i < elf->phdr_count; i++) {
		const Elf64_Phdr *phdr = &elf->phdrs[i];

		if (phdr->p_type == PT_LOAD && phdr->p_flags & PF_X && phdr->p_memsz && phdr->p_vaddr < facts->image)
			facts->image = phdr->p_vaddr;
	}
	if (!r) {
		facts->segment_count = (uint32_t)min_of(count, (size_t)LINES_SEGMENTS_MAX);
		memcpy(facts->segments, segments, facts->segment_count * sizeof(*segments));
		facts->vaddr = segments[0].vaddr;
		return 0;
	}
	facts->vaddr = facts->image == UINT64_MAX ? 0 : facts->image;
	return r == -ENODATA ? 0 : r;
}

/* objcopy --only-keep-debug leaves the headers of code that it takes out, and segments that are as large as before. */
static bool has_code(const struct elf *elf)
{
	for (size_t i = 0; i < elf->shdr_count; i++)
		if (elf->shdrs[i].sh_type == SHT_NOBITS && elf->shdrs[i].sh_flags & SHF_ALLOC &&
		    elf->shdrs[i].sh_flags & SHF_EXECINSTR)
			return false;
	return true;
}

static bool has_go_lines(const struct elf *elf)
{
	_cleanup_free_ struct pclntab *pclntab = calloc(1, sizeof(*pclntab));

	if (pclntab)
		pclntab_find(elf, pclntab);
	return pclntab && pclntab->section;
}

int lines_facts(int fd, uint64_t size, uint64_t deadline, struct lines_facts *ret_facts)
{
	struct elf elf;
	int r;

	memset(ret_facts, 0, sizeof(*ret_facts));
	r = htlhash_file(fd, size, ret_facts->htlhash);
	if (r < 0 && r != -ENODATA)
		return r;
	r = elf_open(&elf, fd, size, deadline);
	if (r < 0)
		return r == -ETIME ? r : 0;
	ret_facts->is_elf = true;
	ret_facts->has_dwarf = !lines_is_relocatable(&elf) && (has_bytes(&elf, SHT_NULL, ".debug_info") ||
							 has_bytes(&elf, SHT_NULL, ".zdebug_info"));
	ret_facts->is_split = has_bytes(&elf, SHT_NULL, ".debug_info.dwo") ||
			      has_bytes(&elf, SHT_NULL, ".zdebug_info.dwo");
	ret_facts->has_symbols = has_bytes(&elf, SHT_SYMTAB, NULL);
	elf_build_id(&elf, ret_facts->build_id);
	ret_facts->has_go_lines = has_go_lines(&elf);
	lines_link(&elf, &ret_facts->link);
	read_alt_link(&elf, ret_facts);
	r = read_segments(&elf, ret_facts);
	ret_facts->is_module = kernel_module_is(&elf);
	if (ret_facts->is_module)
		ret_facts->image = KERNEL_MODULE_TEXT;
	ret_facts->has_code = ret_facts->segment_count && has_code(&elf);
	elf_close(&elf);
	return r;
}
