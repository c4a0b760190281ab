// SPDX-License-Identifier: Apache-2.0
#include "unwind/pclntab.h"

#include <string.h>

#include "unwind/rule.h"

enum {
	MAGIC_12 = 0xfffffffb,
	MAGIC_116 = 0xfffffffa,
	MAGIC_118 = 0xfffffff0,
	MAGIC_120 = 0xfffffff1,
	HEADER_BYTES = 72,
	HEADER_BYTES_12 = 16,
	ENTRY_BYTES = 8,	/* of a function: where it begins, where it is described */
	ENTRY_BYTES_OLD = 16,
	VARINT_BYTES = 10,
	FLAG_TOP = 1,		/* nothing called it: goexit, mstart, signal handlers */
	FLAG_SP_WRITE = 2,	/* it goes to another stack */
	NAME_BYTES = 32,
	FUNCTIONS_MAX = 4 << 20,
	ALIGNMENT = 64,
};

/* What the header has since Go 1.18, in Go's words: pcHeader. */
struct header {
	uint32_t magic;
	uint8_t zero[2], quantum, pointer_bytes;
	uint64_t count, files, text, names, units, file_names, values, functions;
};

static_assert(sizeof(struct header) == HEADER_BYTES, "the header has no holes");

/* @size bytes at @offset of the section, at most a window's; what is behind its end is 0. */
static int get(const struct pclntab *pclntab, struct pclntab_window *window, uint64_t offset,
	       void *ret_bytes, size_t size)
{
	const Elf64_Shdr *section = pclntab->section;
	int r;

	if (offset < window->offset || offset - window->offset > window->size ||
	    window->size - (offset - window->offset) < size) {
		window->size = 0;
		if (offset >= section->sh_size)
			return -EBADMSG;
		window->offset = offset;
		memset(window->bytes, 0, sizeof(window->bytes));
		r = elf_read(pclntab->elf, section->sh_offset + offset, window->bytes,
			     (size_t)min_of(section->sh_size - offset, (uint64_t)PCLNTAB_WINDOW));
		if (r < 0)
			return r;
		window->size = PCLNTAB_WINDOW;
	}
	memcpy(ret_bytes, window->bytes + (offset - window->offset), size);
	return 0;
}

/* Where function @i begins; @i may be their count, for where the last one ends. */
static int get_entry(struct pclntab *pclntab, uint32_t i, uint64_t *ret_address, uint32_t *ret_at)
{
	uint64_t whole[2];
	uint32_t entry[2];
	int r;

	if (pclntab->has_rules)
		r = get(pclntab, &pclntab->entry_window, pclntab->functions + (uint64_t)i * ENTRY_BYTES,
			entry, sizeof(entry));
	else
		r = get(pclntab, &pclntab->entry_window,
			pclntab->functions + (uint64_t)i * ENTRY_BYTES_OLD, whole, sizeof(whole));
	if (r < 0)
		return r;
	*ret_address = pclntab->has_rules ? pclntab->text + entry[0] : whole[0];
	*ret_at = pclntab->has_rules ? entry[1] : (uint32_t)whole[1];
	return 0;
}

/* Does a function begin at @address? Where it is described. */
static bool is_function(struct pclntab *pclntab, uint64_t address, uint32_t *ret_at)
{
	uint32_t first = 0, last = pclntab->count;
	uint64_t entry;

	while (first < last) {
		uint32_t middle = first + (last - first) / 2;

		if (get_entry(pclntab, middle, &entry, ret_at) < 0)
			return false;
		if (entry == address)
			return true;
		if (entry < address)
			first = middle + 1;
		else
			last = middle;
	}
	return false;
}

struct function {
	uint32_t name, values;
	uint8_t flags;
};

static int get_function(struct pclntab *pclntab, uint32_t at, struct function *ret_function)
{
	/* entry, name, args, deferreturn, pcsp, pcfile, pcln, npcdata, cu; startLine; kind, flags */
	uint32_t words[11];
	int r = get(pclntab, &pclntab->function_window, pclntab->descriptions + at, words,
		    sizeof(words));

	if (r < 0)
		return r;
	/* the entry was a whole address, and nothing behind the name is asked for */
	if (!pclntab->has_rules) {
		*ret_function = (struct function){ .name = words[2] };
		return 0;
	}
	ret_function->name = words[1];
	ret_function->values = words[4];
	/* behind the function's kind */
	ret_function->flags = ((const uint8_t *)&words[pclntab->has_line ? 10 : 9])[1];
	return 0;
}

/*
 * Since Go 1.26 the table does not say where its code is, and in position-independent programs it
 * never did. Go's linker begins .text with it, and the program's entry is Go's, _rt0_amd64_linux for
 * one. Another linker puts C code first, whose address has nothing to do with the table, and the
 * entry is C's: that it is where some function of the table begins is chance then, so it is asked
 * for its name.
 */
