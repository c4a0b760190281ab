// SPDX-License-Identifier: Apache-2.0
#include "symbol/pclntab.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

#include "symbol/relocation.h"

enum {
	MAGIC_12 = 0xfffffffb,
	MAGIC_116 = 0xfffffffa,
	MAGIC_118 = 0xfffffff0,
	MAGIC_120 = 0xfffffff1,
	HEADER_BYTES = 72,
	HEADER_BYTES_12 = 16,
	ENTRY_BYTES = 8,	/* of a function: where it begins, where it is described */
	ENTRY_BYTES_OLD = 16,
	DESCRIPTION_BYTES_12 = 40,
	DESCRIPTION_BYTES_116 = 44,
	VARINT_BYTES = 10,
	FUNCTIONS_MAX = 4 << 20,
	IDS_LOOKED_AT = 4096,	/* functions, for how the counts of their data are written */
	CHUNK = 64 << 10,
	SCAN_MAX = 64 << 20,	/* bytes that are searched for the table */
	PLACES_MAX = 16,	/* that begin like it */
};

/* Words of Go's moduledata, of Go 1.26 */
enum { MODULE_TABLE = 0, MODULE_FIRST = 20, MODULE_END, MODULE_TEXT, MODULE_WORDS };

/* What the header has since Go 1.18, in Go's words: pcHeader. */
struct header {
	uint32_t magic;
	uint8_t zero[2], quantum, pointer_bytes;
	uint64_t count, files, text, names, units, file_names, values, functions;
};

static_assert(sizeof(struct header) == HEADER_BYTES, "the header has no holes");

/* @size bytes at @offset of the section, at most a window's; what is behind its end is 0. */
int pclntab_get(const struct pclntab *pclntab, struct pclntab_window *window, uint64_t offset,
	       void *ret_bytes, size_t size)
{
	const Elf64_Shdr *section = pclntab->section;
	size_t bytes;
	int r;

	if (offset < window->offset || offset - window->offset > window->size ||
	    window->size - (offset - window->offset) < size) {
		window->size = 0;
		if (offset >= section->sh_size)
			return -EBADMSG;
		window->offset = offset;
		memset(window->bytes, 0, sizeof(window->bytes));
		bytes = (size_t)min_of(section->sh_size - offset, (uint64_t)PCLNTAB_WINDOW);
		r = elf_read(pclntab->elf, section->sh_offset + offset, window->bytes, bytes);
		if (r == 0 && window->is_linked)
			r = relocation_fill(pclntab->elf, section->sh_addr + offset, window->words,
					    bytes / sizeof(window->words[0]));
		if (r < 0)
			return r;
		window->size = PCLNTAB_WINDOW;
	}
	memcpy(ret_bytes, window->bytes + (offset - window->offset), size);
	return 0;
}

/* Where function @i begins; @i may be their count, for where the last one ends. */
int pclntab_entry(struct pclntab *pclntab, uint32_t i, uint64_t *ret_address, uint32_t *ret_at)
{
	uint64_t whole[2];
	uint32_t entry[2];
	int r;

	if (pclntab->has_offsets)
		r = pclntab_get(pclntab, &pclntab->entry_window, pclntab->functions + (uint64_t)i * ENTRY_BYTES,
			entry, sizeof(entry));
	else
		r = pclntab_get(pclntab, &pclntab->entry_window,
			pclntab->functions + (uint64_t)i * ENTRY_BYTES_OLD, whole, sizeof(whole));
	if (r < 0)
		return r;
	*ret_address = pclntab->has_offsets ? pclntab->text + entry[0] : whole[0];
	*ret_at = pclntab->has_offsets ? entry[1] : (uint32_t)whole[1];
	return 0;
}

/* The last function that begins at @address or below: its number. -ENODATA: none */
static int search(struct pclntab *pclntab, uint64_t address, uint32_t *ret_i)
{
	uint32_t first = 0, last = pclntab->count, at;
	uint64_t entry;

	while (first < last) {
		uint32_t middle = first + (last - first) / 2;
		int r = pclntab_entry(pclntab, middle, &entry, &at);

		if (r < 0)
			return r;
		if (entry <= address)
			first = middle + 1;
		else
			last = middle;
	}
	*ret_i = first - 1;
	return first ? 0 : -ENODATA;
}

