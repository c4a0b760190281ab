// SPDX-License-Identifier: Apache-2.0
#include "symbol/relocation.h"

static int read_one(const struct elf *elf, const Elf64_Shdr *section, uint64_t i, Elf64_Rela *ret_rela)
{
	return elf_read(elf, section->sh_offset + i * sizeof(*ret_rela), ret_rela, sizeof(*ret_rela));
}

/* Those that name a symbol come behind all others. */
static bool is_relative(const struct elf *elf, const Elf64_Rela *rela)
{
	return rela->r_info == (elf->machine == EM_AARCH64 ? R_AARCH64_RELATIVE : R_X86_64_RELATIVE);
}

/* The first relocation of @address or of what is behind it; their count: none. */
static int search(const struct elf *elf, const Elf64_Shdr *section, uint64_t address, uint64_t *ret_i)
{
	uint64_t first = 0, last = section->sh_size / sizeof(Elf64_Rela);

	while (first < last) {
		const uint64_t middle = first + (last - first) / 2;
		Elf64_Rela rela;
		int r = read_one(elf, section, middle, &rela);

		if (r < 0)
			return r;
		if (is_relative(elf, &rela) && rela.r_offset < address)
			first = middle + 1;
		else
			last = middle;
	}
	*ret_i = first;
	return 0;
}

static int fill_in(const struct elf *elf, const Elf64_Shdr *section, uint64_t address, uint64_t *words, size_t count)
{
	const uint64_t relocations = section->sh_size / sizeof(Elf64_Rela);
	uint64_t i = 0;
	int r = search(elf, section, address, &i);

	/* no word has two of them */
	for (size_t done = 0; r == 0 && done < count && i < relocations; done++, i++) {
		Elf64_Rela rela;

		r = read_one(elf, section, i, &rela);
		if (r < 0 || !is_relative(elf, &rela) || (rela.r_offset - address) / sizeof(*words) >= count)
			break;
		if ((rela.r_offset - address) % sizeof(*words) == 0)
			words[(rela.r_offset - address) / sizeof(*words)] = (uint64_t)rela.r_addend;
	}
	return r;
}

int relocation_fill(const struct elf *elf, uint64_t address, uint64_t *words, size_t count)
{
	const Elf64_Shdr *section = elf->is_64 ? elf_find_section(elf, SHT_RELA, ".rela.dyn") : NULL;

	return section ? fill_in(elf, section, address, words, count) : 0;
}

int relocation_words(const struct elf *elf, uint64_t address, uint64_t *ret_words, size_t count)
{
	int r = elf->is_64 ? elf_read_at(elf, address, ret_words, count * sizeof(*ret_words)) : -EBADMSG;

	return r ?: relocation_fill(elf, address, ret_words, count);
}
