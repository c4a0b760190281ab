// SPDX-License-Identifier: Apache-2.0
#include "symbol/lines.h"

#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "symbol/dwarf_calls.h"
#include "symbol/dwarf_function.h"
#include "symbol/lines_state.h"

enum {
	STRING_SLOTS = 4096,
	DWOS_PART = 2,			/* of the time .dwo files may take */
	DWO_PART = 4,			/* of what is left of that one may take */
};

/* An address by the unit that it is in. */
struct wanted {
	uint64_t unit;
	uint32_t i;
};

/* What one question is answered with. */
struct search {
	struct lines *lines;
	const uint64_t *addresses;
	uint32_t count;
	uint64_t deadline;
	uint64_t dwos_deadline;		/* of all .dwo files */
	bool *is_taken;			/* of each address: it has been answered */
	struct wanted *wanted;
	/* addresses of the unit at hand, with their places, lines and functions */
	uint64_t *unit_addresses;
	uint32_t *unit_places;
	struct dwarf_row *rows;
	uint32_t unit_count;
	struct dwarf_unit *unit;	/* that has the functions, of @units */
	struct dwarf_units *units;
	struct dwarf_unit *skeleton;	/* that stands for one of a .dwo file, in which @unit is; NULL: it is in none */
	uint64_t unit_deadline;
	const struct dwarf_program *program;
	struct dwarf_calls calls;
	bool has_code;			/* the unit has, as far as is known */
	struct dwarf_function function;
	char directory[LINES_TEXT_MAX];	/* that it was compiled in; empty: unknown */
	struct lines_answer *answer;
	uint32_t go_address;		/* that Go's frames are of */
	uint32_t string_room;
	uint32_t slots[STRING_SLOTS];	/* some string of this hash; 0: none yet */
	struct lines_frame (*frames)[LINES_FRAMES_MAX];
};

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

/* What is relative is so to the directory of the unit. */
static uint32_t add_path(struct search *search, const char *path)
{
	char whole[LINES_TEXT_MAX];

	if (!path[0] || path[0] == '/' || !search->directory[0])
		return add_string(search, path);
	if (snprintf(whole, sizeof(whole), "%s/%s", search->directory, path) >= (int)sizeof(whole))
		whole[sizeof(whole) - 1] = '\0';
	return add_string(search, whole);
}