/* Does a function begin at @address? Where it is described. */
static bool is_function(struct pclntab *pclntab, uint64_t address, uint32_t *ret_at)
{
	uint64_t entry;
	uint32_t i;

	return search(pclntab, address, &i) == 0 && pclntab_entry(pclntab, i, &entry, ret_at) == 0 &&
	       entry == address;
}

/*
 * entry, a whole address; name, args, deferreturn, pcsp, pcfile, pcln, npcdata; cuOffset since Go 1.16; nfuncdata, which
 * since Go 1.12 shares its word with funcID and, since Go 1.17, flag
 */
static void describe_old(const struct pclntab *pclntab, uint32_t at, const uint32_t words[static 11],
			 struct pclntab_function *ret_function)
{
	const uint32_t counts = words[pclntab->has_units ? 10 : 9];

	*ret_function = (struct pclntab_function){
		.name = words[2], .distances = words[5], .files = words[6], .lines = words[7],
		.value_count = words[8], .unit = pclntab->has_units ? words[9] : 0,
		.data_count = pclntab->has_ids ? counts >> 24 : counts,
		.flags = pclntab->has_ids && pclntab->has_units ? counts >> 8 & UINT8_MAX : 0,
		.more = at + (uint64_t)(pclntab->has_units ? DESCRIPTION_BYTES_116 : DESCRIPTION_BYTES_12),
	};
}

int pclntab_describe(struct pclntab *pclntab, uint32_t at, struct pclntab_function *ret_function)
{
	/* entry, name, args, deferreturn, pcsp, pcfile, pcln, npcdata, cu; startLine; kind, flags, nfuncdata */
	uint32_t words[11];
	const uint8_t *bytes = (const uint8_t *)&words[pclntab->has_line ? 10 : 9];
	int r = pclntab_get(pclntab, &pclntab->function_window, pclntab->descriptions + at, words,
			    sizeof(words));

	if (r < 0)
		return r;
	if (!pclntab->has_offsets) {
		describe_old(pclntab, at, words, ret_function);
		return 0;
	}
	*ret_function = (struct pclntab_function){
		.name = words[1], .distances = words[4], .files = words[5], .lines = words[6],
		.value_count = words[7], .unit = words[8], .data_count = bytes[3],
		.start_line = pclntab->has_line ? words[9] : 0, .flags = bytes[1],
		.more = at + (uint64_t)(bytes + sizeof(words[0]) - (const uint8_t *)words),
	};
	return 0;
}

/* Are the functions in the code, when they are counted from @text? */
static bool take_text(struct pclntab *pclntab, const Elf64_Shdr *code, uint64_t text)
{
	uint64_t end;
	uint32_t at;

	pclntab->text = text;
	return pclntab_entry(pclntab, pclntab->count, &end, &at) == 0 && text >= code->sh_addr && end >= text &&
	       end - code->sh_addr <= code->sh_size;
}

/*
 * The moduledata has a section of its own since Go 1.26. Beside where the code begins it says where the first function
 * does and the last one ends: in a Go to come whose fields are others these do not fit the table.
 */
static bool is_told_by_module(struct pclntab *pclntab, const Elf64_Shdr *code)
{
	const Elf64_Shdr *module = elf_find_section(pclntab->elf, SHT_PROGBITS, ".go.module");
	uint64_t words[MODULE_WORDS], first, end;
	uint32_t at;

	return module && relocation_words(pclntab->elf, module->sh_addr, words, ARRAY_SIZE(words)) == 0 &&
	       words[MODULE_TABLE] == pclntab->section->sh_addr && take_text(pclntab, code, words[MODULE_TEXT]) &&
	       pclntab_entry(pclntab, 0, &first, &at) == 0 && first == words[MODULE_FIRST] &&
	       pclntab_entry(pclntab, pclntab->count, &end, &at) == 0 && end == words[MODULE_END];
}

