// SPDX-License-Identifier: Apache-2.0
#include "symbol/lines.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "symbol/go_lines.h"
#include "symbol/lines_facts.h"
#include "symbol/symtab.h"

enum {
	DEPTH_MAX = 256,		/* of entries in each other */
	ENTRIES_PER_LOOK = 1024,	/* at the clock */
	RANGES_MAX = 1 << 20,		/* of one entry */
	STRING_SLOTS = 4096,
	NO_CALL = UINT32_MAX,
};

struct lines {
	struct elf file;
	struct symtab *symtab;		/* NULL: none */
	Elf *elf, *alt_elf;
	Dwarf *dwarf, *alt;		/* NULL: none that can be read */
	struct go_lines *go;		/* NULL: no program of Go */
};

/* An entry of debugging information that holds an address, and the one around it. */
struct call {
	Dwarf_Die die;
	uint32_t depth, outer;		/* place in the calls; NO_CALL: none */
};

/* What one question is answered with. */
struct search {
	struct lines *lines;
	const uint64_t *addresses;
	uint32_t count;
	uint64_t deadline;
	uint32_t entries;		/* since the last look at the clock */
	bool *is_taken;			/* of each address: a unit before has it */
	uint32_t *innermost;		/* of each address, in @calls */
	struct call *calls;
	uint32_t call_count, call_room;
	uint32_t *unit;			/* addresses of the unit at hand */
	uint32_t unit_count;
	const char *directory;		/* that it was compiled in, NULL: unknown */
	struct lines_answer *answer;
	uint32_t go_address;		/* that Go's frames are of */
	uint32_t string_room;
	uint32_t slots[STRING_SLOTS];	/* some string of this hash; 0: none yet */
	struct lines_frame (*frames)[LINES_FRAMES_MAX];
};

static Dwarf *open_dwarf(int fd, Elf **ret_elf)
{
	Dwarf *dwarf = NULL;

	elf_version(EV_CURRENT);
	/* read, not mapped: a file that is cut meanwhile is an error then */
	*ret_elf = elf_begin(fd, ELF_C_READ, NULL);
	if (*ret_elf && elf_kind(*ret_elf) == ELF_K_ELF)
		dwarf = dwarf_begin_elf(*ret_elf, DWARF_C_READ, NULL);
	if (dwarf)
		return dwarf;
	elf_end(*ret_elf);
	*ret_elf = NULL;
	return NULL;
}

static void close_dwarf(Dwarf **dwarf, Elf **elf)
{
	dwarf_end(*dwarf);
	elf_end(*elf);
	*dwarf = NULL;
	*elf = NULL;
}

int lines_open(int fd, uint64_t size, bool with_dwarf, uint64_t deadline, struct lines **ret_lines)
{
	struct lines *lines = calloc(1, sizeof(*lines));
	int r;

	if (!lines)
		return -ENOMEM;
	r = elf_open(&lines->file, fd, size, deadline);
	if (r < 0) {
		free(lines);
		return r;
	}
	if (symtab_read(&lines->file, NULL, 0, NULL, &lines->symtab) < 0)
		lines->symtab = NULL;
	if (with_dwarf && !lines_is_relocatable(&lines->file))
		lines->dwarf = open_dwarf(fd, &lines->elf);
	if (go_lines_open(&lines->file, &lines->go) < 0)
		lines->go = NULL;
	if (!lines->dwarf && !lines->go && (!lines->symtab || !lines->symtab->count)) {
		lines_free(lines);
		return -ENODATA;
	}
	*ret_lines = lines;
	return 0;
}

int lines_set_alt(struct lines *lines, int fd)
{
	if (!lines->dwarf)
		return 0;
	lines->alt = open_dwarf(fd, &lines->alt_elf);
	if (!lines->alt)
		return -ENODATA;
	dwarf_setalt(lines->dwarf, lines->alt);
	return 0;
}

