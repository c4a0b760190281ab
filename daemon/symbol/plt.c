// SPDX-License-Identifier: Apache-2.0
#include "symbol/plt.h"

#include <string.h>

#include "base/sort.h"

enum {
	SECTION_MAX = 512 * 1024,
	RELOCATIONS_MAX = 32768,
	ENTRIES_MAX = 8192,
	NAMES_MAX = 256 * 1024,
	NAME_MAX_PLT = 255,	/* longer ones are cut */
};

struct slot {
	uint64_t address;	/* in the GOT */
	uint32_t symbol;	/* in .dynsym */
};

struct reader {
	const struct elf *elf;
	const Elf64_Shdr *symbols, *strings;
	struct slot *slots;
	size_t slot_count;
	struct plt *plt;
};

static int compare_slots(const void *a, const void *b)
{
	const struct slot *x = a, *y = b;

	return (x->address > y->address) - (x->address < y->address);
}

static uint64_t address_of(const void *slot)
{
	return ((const struct slot *)slot)->address;
}

static bool is_function_slot(uint16_t machine, uint64_t type)
{
	if (machine == EM_X86_64)
		return type == R_X86_64_JUMP_SLOT || type == R_X86_64_GLOB_DAT;
	return type == R_AARCH64_JUMP_SLOT || type == R_AARCH64_GLOB_DAT;
}

static int read_slots(struct reader *reader)
{
	const struct elf *elf = reader->elf;
	_cleanup_free_ Elf64_Rela *batch = NULL;
	enum { BATCH = 512 };
	size_t seen = 0;

	batch = malloc(BATCH * sizeof(*batch));
	reader->slots = malloc(RELOCATIONS_MAX * sizeof(*reader->slots));
	if (!batch || !reader->slots)
		return -ENOMEM;
	/*
	 * JUMP_SLOTs are in the last of these sections: skip the data relocations, but not for ever
	 */
	for (size_t i = 0; i < elf->shdr_count; i++) {
		const Elf64_Shdr *shdr = &elf->shdrs[i];
		uint64_t left = shdr->sh_size / sizeof(*batch), offset = shdr->sh_offset;

		if (shdr->sh_type != SHT_RELA || shdr->sh_link >= elf->shdr_count ||
		    &elf->shdrs[shdr->sh_link] != reader->symbols)
			continue;
		while (left && seen < 16 * RELOCATIONS_MAX) {
			size_t n = min_of(left, (uint64_t)BATCH);
			int r = elf_read(elf, offset, batch, n * sizeof(*batch));

			if (r < 0)
				return r;
			for (size_t j = 0; j < n && reader->slot_count < RELOCATIONS_MAX; j++)
				if (is_function_slot(elf->machine, ELF64_R_TYPE(batch[j].r_info)))
					reader->slots[reader->slot_count++] = (struct slot){
						.address = batch[j].r_offset,
						.symbol = ELF64_R_SYM(batch[j].r_info),
					};
			offset += n * sizeof(*batch);
			left -= n;
			seen += n;
		}
	}
	sort_items(reader->slots, reader->slot_count, sizeof(*reader->slots), address_of, compare_slots);
	return 0;
}

/* The name behind a GOT slot goes to the end of plt.names; its offset there, or UINT32_MAX. */
static uint32_t add_name(struct reader *reader, uint64_t slot_address)
{
	const struct slot key = { .address = slot_address };
	const struct slot *slot;
	struct plt *plt = reader->plt;
	char name[NAME_MAX_PLT + sizeof("@plt")] = "";
	uint64_t room;
	Elf64_Sym symbol;
	uint32_t at = plt->names_bytes;
	size_t length;

	slot = bsearch(&key, reader->slots, reader->slot_count, sizeof(key), compare_slots);
	if (!slot || slot->symbol >= reader->symbols->sh_size / sizeof(symbol) ||
	    elf_read(reader->elf, reader->symbols->sh_offset + slot->symbol * sizeof(symbol),
		     &symbol, sizeof(symbol)) < 0 ||
	    symbol.st_name == 0 || symbol.st_name >= reader->strings->sh_size)
		return UINT32_MAX;
	room = min_of(reader->strings->sh_size - symbol.st_name, (uint64_t)NAME_MAX_PLT);
	if (elf_read(reader->elf, reader->strings->sh_offset + symbol.st_name, name, room) < 0)
		return UINT32_MAX;
	name[room] = '\0';
	length = strlen(name);
	if (length == 0)
		return UINT32_MAX;
	memcpy(name + length, "@plt", sizeof("@plt"));
	length += sizeof("@plt");
	if (length > NAMES_MAX - at)
		return UINT32_MAX;
	memcpy(plt->names + at, name, length);
	plt->names_bytes += (uint32_t)length;
	return at;
}