/*
 * Go's linker begins .text with Go's code, and the program's entry is Go's, _rt0_amd64_linux for one. Another linker
 * puts C code first, whose address has nothing to do with the table, and the entry is C's: that it is where some
 * function of the table begins is chance then, so it is asked for its name.
 */
static bool is_entered_in_go(struct pclntab *pclntab, const Elf64_Shdr *code)
{
	struct pclntab_function function;
	Elf64_Ehdr header;
	char name[5];
	uint32_t at;

	return elf_read(pclntab->elf, 0, &header, sizeof(header)) == 0 && take_text(pclntab, code, code->sh_addr) &&
	       is_function(pclntab, header.e_entry, &at) && pclntab_describe(pclntab, at, &function) == 0 &&
	       pclntab_get(pclntab, &pclntab->value_window, pclntab->names + function.name, name, sizeof(name)) == 0 &&
	       !strncmp(name, "_rt0_", sizeof(name));
}

/* Up to Go 1.25 the table's header has the address of the code, in position-independent programs by a relocation. */
static bool find_text(struct pclntab *pclntab)
{
	const Elf64_Shdr *code = elf_find_section(pclntab->elf, SHT_PROGBITS, ".text");
	uint64_t text = 0;
	uint32_t at;

	if (!code)
		return false;
	/* before Go 1.18 they are whole addresses */
	if (!pclntab->has_offsets)
		return pclntab_entry(pclntab, 0, &text, &at) == 0 && text && take_text(pclntab, code, text);
	if (relocation_words(pclntab->elf, pclntab->section->sh_addr + offsetof(struct header, text), &text, 1) == 0 && text)
		return take_text(pclntab, code, text);
	return is_told_by_module(pclntab, code) || is_entered_in_go(pclntab, code);
}

/*
 * Where the tables are in the section. Go 1.2 had them one behind the other, and offsets from the beginning of all;
 * Go 1.16 the header of today without the address of the code. False: of a Go that is not known.
 */
static bool place_tables(struct pclntab *pclntab, const struct header *header)
{
	*pclntab = (struct pclntab){
		.has_line = header->magic == MAGIC_120,
		.has_offsets = header->magic == MAGIC_118 || header->magic == MAGIC_120,
		.has_units = header->magic != MAGIC_12,
		.has_ids = true,
	};
	pclntab->entry_window.is_linked = !pclntab->has_offsets;
	if (pclntab->has_offsets) {
		pclntab->names = header->names;
		pclntab->values = header->values;
		pclntab->units = header->units;
		pclntab->files = header->file_names;
		pclntab->functions = pclntab->descriptions = header->functions;
	} else if (header->magic == MAGIC_116) {
		pclntab->names = header->text;
		pclntab->units = header->names;
		pclntab->files = header->units;
		pclntab->values = header->file_names;
		pclntab->functions = pclntab->descriptions = header->values;
	} else {
		pclntab->functions = HEADER_BYTES_12;
	}
	return pclntab->has_offsets || header->magic == MAGIC_116 || header->magic == MAGIC_12;
}

int pclntab_search(struct pclntab *pclntab, uint64_t address, uint64_t *ret_entry, uint64_t *ret_end,
		   struct pclntab_function *ret_function)
{
	uint32_t i, at, unused;
	int r = search(pclntab, address, &i);

	if (r == 0)
		r = pclntab_entry(pclntab, i, ret_entry, &at);
	if (r == 0)
		r = pclntab_entry(pclntab, i + 1, ret_end, &unused);
	if (r == 0 && address >= *ret_end) {
		*ret_end = 0;
		r = -ENODATA;
	}
	return r ?: pclntab_describe(pclntab, at, ret_function);
}

/* Bytes that each instruction is a multiple of; 0: no machine that is known. */
static uint8_t quantum_of(const struct elf *elf)
{
	if (!elf->is_64)
		return 0;
	return elf->machine == EM_X86_64 ? 1 : elf->machine == EM_AARCH64 ? 4 : 0;
}

/*
 * Until Go 1.11 a word counts a function's further data, of which there are few. Since Go 1.12 that is its highest byte,
 * and some function has any.
 */
