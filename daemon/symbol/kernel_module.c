// SPDX-License-Identifier: Apache-2.0
#include "symbol/kernel_module.h"

#include <string.h>

enum {
	BATCH = 1024,			/* entries of a table that are read at once */
	SYMBOLS_MAX = 4 << 20,
	ALIGN_MAX = 1 << 20,
	PAGE = 4096,
};

#define TEXT_MAX (1ULL << 30)		/* of a module's code; a kernel has 2 GiB for all */
#define FAR (1ULL << 48)		/* addresses of what is not placed */
#define FAR_STEP (1ULL << 32)

bool kernel_module_is(const struct elf *elf)
{
	return elf->type == ET_REL && elf->is_64 && (elf->machine == EM_X86_64 || elf->machine == EM_AARCH64) &&
	       elf_find_section(elf, SHT_NULL, ".gnu.linkonce.this_module");
}

static bool begins(const char *name, const char *with)
{
	return !strncmp(name, with, strlen(with));
}

/*
 * A kernel that cannot unload modules has no code of their exit. arm64's fills the other two, which are empty in the file, as
 * it needs to, and gives them flags of code, which lld, unlike GNU ld, does not.
 */
static bool depends_on_kernel(const Elf64_Shdr *shdr, const char *name)
{
	return begins(name, ".plt") || begins(name, ".text.ftrace_trampoline") ||
	       (begins(name, ".exit") && shdr->sh_flags & SHF_EXECINSTR);
}

/*
 * An arm64 kernel on a Cortex-A53 with erratum 843419 aligns sections with ADRP instructions by more than the file asks for, up
 * to PAGE. Where the code begins is aligned in any case.
 */
static bool is_alignment_known(const struct elf *elf, const Elf64_Shdr *shdr, uint64_t next)
{
	return elf->machine != EM_AARCH64 || next == KERNEL_MODULE_TEXT || !shdr->sh_size || shdr->sh_addralign >= PAGE;
}

/* The section behind code that ends at *next, which it moves on. False: there is no telling where. */
static bool place_next(Elf64_Shdr *shdr, uint64_t *next)
{
	const uint64_t align = max_of(shdr->sh_addralign, (uint64_t)1);
	uint64_t start;

	if (align > ALIGN_MAX || align & (align - 1))
		return false;
	start = (*next + align - 1) & ~(align - 1);
	if (shdr->sh_size > TEXT_MAX || start + shdr->sh_size > KERNEL_MODULE_TEXT + TEXT_MAX)
		return false;
	shdr->sh_addr = start;
	*next = start + shdr->sh_size;
	return true;
}

void kernel_module_place(struct elf *elf)
{
	uint64_t next = KERNEL_MODULE_TEXT;
	bool is_known = true;

	for (size_t i = 0; i < elf->shdr_count; i++) {
		Elf64_Shdr *shdr = &elf->shdrs[i];
		const char *name = elf_section_name(elf, shdr);

		shdr->sh_addr = 0;
		if (!(shdr->sh_flags & SHF_ALLOC))
			continue;
		shdr->sh_addr = FAR + i * FAR_STEP;
		/* it is elsewhere, and given back when it has run */
		if (begins(name, ".init"))
			continue;
		is_known = is_known && !depends_on_kernel(shdr, name);
		if (shdr->sh_flags & SHF_EXECINSTR)
			is_known = is_known && is_alignment_known(elf, shdr, next) && place_next(shdr, &next);
	}
}

bool kernel_module_is_placed(const struct elf *elf, const Elf64_Shdr *shdr)
{
	return elf->type != ET_REL || shdr->sh_addr < FAR;
}

/* Its relocations; those that hold no addends are of other machines. */
static bool is_of(const Elf64_Shdr *shdr, size_t number)
{
	return (shdr->sh_type == SHT_RELA || shdr->sh_type == SHT_REL) && shdr->sh_info == number;
}

bool kernel_module_has_relocations(const struct elf *elf, size_t number)
{
	for (size_t i = 0; i < elf->shdr_count; i++)
		if (is_of(&elf->shdrs[i], number))
			return true;
	return false;
}

/* How many entries of @entry bytes the file has of a section. */
static uint64_t entries_of(const struct elf *elf, const Elf64_Shdr *shdr, size_t entry)
{
	return shdr->sh_offset > elf->size ? 0 : min_of(shdr->sh_size, elf->size - shdr->sh_offset) / entry;
}