static bool find_text(struct pclntab *pclntab, uint64_t text)
{
	const Elf64_Shdr *code = elf_find_section(pclntab->elf, SHT_PROGBITS, ".text");
	struct function function;
	Elf64_Ehdr header;
	char name[5];
	uint64_t end;
	uint32_t at;

	if (!code || elf_read(pclntab->elf, 0, &header, sizeof(header)) < 0)
		return false;
	/* a position-independent program has them filled in when it is loaded: they are in no code here */
	if (!pclntab->has_rules && get_entry(pclntab, 0, &text, &at) < 0)
		return false;
	pclntab->text = text ? text : code->sh_addr;
	if (get_entry(pclntab, pclntab->count, &end, &at) < 0 || pclntab->text < code->sh_addr ||
	    end < pclntab->text || end - code->sh_addr > code->sh_size)
		return false;
	return text || (is_function(pclntab, header.e_entry, &at) &&
			get_function(pclntab, at, &function) == 0 &&
			get(pclntab, &pclntab->value_window, pclntab->names + function.name, name,
			    sizeof(name)) == 0 &&
			!strncmp(name, "_rt0_", sizeof(name)));
}

/*
 * Where the tables are in the section. Go 1.2 had them one behind the other, and offsets from the beginning of all;
 * Go 1.16 the header of today without the address of the code. False: of a Go that is not known.
 */
static bool place_tables(struct pclntab *pclntab, const struct header *header)
{
	*pclntab = (struct pclntab){
		.has_line = header->magic == MAGIC_120,
		.has_rules = header->magic == MAGIC_118 || header->magic == MAGIC_120,
	};
	if (pclntab->has_rules) {
		pclntab->names = header->names;
		pclntab->values = header->values;
		pclntab->functions = pclntab->descriptions = header->functions;
	} else if (header->magic == MAGIC_116) {
		pclntab->names = header->text;
		pclntab->functions = pclntab->descriptions = header->values;
	} else {
		pclntab->functions = HEADER_BYTES_12;
	}
	return pclntab->has_rules || header->magic == MAGIC_116 || header->magic == MAGIC_12;
}

void pclntab_find(const struct elf *elf, const struct machine *machine,
		  struct pclntab *ret_pclntab)
{
	static const char *const names[] = { ".gopclntab", ".data.rel.ro.gopclntab" };
	const Elf64_Shdr *section = NULL;
	struct header header;

	ret_pclntab->section = NULL;
	for (size_t i = 0; !section && i < ARRAY_SIZE(names); i++)
		section = elf_find_section(elf, SHT_PROGBITS, names[i]);
	if (!section || section->sh_size < HEADER_BYTES || section->sh_size > PCLNTAB_BYTES_MAX ||
	    section->sh_offset > elf->size || section->sh_size > elf->size - section->sh_offset ||
	    elf_read(elf, section->sh_offset, &header, sizeof(header)) < 0)
		return;
	if (!place_tables(ret_pclntab, &header) || header.zero[0] || header.zero[1] ||
	    header.quantum != 1U << machine->shift || header.pointer_bytes != 8 || !header.count ||
	    header.count > FUNCTIONS_MAX || ret_pclntab->names >= section->sh_size ||
	    ret_pclntab->values >= section->sh_size || ret_pclntab->functions >= section->sh_size ||
	    header.count >= (section->sh_size - ret_pclntab->functions) /
			    (ret_pclntab->has_rules ? ENTRY_BYTES : ENTRY_BYTES_OLD))
		return;
	ret_pclntab->elf = elf;
	ret_pclntab->section = section;
	ret_pclntab->count = (uint32_t)header.count;
	if (!find_text(ret_pclntab, ret_pclntab->has_rules ? header.text : 0))
		ret_pclntab->section = NULL;
}

void pclntab_range(struct pclntab *pclntab, uint64_t *ret_start, uint64_t *ret_end)
{
	uint32_t at;

	*ret_start = *ret_end = UINT64_MAX;
	if (!pclntab->section || !pclntab->has_rules || get_entry(pclntab, 0, ret_start, &at) < 0 ||
	    get_entry(pclntab, pclntab->count, ret_end, &at) < 0 || *ret_end < *ret_start)
		*ret_start = *ret_end = UINT64_MAX;
}

int pclntab_function(struct pclntab *pclntab, uint32_t i, struct function_range *ret_range)
{
	const Elf64_Shdr *section = pclntab->section;
	struct function function;
	uint32_t at, unused;
	int r;

	*ret_range = (struct function_range){ 0 };
	r = get_entry(pclntab, i, &ret_range->start, &at);
	if (r == 0)
		r = get_entry(pclntab, i + 1, &ret_range->end, &unused);
	if (r == 0)
		r = get_function(pclntab, at, &function);
	if (r == 0 && function.name < section->sh_size - pclntab->names)
		ret_range->name = section->sh_offset + pclntab->names + function.name;
	return r;
}

/*
 * What leaves the goroutine's stack for that of its thread: its callers are on another stack, which
 * nothing on this one leads to. The walk's stack begins here.
 */
static bool is_switch(struct pclntab *pclntab, uint32_t name)
{
	static const char *const names[] = { "runtime.systemstack", "runtime.mcall",
					     "runtime.morestack" };
	char found[NAME_BYTES];

	if (get(pclntab, &pclntab->value_window, pclntab->names + name, found, sizeof(found)) < 0)
		return false;
	found[sizeof(found) - 1] = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (!strcmp(found, names[i]))
			return true;
	return false;
}