static bool has_ids(struct pclntab *pclntab)
{
	const uint32_t count = min_of(pclntab->count, (uint32_t)IDS_LOOKED_AT);
	struct pclntab_function function;
	uint64_t address;
	uint32_t at;

	pclntab->has_ids = false;
	for (uint32_t i = 0; i < count; i++)
		if (pclntab_entry(pclntab, i, &address, &at) == 0 && pclntab_describe(pclntab, at, &function) == 0 &&
		    function.data_count > UINT8_MAX)
			return true;
	return false;
}

/* Where the list of files is, stands behind the last function's end. */
static bool place_files(struct pclntab *pclntab)
{
	uint32_t offset;

	if (pclntab_get(pclntab, &pclntab->function_window,
			pclntab->functions + (uint64_t)pclntab->count * ENTRY_BYTES_OLD + sizeof(uint64_t), &offset,
			sizeof(offset)) < 0)
		return false;
	pclntab->units = offset;
	return true;
}

/* Is it a table, at the beginning of @section? */
static bool take(const struct elf *elf, const Elf64_Shdr *section, struct pclntab *pclntab)
{
	struct header header;

	if (section->sh_size < HEADER_BYTES || section->sh_size > PCLNTAB_BYTES_MAX || section->sh_offset > elf->size ||
	    section->sh_size > elf->size - section->sh_offset ||
	    elf_read(elf, section->sh_offset, &header, sizeof(header)) < 0)
		return false;
	if (!place_tables(pclntab, &header) || header.zero[0] || header.zero[1] ||
	    header.quantum != quantum_of(elf) || header.pointer_bytes != 8 || !header.count ||
	    header.count > FUNCTIONS_MAX || pclntab->names >= section->sh_size ||
	    pclntab->values >= section->sh_size || pclntab->units >= section->sh_size ||
	    pclntab->files >= section->sh_size || pclntab->functions >= section->sh_size ||
	    header.count >= (section->sh_size - pclntab->functions) /
			    (pclntab->has_offsets ? ENTRY_BYTES : ENTRY_BYTES_OLD))
		return false;
	pclntab->elf = elf;
	pclntab->section = section;
	pclntab->count = (uint32_t)header.count;
	pclntab->quantum = header.quantum;
	if (!pclntab->has_units) {
		pclntab->has_ids = has_ids(pclntab);
		if (!place_files(pclntab))
			return false;
	}
	return find_text(pclntab);
}

/* Where words are what a table begins with. */
static bool find_in(const struct elf *elf, const Elf64_Shdr *section, uint64_t *chunk, struct pclntab *pclntab)
{
	const struct header start = { .quantum = quantum_of(elf), .pointer_bytes = 8 };
	unsigned int places = 0;
	uint64_t wanted;

	memcpy(&wanted, &start, sizeof(wanted));
	for (uint64_t at = 0; at < section->sh_size && at < SCAN_MAX; at += CHUNK) {
		const size_t part = (size_t)min_of(section->sh_size - at, (uint64_t)CHUNK);

		if (elf_read(elf, section->sh_offset + at, chunk, part) < 0)
			return false;
		for (size_t i = 0; i < part / sizeof(*chunk); i++) {
			const uint64_t skipped = at + i * sizeof(*chunk);
			const Elf64_Shdr found = {
				.sh_type = SHT_PROGBITS, .sh_addr = section->sh_addr + skipped,
				.sh_offset = section->sh_offset + skipped, .sh_size = section->sh_size - skipped,
			};

			if (chunk[i] >> 32 != wanted >> 32 || (uint32_t)chunk[i] < MAGIC_118)
				continue;
			if (places++ == PLACES_MAX)
				return false;
			if (take(elf, &found, pclntab)) {
				pclntab->found = found;
				pclntab->section = &pclntab->found;
				return true;
			}
		}
	}
	return false;
}

/* Among the constants of a program that C's linker made. */
static bool find_among_constants(const struct elf *elf, struct pclntab *pclntab)
{
	const Elf64_Shdr *section = elf_find_section(elf, SHT_PROGBITS, ".data.rel.ro");
	_cleanup_free_ uint64_t *chunk = NULL;

	if (!section || !quantum_of(elf) || (!elf_find_section(elf, SHT_NOTE, ".note.go.buildid") &&
					     !elf_find_section(elf, SHT_PROGBITS, ".go.buildinfo")))
		return false;
	chunk = malloc(CHUNK);
	return chunk && find_in(elf, section, chunk, pclntab);
}