static void add_entry(struct reader *reader, uint64_t address, uint32_t size, uint64_t slot_address)
{
	struct plt *plt = reader->plt;
	uint32_t name;

	if (plt->count == ENTRIES_MAX)
		return;
	name = add_name(reader, slot_address);
	if (name == UINT32_MAX)
		return;
	plt->entries[plt->count++] = (struct plt_entry){
		.address = address,
		.size = size,
		.name = name,
	};
}

/* jmp *disp32(%rip), perhaps behind endbr64 and a bnd prefix */
static void decode_x86(struct reader *reader, const Elf64_Shdr *shdr, const uint8_t *code)
{
	size_t step = shdr->sh_entsize == 8 ? 8 : 16;

	for (size_t at = 0; at + step <= shdr->sh_size; at += step) {
		size_t jump = at;
		int32_t disp;

		if (!memcmp(code + jump, "\xf3\x0f\x1e\xfa", 4))
			jump += 4;
		if (code[jump] == 0xf2)
			jump++;
		if (jump + 6 > at + step || code[jump] != 0xff || code[jump + 1] != 0x25)
			continue;
		memcpy(&disp, code + jump + 2, sizeof(disp));
		add_entry(reader, shdr->sh_addr + at, (uint32_t)step,
			  shdr->sh_addr + jump + 6 + (uint64_t)(int64_t)disp);
	}
}

/* adrp x16, page; ldr x17, [x16, #offset], perhaps behind bti c */
static void decode_arm64(struct reader *reader, const Elf64_Shdr *shdr, const uint8_t *code)
{
	for (size_t at = 0; at + 8 <= shdr->sh_size; at += 4) {
		uint64_t pc = shdr->sh_addr + at, start = pc, page;
		uint32_t adrp, ldr, before;
		int64_t immediate;

		memcpy(&adrp, code + at, 4);
		memcpy(&ldr, code + at + 4, 4);
		if ((adrp & 0x9f00001f) != 0x90000010 || (ldr & 0xffc003ff) != 0xf9400211)
			continue;
		immediate = (int64_t)(((uint64_t)(adrp >> 5) & 0x7ffff) << 2 | ((adrp >> 29) & 3));
		immediate = (int64_t)((uint64_t)immediate << 43) >> 43;
		page = (pc & ~0xfffULL) + ((uint64_t)immediate << 12);
		if (at >= 4) {
			memcpy(&before, code + at - 4, 4);
			if (before == 0xd503245f)
				start -= 4;
		}
		add_entry(reader, start, (uint32_t)(pc - start) + 16,
			  page + (uint64_t)((ldr >> 10) & 0xfff) * 8);
	}
}

int plt_read(const struct elf *elf, struct plt *ret_plt)
{
	struct plt plt = { 0 };
	struct reader reader = { .elf = elf, .plt = &plt };
	int r = 0;

	*ret_plt = plt;
	if (!elf->is_64 || (elf->machine != EM_X86_64 && elf->machine != EM_AARCH64))
		return 0;
	reader.symbols = elf_find_section(elf, SHT_DYNSYM, NULL);
	if (!reader.symbols || reader.symbols->sh_link >= elf->shdr_count)
		return 0;
	reader.strings = &elf->shdrs[reader.symbols->sh_link];
	plt.entries = malloc(ENTRIES_MAX * sizeof(*plt.entries));
	plt.names = malloc(NAMES_MAX);
	if (!plt.entries || !plt.names)
		r = -ENOMEM;
	else
		r = read_slots(&reader);
	for (size_t i = 0; r == 0 && reader.slot_count && i < elf->shdr_count; i++) {
		const Elf64_Shdr *shdr = &elf->shdrs[i];
		_cleanup_free_ uint8_t *code = NULL;

		if (shdr->sh_type != SHT_PROGBITS || shdr->sh_size > SECTION_MAX ||
		    strncmp(elf_section_name(elf, shdr), ".plt", 4))
			continue;
		code = malloc(shdr->sh_size + 1);
		if (!code || elf_read(elf, shdr->sh_offset, code, shdr->sh_size) < 0)
			continue;
		if (elf->machine == EM_X86_64)
			decode_x86(&reader, shdr, code);
		else
			decode_arm64(&reader, shdr, code);
	}
	free(reader.slots);
	if (r < 0) {
		plt_done(&plt);
		return r;
	}
	*ret_plt = plt;
	return 0;
}

void plt_done(struct plt *plt)
{
	free(plt->entries);
	free(plt->names);
	*plt = (struct plt){ 0 };
}