/*
 * The rule where the stack pointer is @distance below its place at entry. The return address is
 * above the frame (x86) or at its lower end (arm64). That fp stays the same is not so; but the walk
 * stays by rules that do not ask for it as long as it is in Go's code, and then fp is below the
 * stack pointer, which no step by the frame pointer accepts.
 */
static struct unwind_rule rule_of(const struct machine *machine, int32_t distance)
{
	int32_t bytes;
	struct unwind_rule rule = {
		.cfa = UNWIND_VALUE | UNWIND_BASE_SP,
		.ra = UNWIND_LOAD | UNWIND_BASE_CFA,
	};

	if (distance < 0 || distance > UNWIND_OFFSET_MAX - UNWIND_WORD || distance % UNWIND_WORD)
		return rule_special(UNWIND_NO_RULE);
	bytes = distance + (machine->has_link ? 0 : UNWIND_WORD);
	rule.cfa_offset = bytes;
	rule.ra_offset = machine->has_link ? -bytes : -UNWIND_WORD;
	if (!bytes) {
		rule.ra = UNWIND_VALUE | machine->ra;
		rule.ra_offset = 0;
	}
	return rule;
}

static int get_varint(struct pclntab *pclntab, uint64_t *offset, uint64_t *ret_value)
{
	uint8_t bytes[VARINT_BYTES];
	int r = get(pclntab, &pclntab->value_window, *offset, bytes, sizeof(bytes));

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

/* Rows of one function, [@start, @end) of it. */
static int run(struct pclntab *pclntab, struct builder *builder, const struct function *function,
	       uint64_t entry, uint64_t start, uint64_t end)
{
	uint64_t offset = pclntab->values + function->values, at = entry, delta, bytes;
	struct unwind_rule rule;
	int32_t distance = -1;
	int r;

	while (at < end) {
		r = get_varint(pclntab, &offset, &delta);
		if (r == 0 && delta == 0 && at != entry)
			break;
		if (r == 0)
			r = get_varint(pclntab, &offset, &bytes);
		/* broken: nothing is known of the rest */
		if (r == -EBADMSG)
			break;
		if (r < 0)
			return r;
		/* the sign is the lowest bit; 32 bits that go round, as in Go */
		distance = (int32_t)((uint32_t)distance + (uint32_t)(delta >> 1 ^ -(delta & 1)));
		if (!bytes || bytes > (end - at) >> builder->machine->shift)
			bytes = (end - at) >> builder->machine->shift;
		if (!bytes)
			break;
		bytes <<= builder->machine->shift;
		rule = rule_of(builder->machine, distance);
		if (at + bytes > start) {
			r = builder_row(builder, max_of(at, start), &rule);
			if (r < 0)
				return r;
		}
		at += bytes;
	}
	/* what aligns the next function; one of which nothing is known has no other's rule */
	if (at > entry && end - at < ALIGNMENT)
		return 0;
	rule = rule_special(UNWIND_UNCOVERED);
	return builder_row(builder, max_of(at, start), &rule);
}

static int fill_function(struct pclntab *pclntab, struct builder *builder, uint32_t description,
			 uint64_t entry, uint64_t start, uint64_t end)
{
	struct function function;
	struct unwind_rule rule = rule_special(UNWIND_UNCOVERED);
	int r = get_function(pclntab, description, &function);

	if (r == 0 && function.flags & FLAG_TOP)
		rule = rule_special(UNWIND_END);
	else if (r == 0 && function.flags & FLAG_SP_WRITE)
		rule = rule_special(is_switch(pclntab, function.name) ? UNWIND_END :
									UNWIND_NO_RULE);
	else if (r == 0 && function.values)
		return run(pclntab, builder, &function, entry, start, end);
	/* a broken description is no reason to do without the others */
	if (r < 0 && r != -EBADMSG)
		return r;
	return builder_row(builder, start, &rule);
}

int pclntab_fill(struct pclntab *pclntab, struct builder *builder, uint64_t start, uint64_t end)
{
	struct unwind_rule uncovered = rule_special(UNWIND_UNCOVERED);
	uint64_t entry, next;
	uint32_t at, unused;
	int r;

	/* another pass */
	if (start < pclntab->done)
		pclntab->next = 0;
	pclntab->done = end;
	r = builder_row(builder, start, &uncovered);
	for (; r == 0 && pclntab->next < pclntab->count; pclntab->next++) {
		r = get_entry(pclntab, pclntab->next, &entry, &at);
		if (r == 0)
			r = get_entry(pclntab, pclntab->next + 1, &next, &unused);
		if (r < 0 || entry >= end || next < entry)
			break;
		if (next <= start || next == entry)
			continue;
		r = fill_function(pclntab, builder, at, entry, max_of(start, entry),
				  min_of(next, end));
		start = min_of(next, end);
		/* the rest of it may lie behind a frame entry */
		if (next > end)
			break;
	}
	return r == -EBADMSG ? 0 : r;
}