void lines_free(struct lines *lines)
{
	if (!lines)
		return;
	close_dwarf(&lines->dwarf, &lines->elf);
	close_dwarf(&lines->alt, &lines->alt_elf);
	go_lines_free(lines->go);
	symtab_free(lines->symtab);
	elf_close(&lines->file);
	free(lines);
}

static int look_at_clock(struct search *search)
{
	if (++search->entries < ENTRIES_PER_LOOK)
		return 0;
	search->entries = 0;
	return clock_monotonic() > search->deadline ? -ETIME : 0;
}

/* The first address at or above @low. */
static uint32_t first_from(const struct search *search, uint64_t low)
{
	uint32_t begin = 0, end = search->count;

	while (begin < end) {
		uint32_t middle = begin + (end - begin) / 2;

		if (search->addresses[middle] < low)
			begin = middle + 1;
		else
			end = middle;
	}
	return begin;
}

static int add_call(struct search *search, Dwarf_Die *die, uint32_t depth, uint32_t i)
{
	uint32_t outer = search->innermost[i];
	struct call *calls;

	if (search->call_count == search->call_room) {
		search->call_room = search->call_room ? 2 * search->call_room : 4096;
		calls = reallocarray(search->calls, search->call_room, sizeof(*calls));
		if (!calls)
			return -ENOMEM;
		search->calls = calls;
	}
	if (dwarf_tag(die) == DW_TAG_subprogram)
		outer = NO_CALL;
	/* of two beside each other that both claim it, the later one */
	while (outer != NO_CALL && search->calls[outer].depth >= depth)
		outer = search->calls[outer].outer;
	search->calls[search->call_count] = (struct call){
		.die = *die, .depth = depth, .outer = outer,
	};
	search->innermost[i] = search->call_count++;
	return 0;
}

/*
 * Is there code? What the linker dropped (--gc-sections) keeps its entries, with ranges that begin at 0 and are as
 * long as it was.
 */
static bool is_code(const struct elf *elf, uint64_t address)
{
	bool any = false;

	for (size_t i = 0; i < elf->shdr_count; i++) {
		const Elf64_Shdr *shdr = &elf->shdrs[i];

		if (!(shdr->sh_flags & SHF_ALLOC) || !(shdr->sh_flags & SHF_EXECINSTR))
			continue;
		if (address - shdr->sh_addr < shdr->sh_size)
			return true;
		any = true;
	}
	return !any && address;
}

/* Calls @each for the addresses in the entry's ranges. -errno, else how many ranges there are. */
static int in_ranges(struct search *search, Dwarf_Die *die, uint32_t depth,
		     int (*each)(struct search *search, Dwarf_Die *die, uint32_t depth, uint32_t i))
{
	Dwarf_Addr base, low, high;
	ptrdiff_t offset = 0;
	int ranges = 0, r = 0;

	while (ranges < RANGES_MAX &&
	       (offset = dwarf_ranges(die, offset, &base, &low, &high)) > 0) {
		ranges++;
		for (uint32_t i = is_code(&search->lines->file, low) ? first_from(search, low) :
								      search->count;
		     !r && i < search->count && search->addresses[i] < high; i++)
			r = each(search, die, depth, i);
		r = r ?: look_at_clock(search);
		if (r < 0)
			return r;
	}
	return ranges;
}

static bool holds_code(int tag)
{
	switch (tag) {
	case DW_TAG_subprogram:
	case DW_TAG_inlined_subroutine:
	case DW_TAG_lexical_block:
	case DW_TAG_try_block:
	case DW_TAG_catch_block:
	case DW_TAG_with_stmt:
	case DW_TAG_namespace:
	case DW_TAG_module:
	case DW_TAG_class_type:
	case DW_TAG_structure_type:
	case DW_TAG_union_type:
		return true;
	default:
		return false;
	}
}