struct addresses {
	uint64_t *of;			/* each symbol */
	uint64_t count;
};

static uint64_t address_of(const struct elf *elf, const Elf64_Sym *symbol)
{
	if (symbol->st_shndx == SHN_ABS)
		return symbol->st_value;
	/* of other modules and the kernel, which no debug information has code of */
	if (symbol->st_shndx == SHN_UNDEF || symbol->st_shndx >= elf->shdr_count)
		return 0;
	return elf->shdrs[symbol->st_shndx].sh_addr + symbol->st_value;
}

static int read_addresses(const struct elf *elf, uint32_t section, struct addresses *ret_addresses)
{
	const Elf64_Shdr *shdr = section < elf->shdr_count ? &elf->shdrs[section] : NULL;
	const uint64_t count = shdr ? entries_of(elf, shdr, sizeof(Elf64_Sym)) : 0;
	_cleanup_free_ uint64_t *of = NULL;
	Elf64_Sym batch[BATCH];

	if (!shdr || shdr->sh_type != SHT_SYMTAB || count > SYMBOLS_MAX)
		return -EBADMSG;
	of = malloc(count * sizeof(*of) + 1);
	if (!of)
		return -ENOMEM;
	for (uint64_t i = 0; i < count; i += BATCH) {
		const size_t n = (size_t)min_of(count - i, (uint64_t)BATCH);
		int r = elf_read(elf, shdr->sh_offset + i * sizeof(*batch), batch, n * sizeof(*batch));

		if (r < 0)
			return r;
		for (size_t k = 0; k < n; k++)
			of[i + k] = address_of(elf, &batch[k]);
	}
	*ret_addresses = (struct addresses){ steal_ptr(of), count };
	return 0;
}

/* Bytes that a relocation writes, 0: none; false: its kind is none of debug information. */
static bool width_of(const struct elf *elf, uint32_t type, size_t *ret_width)
{
	if (elf->machine == EM_X86_64)
		*ret_width = type == R_X86_64_64 ? 8 : type == R_X86_64_32 ? 4 : 0;
	else
		*ret_width = type == R_AARCH64_ABS64 ? 8 : type == R_AARCH64_ABS32 ? 4 : 0;
	return *ret_width || type == R_X86_64_NONE || type == R_AARCH64_NONE;
}

static bool apply(const struct elf *elf, const struct addresses *addresses, const Elf64_Rela *rela, uint8_t *bytes,
		  uint64_t size)
{
	const uint64_t symbol = ELF64_R_SYM(rela->r_info);
	uint64_t value;
	size_t width;

	if (!width_of(elf, ELF64_R_TYPE(rela->r_info), &width) || symbol >= addresses->count ||
	    rela->r_offset > size || width > size - rela->r_offset)
		return false;
	value = addresses->of[symbol] + (uint64_t)rela->r_addend;
	if (width == 4 && value > UINT32_MAX)
		return false;
	/* files of the host's byte order alone are read, which is the lower half first */
	memcpy(bytes + rela->r_offset, &value, width);
	return true;
}

static int apply_table(const struct elf *elf, const Elf64_Shdr *shdr, uint8_t *bytes, uint64_t size)
{
	const uint64_t count = entries_of(elf, shdr, sizeof(Elf64_Rela));
	struct addresses addresses;
	Elf64_Rela batch[BATCH];
	int r;

	/* a part of them is not enough */
	if (shdr->sh_type != SHT_RELA || shdr->sh_size != count * sizeof(Elf64_Rela))
		return -EBADMSG;
	r = read_addresses(elf, shdr->sh_link, &addresses);
	if (r < 0)
		return r;
	for (uint64_t i = 0; !r && i < count; i += BATCH) {
		const size_t n = (size_t)min_of(count - i, (uint64_t)BATCH);

		r = elf_read(elf, shdr->sh_offset + i * sizeof(*batch), batch, n * sizeof(*batch));
		for (size_t k = 0; !r && k < n; k++)
			r = apply(elf, &addresses, &batch[k], bytes, size) ? 0 : -EBADMSG;
	}
	free(addresses.of);
	return r;
}

int kernel_module_relocate(const struct elf *elf, size_t number, uint8_t *bytes, uint64_t size)
{
	int r = 0;

	for (size_t i = 0; !r && i < elf->shdr_count; i++)
		if (is_of(&elf->shdrs[i], number))
			r = apply_table(elf, &elf->shdrs[i], bytes, size);
	return r;
}