/* A frame of a call, at a line of @file. */
static void fill_function(struct search *search, uint32_t at, const char *file, struct lines_frame *frame)
{
	struct dwarf_function *function = &search->function;

	dwarf_function_read(search->units, search->unit, search->program, at, function);
	frame->name = add_string(search, function->name);
	if (!file[0])
		file = function->file;
	frame->file = add_path(search, file);
	if (file[0] && !strcmp(file, function->file))
		frame->start_line = function->line;
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

/* Of what has no frames the symbol alone, and Go's own table. */
static int make_outer_frame(struct search *search, uint32_t i, struct lines_frame spare)
{
	const uint32_t *count = &search->answer->counts[i];
	int r = *count ? 0 : make_go_frames(search, i);

	if (r < 0 && r != -ENODATA)
		return r;
	if (!*count) {
		fill_symbol(search, search->addresses[i], &spare);
		if (spare.name)
			*next_frame(search, i) = spare;
	} else {
		fill_symbol(search, search->addresses[i], &search->frames[i][*count - 1]);
	}
	return 0;
}

static uint32_t number_of(const struct dwarf_value *value)
{
	return value->form && value->number <= INT32_MAX ? (uint32_t)value->number : 0;
}

/* Frames of one address of the unit, innermost first: each function is at the line where it calls the one before. */
static int make_frames(struct search *search, uint32_t n)
{
	const uint32_t i = search->unit_places[n];
	const struct dwarf_row *row = &search->rows[n];
	struct lines_frame *frame, spare = { .line = row->line, .column = row->column };
	char file[DWARF_TEXT_MAX] = "";
	struct dwarf_entry entry;
	struct dwarf_facts facts;

	search->is_taken[i] = true;
	if (row->is_found && search->program)
		dwarf_program_path(search->program, row->file, file);
	spare.file = add_path(search, file);
	for (uint32_t k = search->calls.innermost[n]; k != DWARF_NO_CALL; k = search->calls.calls[k].outer) {
		const uint32_t at = search->calls.calls[k].at;

		frame = next_frame(search, i);
		*frame = (struct lines_frame){ .line = spare.line, .column = spare.column };
		fill_function(search, at, file, frame);
		memset(&facts, 0, sizeof(facts));
		if (!dwarf_entry_at(search->unit, at, &entry) && entry.tag)
			dwarf_entry_facts(search->unit, &entry, &facts);
		spare.line = number_of(&facts.call_line);
		spare.column = number_of(&facts.call_column);
		file[0] = '\0';
		if (search->program)
			dwarf_program_path(search->program, facts.call_file.form ? facts.call_file.number : UINT64_MAX,
					   file);
	}
	return make_outer_frame(search, i, spare);
}

static int find_rows(struct search *search)
{
	if (search->program)
		return dwarf_program_rows(search->program, search->unit_addresses, search->unit_count,
					  search->deadline, search->rows);
	memset(search->rows, 0, search->unit_count * sizeof(*search->rows));
	return 0;
}

/* Of those that no entry has: a unit that does not say where its code is has what is found in it. */
static void keep_found(struct search *search)
{
	uint32_t kept = 0;

	for (uint32_t n = 0; n < search->unit_count; n++) {
		if (search->calls.innermost[n] == DWARF_NO_CALL)
			continue;
		search->calls.innermost[kept] = search->calls.innermost[n];
		search->unit_addresses[kept] = search->unit_addresses[n];
		search->unit_places[kept++] = search->unit_places[n];
	}
	search->unit_count = kept;
}

/* A .dwo file may take a part of what is left of the time for all of them, so none costs others, nor lines. */
static uint64_t next_dwo_deadline(const struct search *search)
{
	const uint64_t now = clock_monotonic();

	return search->dwos_deadline > now ? now + (search->dwos_deadline - now) / DWO_PART : search->dwos_deadline;
}

/* Entries of what is split are elsewhere; without them there is the line program alone. */
static int enter_split(struct search *search)
{
	struct dwarf_unit *skeleton = search->unit, *unit;
	struct dwarf_split *split = &search->lines->split;
	int r = dwarf_split_find(split, skeleton, &unit);

	if (r < 0 && r != -ENOENT)
		return r;
	if (r == -ENOENT) {
		search->unit_deadline = next_dwo_deadline(search);
		if (dwarf_dwos_find(&search->lines->dwos, skeleton, search->unit_deadline, &split, &unit) < 0) {
			dwarf_dwos_drop(&search->lines->dwos, skeleton);
			search->unit_deadline = search->deadline;
			return 0;
		}
		search->skeleton = skeleton;
	}
	search->unit = unit;
	search->units = &split->units;
	return 0;
}

static int take_failure(struct lines *lines)
{
	return dwarf_take_failure(lines->main.file) ?: dwarf_take_failure(lines->alt.file) ?:
	       dwarf_take_failure(lines->split.file);
}

/* By the entries of the unit at hand. */
static int answer_unit(struct search *search, bool is_silent)
{
	int r = dwarf_calls_find(search->unit, search->unit_addresses, search->unit_count, search->unit_deadline,
				 &search->calls);

	if (r < 0)
		return r;
	if (is_silent)
		keep_found(search);
	if (search->unit->is_skeleton)
		search->answer->split += search->unit_count;
	r = find_rows(search);
	for (uint32_t n = 0; !r && n < search->unit_count; n++)
		r = make_frames(search, n);
	search->has_code = search->calls.has_code;
	dwarf_calls_done(&search->calls);
	return r;
}

/* The same without its .dwo file, of which something could not be read. */
static int answer_skeleton(struct search *search, bool is_silent)
{
	for (uint32_t n = 0; n < search->unit_count; n++) {
		search->is_taken[search->unit_places[n]] = false;
		search->answer->counts[search->unit_places[n]] = 0;
	}
	dwarf_dwos_drop(&search->lines->dwos, search->skeleton);
	search->unit = search->skeleton;
	search->units = &search->lines->main.units;
	search->unit_deadline = search->deadline;
	return answer_unit(search, is_silent);
}

/* The addresses that were set aside for the unit that begins at @offset. */
static int search_unit(struct search *search, uint64_t offset, bool is_silent)
{
	struct dwarf_units *units = search->units = &search->lines->main.units;
	int r = dwarf_units_get(units, offset, NULL, NULL, &search->unit), failure;

	/* what is broken, or too large, leaves symbols */
	if (r < 0)
		return r == -ENOMEM || r == -ETIME ? r : 0;
	search->skeleton = NULL;
	search->unit_deadline = search->deadline;
	search->program = dwarf_units_program(units, search->unit);
	dwarf_value_text(search->unit, &search->unit->root.comp_dir, search->directory);
	r = search->unit->is_skeleton ? enter_split(search) : 0;
	if (r < 0)
		return r;
	r = answer_unit(search, is_silent);
	if (search->skeleton) {
		failure = dwarf_dwos_failure(&search->lines->dwos);
		if (r < 0 || failure < 0)
			r = answer_skeleton(search, is_silent);
	}
	return r ?: take_failure(search->lines);
}

static void set_aside(struct search *search, uint32_t i)
{
	search->unit_places[search->unit_count] = i;
	search->unit_addresses[search->unit_count++] = search->addresses[i];
}

static int by_unit(const void *a, const void *b)
{
	const struct wanted *x = a, *y = b;

	if (x->unit != y->unit)
		return x->unit < y->unit ? -1 : 1;
	return (x->i > y->i) - (x->i < y->i);
}

/* By the index, which is made whole for the first address that it does not have. */
static int find_units(struct search *search, uint32_t *ret_count)
{
	struct dwarf_index *index = &search->lines->index;
	int r;

	*ret_count = 0;
	for (uint32_t i = 0; i < search->count; i++) {
		struct wanted *wanted = &search->wanted[*ret_count];

		wanted->i = i;
		if (dwarf_index_find(index, search->addresses[i], &wanted->unit)) {
			++*ret_count;
		} else if (!index->is_whole) {
			r = dwarf_index_make(index);
			search->lines->has_new_index = !r;
			return r < 0 ? r : find_units(search, ret_count);
		}
	}
	qsort(search->wanted, *ret_count, sizeof(*search->wanted), by_unit);
	return 0;
}

static int search_units(struct search *search)
{
	struct dwarf_index *index = &search->lines->index;
	uint32_t count, k;
	int r = find_units(search, &count);

	for (uint32_t n = 0; !r && n < count; n = k) {
		search->unit_count = 0;
		for (k = n; k < count && search->wanted[k].unit == search->wanted[n].unit; k++)
			set_aside(search, search->wanted[k].i);
		r = search_unit(search, search->wanted[n].unit, false);
	}
	for (uint32_t n = 0; !r && n < index->silent_count;) {
		search->unit_count = 0;
		for (uint32_t i = 0; i < search->count; i++)
			if (!search->is_taken[i])
				set_aside(search, i);
		search->has_code = true;
		if (search->unit_count)
			r = search_unit(search, index->silent[n], true);
		/* of data and types alone: it is read no more */
		if (!r && !search->has_code)
			memmove(&index->silent[n], &index->silent[n + 1],
				(--index->silent_count - n) * sizeof(*index->silent));
		else
			n++;
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
	const uint64_t now = clock_monotonic();
	int r = 0;

	search->string_room = 64 << 10;
	search->answer->strings = calloc(1, search->string_room);
	search->answer->string_bytes = 1;
	search->is_taken = calloc(search->count + 1, sizeof(*search->is_taken));
	search->wanted = calloc(search->count + 1, sizeof(*search->wanted));
	search->unit_addresses = calloc(search->count + 1, sizeof(*search->unit_addresses));
	search->unit_places = calloc(search->count + 1, sizeof(*search->unit_places));
	search->rows = calloc(search->count + 1, sizeof(*search->rows));
	search->frames = calloc(search->count + 1, sizeof(*search->frames));
	if (!search->answer->strings || !search->is_taken || !search->wanted || !search->unit_addresses ||
	    !search->unit_places || !search->rows || !search->frames)
		return -ENOMEM;
	search->dwos_deadline = now < search->deadline ? now + (search->deadline - now) / DWOS_PART : search->deadline;
	search->lines->file.deadline = search->deadline;
	search->lines->alt.elf.deadline = search->deadline;
	search->lines->split.elf.deadline = search->deadline;
	if (search->lines->main.file)
		r = search_units(search) ?: take_failure(search->lines);
	for (uint32_t i = 0; !r && i < search->count; i++)
		if (!search->is_taken[i])
			r = make_outer_frame(search, i, (struct lines_frame){ .line = 0 });
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
	free(search->wanted);
	free(search->unit_addresses);
	free(search->unit_places);
	free(search->rows);
	free(search->frames);
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