static int visit(struct search *search, Dwarf_Die *parent, uint32_t depth)
{
	uint32_t calls;
	Dwarf_Die die;
	int r, tag;

	if (depth >= DEPTH_MAX || dwarf_child(parent, &die))
		return 0;
	do {
		r = look_at_clock(search);
		if (r < 0)
			return r;
		tag = dwarf_tag(&die);
		if (!holds_code(tag))
			continue;
		r = 1;
		calls = search->call_count;
		if (tag == DW_TAG_subprogram || tag == DW_TAG_inlined_subroutine)
			r = in_ranges(search, &die, depth, add_call);
		/* what has no code of its own is a declaration, or what is inlined elsewhere */
		if (r > 0 && (tag != DW_TAG_inlined_subroutine || search->call_count > calls))
			r = visit(search, &die, depth + 1);
		if (r < 0)
			return r;
	} while (!dwarf_siblingof(&die, &die));
	return 0;
}

static uint32_t add_string(struct search *search, const char *text)
{
	struct lines_answer *answer = search->answer;
	size_t length = text ? strnlen(text, LINES_TEXT_MAX - 1) : 0;
	uint32_t *slot, room = search->string_room;
	char *strings;

	if (!length)
		return 0;
	slot = &search->slots[hash_bytes(text, length) % STRING_SLOTS];
	if (*slot && !strncmp(answer->strings + *slot, text, length) &&
	    !answer->strings[*slot + length])
		return *slot;
	if (answer->string_bytes + length + 1 > LINES_STRINGS_MAX)
		return 0;
	while (answer->string_bytes + length + 1 > room)
		room *= 2;
	if (room != search->string_room) {
		strings = realloc(answer->strings, room);
		if (!strings)
			return 0;
		answer->strings = strings;
		search->string_room = room;
	}
	*slot = answer->string_bytes;
	memcpy(answer->strings + *slot, text, length);
	answer->strings[*slot + length] = '\0';
	answer->string_bytes += (uint32_t)length + 1;
	return *slot;
}

/* libdw leaves what is relative to the unit's directory so. */
static uint32_t add_path(struct search *search, const char *path)
{
	char whole[LINES_TEXT_MAX];

	if (!path || path[0] == '/' || !search->directory)
		return add_string(search, path);
	snprintf(whole, sizeof(whole), "%s/%s", search->directory, path);
	return add_string(search, whole);
}

static const char *function_name(Dwarf_Die *die)
{
	static const unsigned int names[] = { DW_AT_linkage_name, DW_AT_MIPS_linkage_name };
	Dwarf_Attribute attribute;
	const char *name;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		name = dwarf_formstring(dwarf_attr_integrate(die, names[i], &attribute));
		if (name)
			return name;
	}
	return dwarf_diename(die);
}

static uint32_t number_of(Dwarf_Die *die, unsigned int name)
{
	Dwarf_Attribute attribute;
	Dwarf_Word value;

	if (dwarf_formudata(dwarf_attr(die, name, &attribute), &value) || value > INT32_MAX)
		return 0;
	return (uint32_t)value;
}

/* A frame of the function that @die is of, at a line of @file. */
static void fill_function(struct search *search, Dwarf_Die *die, const char *file,
			  struct lines_frame *frame)
{
	const char *declared = dwarf_decl_file(die);
	int line;

	frame->name = add_string(search, function_name(die));
	if (!file)
		file = declared;
	frame->file = add_path(search, file);
	if (file && declared && !strcmp(file, declared) && !dwarf_decl_line(die, &line) && line > 0)
		frame->start_line = (uint32_t)line;
}

static void fill_symbol(struct search *search, uint64_t address, struct lines_frame *frame)
{
	const struct symtab *symtab = search->lines->symtab;
	const struct symbol *symbol = symtab ? symtab_find(symtab, address) : NULL;
	char name[SYMTAB_NAME_MAX] = "";
	size_t size;

	if (!symbol || !symbol_is_named(symbol))
		return;
	if (!symtab_needs_file(symtab, symbol)) {
		if (symtab_name(symtab, symbol, name) < 0)
			return;
	} else {
		size = (size_t)min_of(symtab->names_bytes - symbol->name,
				      (uint64_t)sizeof(name) - 1);
		if (elf_read(&search->lines->file, symtab->names_offset + symbol->name, name,
			     size) < 0 || symtab_trim(name) < 0)
			return;
	}
	frame->name = add_string(search, name) ?: frame->name;
}

