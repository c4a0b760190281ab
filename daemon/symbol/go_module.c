// SPDX-License-Identifier: Apache-2.0
#include "symbol/go_module.h"

#include <string.h>

enum {
	PROBES = 32,			/* lists that an address is tried with */
	MODULES_MAX = 8,		/* places that may be the moduledata */
	WORDS_FIRST = 30, WORDS_MAX = 64,	/* of the moduledata, among which the address is */
	CHUNK = 64 << 10,
	SCAN_MAX = 64 << 20,		/* bytes that are searched */
};

/* A function's list, as a probe of an address. */
struct probe {
	uint64_t offset, bytes;		/* of the list, of the function */
};

struct module {
	uint64_t address;
	uint64_t words[WORDS_MAX];
};

struct finder {
	struct pclntab *pclntab;
	const struct go_lists *form;
	struct probe probes[PROBES];
	struct module modules[MODULES_MAX];
	uint32_t probe_count, module_count;
	uint64_t left;			/* bytes that may still be searched */
	uint8_t *chunk;
};

static int collect_probes(struct finder *finder)
{
	struct pclntab *pclntab = finder->pclntab;
	struct pclntab_function function;
	struct probe probe;
	uint64_t entry, end;
	uint32_t at, unused;
	int r;

	for (uint32_t i = 0; i < pclntab->count && finder->probe_count < PROBES; i++) {
		r = pclntab_entry(pclntab, i, &entry, &at);
		if (r == 0)
			r = pclntab_entry(pclntab, i + 1, &end, &unused);
		if (r == 0)
			r = pclntab_describe(pclntab, at, &function);
		if (r == 0)
			r = go_inlined_list(pclntab, finder->form, &function, &probe.offset);
		if (r == -ENODATA)
			continue;
		if (r < 0)
			return r;
		probe.bytes = end - entry;
		finder->probes[finder->probe_count++] = probe;
	}
	return finder->probe_count ? 0 : -ENODATA;
}

/*
 * Each list begins with a function that has a name, and that is called inside of its function. The first of all names has
 * offset 0, which nothing at all would have everywhere.
 */
static bool are_lists(struct finder *finder, uint64_t address)
{
	struct go_inlined inlined;
	bool is_some = false;

	for (uint32_t i = 0; i < finder->probe_count; i++) {
		const struct probe *probe = &finder->probes[i];

		if (go_inlined_get(finder->pclntab, finder->form, address + probe->offset, 0, &inlined) < 0 ||
		    !go_inlined_fits(finder->pclntab, finder->form, &inlined, probe->bytes))
			return false;
		is_some = is_some || inlined.name;
	}
	return is_some;
}

static void add_module(struct finder *finder, uint64_t address)
{
	struct module *module = &finder->modules[finder->module_count];

	if (finder->module_count == MODULES_MAX)
		return;
	*module = (struct module){ .address = address };
	/* the end of what the file has may come before */
	for (size_t i = 0; i < WORDS_MAX; i++)
		if (elf_read_at(finder->pclntab->elf, address + 8 * i, &module->words[i],
				sizeof(module->words[i])) < 0)
			break;
	finder->module_count++;
}

/* The moduledata begins with the address of .gopclntab. */
static void see_words(struct finder *finder, const Elf64_Shdr *section, uint64_t at, size_t size)
{
	uint64_t word;

	for (size_t i = 0; i + sizeof(word) <= size; i += sizeof(word)) {
		memcpy(&word, finder->chunk + i, sizeof(word));
		if (word == finder->pclntab->section->sh_addr)
			add_module(finder, section->sh_addr + at + i);
	}
}

/* In position-independent programs the loader writes it: where, and what, is in the relocations. */
static void see_relocations(struct finder *finder, const Elf64_Shdr *section _unused_,
			    uint64_t at _unused_, size_t size)
{
	const uint64_t table = finder->pclntab->section->sh_addr;
	Elf64_Rela rela;

	for (size_t i = 0; i + sizeof(rela) <= size; i += sizeof(rela)) {
		memcpy(&rela, finder->chunk + i, sizeof(rela));
		if ((uint64_t)rela.r_addend == table)
			add_module(finder, rela.r_offset);
	}
}

static void fill_in(struct finder *finder, const Elf64_Shdr *section _unused_,
		    uint64_t at _unused_, size_t size)
{
	Elf64_Rela rela;

	for (size_t i = 0; i + sizeof(rela) <= size; i += sizeof(rela)) {
		memcpy(&rela, finder->chunk + i, sizeof(rela));
		for (uint32_t k = 0; k < finder->module_count; k++) {
			struct module *module = &finder->modules[k];
			uint64_t word = (rela.r_offset - module->address) / 8;

			if (word < WORDS_MAX)
				module->words[word] = (uint64_t)rela.r_addend;
		}
	}
}

/* Shows @see all sections of a type and with these flags, in parts of whole relocations. */
static int scan(struct finder *finder, uint32_t type, uint64_t flags,
		void (*see)(struct finder *finder, const Elf64_Shdr *section, uint64_t at, size_t size))
{
	const struct elf *elf = finder->pclntab->elf;
	const size_t step = CHUNK / sizeof(Elf64_Rela) * sizeof(Elf64_Rela);

	for (size_t i = 0; i < elf->shdr_count; i++) {
		const Elf64_Shdr *section = &elf->shdrs[i];

		if (section->sh_type != type || (section->sh_flags & flags) != flags)
			continue;
		for (uint64_t at = 0; at < section->sh_size && finder->left >= step; at += step) {
			size_t part = (size_t)min_of(section->sh_size - at, (uint64_t)step);
			int r = elf_read(elf, section->sh_offset + at, finder->chunk, part);

			if (r == -ETIME)
				return r;
			if (r < 0)
				break;
			finder->left -= step;
			see(finder, section, at, part);
		}
	}
	return 0;
}

static uint64_t pick(struct finder *finder)
{
	for (uint32_t i = 0; i < finder->module_count; i++)
		for (size_t k = WORDS_FIRST; k < WORDS_MAX; k++)
			if (finder->modules[i].words[k] && are_lists(finder, finder->modules[i].words[k]))
				return finder->modules[i].words[k];
	return 0;
}

static uint64_t find(struct finder *finder)
{
	uint64_t found;

	if (!finder->pclntab->section->sh_addr || collect_probes(finder) < 0 ||
	    scan(finder, SHT_PROGBITS, SHF_ALLOC | SHF_WRITE, see_words) < 0)
		return 0;
	found = pick(finder);
	if (found)
		return found;
	finder->module_count = 0;
	if (scan(finder, SHT_RELA, SHF_ALLOC, see_relocations) < 0 ||
	    scan(finder, SHT_RELA, SHF_ALLOC, fill_in) < 0)
		return 0;
	return pick(finder);
}

uint64_t go_module_base(struct pclntab *pclntab, const struct go_lists *form)
{
	struct finder *finder = calloc(1, sizeof(*finder));
	uint64_t found = 0;

	if (!finder)
		return 0;
	finder->pclntab = pclntab;
	finder->form = form;
	finder->left = SCAN_MAX;
	finder->chunk = malloc(CHUNK);
	if (finder->chunk)
		found = find(finder);
	free(finder->chunk);
	free(finder);
	return found;
}