void pclntab_find(const struct elf *elf, struct pclntab *ret_pclntab)
{
	static const char *const names[] = { ".gopclntab", ".data.rel.ro.gopclntab" };
	const Elf64_Shdr *section = NULL;

	for (size_t i = 0; !section && i < ARRAY_SIZE(names); i++)
		section = elf_find_section(elf, SHT_PROGBITS, names[i]);
	if (section ? !take(elf, section, ret_pclntab) : !find_among_constants(elf, ret_pclntab))
		ret_pclntab->section = NULL;
}

int pclntab_file(struct pclntab *pclntab, const struct pclntab_function *function, int32_t value, uint32_t *ret_name)
{
	int r;

	/* the list of old begins with their count */
	if (value < !pclntab->has_units)
		return -ENODATA;
	r = pclntab_get(pclntab, &pclntab->function_window,
			pclntab->units + 4 * ((uint64_t)function->unit + (uint32_t)value), ret_name, sizeof(*ret_name));
	return r == 0 && *ret_name == UINT32_MAX ? -ENODATA : r;
}

int pclntab_function(struct pclntab *pclntab, uint32_t i, struct function_range *ret_range)
{
	const Elf64_Shdr *section = pclntab->section;
	struct pclntab_function function;
	uint32_t at, unused;
	int r;

	*ret_range = (struct function_range){ 0 };
	r = pclntab_entry(pclntab, i, &ret_range->start, &at);
	if (r == 0)
		r = pclntab_entry(pclntab, i + 1, &ret_range->end, &unused);
	if (r == 0)
		r = pclntab_describe(pclntab, at, &function);
	if (r == 0 && function.name < section->sh_size - pclntab->names)
		ret_range->name = section->sh_offset + pclntab->names + function.name;
	return r;
}

static int get_varint(struct pclntab *pclntab, uint64_t *offset, uint64_t *ret_value)
{
	uint8_t bytes[VARINT_BYTES];
	int r = pclntab_get(pclntab, &pclntab->value_window, *offset, bytes, sizeof(bytes));

	*ret_value = 0;
	for (unsigned int i = 0; r == 0 && i < VARINT_BYTES; i++) {
		*ret_value |= (uint64_t)(bytes[i] & 0x7f) << (7 * i);
		if (!(bytes[i] & 0x80)) {
			*offset += i + 1;
			return 0;
		}
	}
	return r < 0 ? r : -EBADMSG;
}

int pclntab_text(struct pclntab *pclntab, uint64_t offset, char *ret_text, size_t size)
{
	int r = size ? pclntab_get(pclntab, &pclntab->value_window, offset, ret_text, size) : -EINVAL;

	if (r == 0)
		ret_text[size - 1] = '\0';
	return r;
}

void pclntab_values(const struct pclntab *pclntab, uint32_t table, uint64_t entry,
		    struct pclntab_run *ret_run)
{
	*ret_run = (struct pclntab_run){
		.offset = pclntab->values + table, .entry = entry, .end = entry, .value = -1,
	};
}

int pclntab_next(struct pclntab *pclntab, struct pclntab_run *run)
{
	uint64_t delta, bytes;
	int r = get_varint(pclntab, &run->offset, &delta);

	if (r < 0)
		return r;
	/* only the first may be the same as before it */
	if (!delta && run->end != run->entry)
		return 0;
	r = get_varint(pclntab, &run->offset, &bytes);
	if (r < 0)
		return r;
	/* the sign is the lowest bit; 32 bits that go round, as in Go */
	run->value = (int32_t)((uint32_t)run->value + (uint32_t)(delta >> 1 ^ -(delta & 1)));
	run->start = run->end;
	run->end = bytes && bytes <= (UINT64_MAX - run->start) / pclntab->quantum ?
			   run->start + bytes * pclntab->quantum : UINT64_MAX;
	return 1;
}