/* Room for one more frame of address @i: what there is no room for is the innermost. */
static struct lines_frame *next_frame(struct search *search, uint32_t i)
{
	struct lines_frame *frames = search->frames[i];
	uint32_t *count = &search->answer->counts[i];

	if (*count == LINES_FRAMES_MAX)
		memmove(frames, frames + 1, (LINES_FRAMES_MAX - 1) * sizeof(*frames));
	else
		++*count;
	return &frames[*count - 1];
}

static void take_go_frame(void *ctx, const struct go_frame *frame)
{
	struct search *search = ctx;

	*next_frame(search, search->go_address) = (struct lines_frame){
		.name = add_string(search, frame->name), .file = add_string(search, frame->file),
		.line = frame->line, .start_line = frame->start_line,
	};
}

/* What DWARF does not know a Go program may know by itself. */
static int make_go_frames(struct search *search, uint32_t i)
{
	search->go_address = i;
	return search->lines->go ? go_lines_find(search->lines->go, search->addresses[i], take_go_frame,
						 search) : -ENODATA;
}

/* Frames of address @i, innermost first: each function is at the line where it calls the one before. */
static int make_frames(struct search *search, Dwarf_Die *unit, Dwarf_Files *files, uint32_t i)
{
	const uint32_t *count = &search->answer->counts[i];
	struct lines_frame *frame, spare;
	const uint64_t address = search->addresses[i];
	uint32_t line = 0, column = 0;
	const char *file = NULL;
	int number, r = 0;
	Dwarf_Line *at = unit ? dwarf_getsrc_die(unit, address) : NULL;

	if (at) {
		file = dwarf_linesrc(at, NULL, NULL);
		if (!dwarf_lineno(at, &number) && number > 0)
			line = (uint32_t)number;
		if (!dwarf_linecol(at, &number) && number > 0)
			column = (uint32_t)number;
	}
	for (uint32_t n = search->innermost[i]; n != NO_CALL; n = search->calls[n].outer) {
		Dwarf_Die *die = &search->calls[n].die;

		frame = next_frame(search, i);
		*frame = (struct lines_frame){ .line = line, .column = column };
		fill_function(search, die, file, frame);
		line = number_of(die, DW_AT_call_line);
		column = number_of(die, DW_AT_call_column);
		file = files ? dwarf_filesrc(files, number_of(die, DW_AT_call_file), NULL, NULL) :
			       NULL;
	}
	if (!*count)
		r = make_go_frames(search, i);
	if (r < 0 && r != -ENODATA)
		return r;
	if (!*count) {
		spare = (struct lines_frame){ .line = line, .column = column,
					      .file = add_path(search, file) };
		fill_symbol(search, address, &spare);
		if (spare.name)
			*next_frame(search, i) = spare;
	} else {
		fill_symbol(search, address, &search->frames[i][*count - 1]);
	}
	return 0;
}

static int take_address(struct search *search, Dwarf_Die *die _unused_, uint32_t depth _unused_,
			uint32_t i)
{
	if (!search->is_taken[i]) {
		search->is_taken[i] = true;
		search->unit[search->unit_count++] = i;
	}
	return 0;
}

static int search_unit(struct search *search, Dwarf_Die *unit, bool is_split)
{
	Dwarf_Attribute attribute;
	Dwarf_Files *files = NULL;
	size_t file_count;
	int r;

	search->unit_count = 0;
	search->call_count = 0;
	r = in_ranges(search, unit, 0, take_address);
	if (r < 0 || (r > 0 && !search->unit_count))
		return r < 0 ? r : 0;
	/* entries without their parts elsewhere have line tables alone */
	if (is_split)
		search->answer->split += search->unit_count;
	else
		r = visit(search, unit, 1);
	/* one that does not say where its code is has what is found in it */
	for (uint32_t i = 0; !search->unit_count && search->call_count && i < search->count; i++)
		if (search->innermost[i] != NO_CALL && !search->is_taken[i])
			take_address(search, unit, 0, i);
	if (search->unit_count && dwarf_getsrcfiles(unit, &files, &file_count))
		files = NULL;
	search->directory = dwarf_formstring(dwarf_attr(unit, DW_AT_comp_dir, &attribute));
	for (uint32_t i = 0; r >= 0 && i < search->unit_count; i++)
		r = make_frames(search, unit, files, search->unit[i]);
	if (search->call_count)
		memset(search->innermost, 0xff, search->count * sizeof(*search->innermost));
	return r < 0 ? r : 0;
}

static int search_units(struct search *search)
{
	Dwarf_CU *unit = NULL;
	Dwarf_Half version;
	Dwarf_Die die;
	uint8_t type;
	int r = 0;

	while (!r && !dwarf_get_units(search->lines->dwarf, unit, &unit, &version, &type, &die,
				      NULL)) {
		if (type == DW_UT_compile || type == DW_UT_skeleton)
			r = search_unit(search, &die, type == DW_UT_skeleton);
		r = r ?: look_at_clock(search);
	}
	return r;
}

static int pack_frames(struct search *search)
{
	struct lines_answer *answer = search->answer;

	for (uint32_t i = 0; i < search->count; i++)
		answer->frame_count += answer->counts[i];
	answer->frames = calloc((size_t)answer->frame_count + 1, sizeof(*answer->frames));
	if (!answer->frames)
		return -ENOMEM;
	for (uint32_t i = 0, n = 0; i < search->count; n += answer->counts[i++])
		memcpy(answer->frames + n, search->frames[i],
		       answer->counts[i] * sizeof(*answer->frames));
	return 0;
}

static int find(struct search *search)
{
	int r = 0;

	search->string_room = 64 << 10;
	search->answer->strings = calloc(1, search->string_room);
	search->answer->string_bytes = 1;
	search->is_taken = calloc(search->count, sizeof(*search->is_taken));
	search->innermost = malloc(search->count * sizeof(*search->innermost));
	search->unit = calloc(search->count, sizeof(*search->unit));
	search->frames = calloc(search->count, sizeof(*search->frames));
	if (!search->answer->strings || !search->is_taken || !search->innermost || !search->unit ||
	    !search->frames)
		return -ENOMEM;
	memset(search->innermost, 0xff, search->count * sizeof(*search->innermost));
	search->lines->file.deadline = search->deadline;
	if (search->lines->dwarf)
		r = search_units(search);
	for (uint32_t i = 0; !r && i < search->count; i++)
		if (!search->is_taken[i])
			r = make_frames(search, NULL, NULL, i);
	return r ?: pack_frames(search);
}

int lines_find(struct lines *lines, const uint64_t *addresses, uint32_t count, uint64_t deadline,
	       struct lines_answer *ret_answer)
{
	struct search *search = calloc(1, sizeof(*search));
	int r;

	memset(ret_answer, 0, sizeof(*ret_answer));
	if (!search)
		return -ENOMEM;
	search->lines = lines;
	search->addresses = addresses;
	search->count = count;
	search->deadline = deadline;
	search->answer = ret_answer;
	r = find(search);
	free(search->is_taken);
	free(search->innermost);
	free(search->unit);
	free(search->frames);
	free(search->calls);
	free(search);
	if (r < 0)
		lines_answer_free(ret_answer);
	return r;
}

void lines_answer_free(struct lines_answer *answer)
{
	free(answer->frames);
	free(answer->strings);
	memset(answer, 0, sizeof(*answer));
}
