// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>
#include <string.h>

#include "cli/annotate.h"

enum {
	NEAR = 4096,			/* bytes between samples of one stretch whose function is unknown */
	LAST_INSTRUCTION = 16,		/* bytes */
};

/* A chosen hit by its address in the file. */
struct code_hit {
	uint64_t address;
	const struct hit *hit;
	uint32_t chosen;
};

/* What says where functions are: the debug file, then the program itself. */
struct tables {
	const struct debugfile *files[2];
	struct symtab *symtabs[2];
};

static int by_address(const void *a, const void *b)
{
	const struct code_hit *x = a, *y = b;

	return (x->address > y->address) - (x->address < y->address);
}

static bool no_room(void *ctx _unused_, size_t bytes _unused_)
{
	return false;
}

static void read_tables(struct annotation *annotation, struct tables *tables)
{
	const struct symtab_reclaim reclaim = { .make_room = no_room };

	*tables = (struct tables){ .files = { &annotation->debug, &annotation->code } };
	for (size_t i = 0; i < ARRAY_SIZE(tables->files); i++) {
		const struct debugfile *file = tables->files[i];

		if (file->object && parser_symtab(annotation->parser, file->object, file->fd, &reclaim,
						  &tables->symtabs[i]) < 0)
			tables->symtabs[i] = NULL;
	}
}

static void free_tables(struct tables *tables)
{
	for (size_t i = 0; i < ARRAY_SIZE(tables->symtabs); i++)
		symtab_free(tables->symtabs[i]);
}

/* The function that holds @address; false: nothing knows it. */
static bool find_function(const struct tables *tables, uint64_t address, uint64_t *ret_start,
			  uint64_t *ret_size)
{
	const struct symbol *symbol;

	for (size_t i = 0; i < ARRAY_SIZE(tables->symtabs); i++) {
		symbol = tables->symtabs[i] ? symtab_find(tables->symtabs[i], address) : NULL;
		if (!symbol)
			continue;
		*ret_start = symtab_start(tables->symtabs[i], symbol);
		*ret_size = symbol->size;
		return true;
	}
	return false;
}

/* "name" or "name+0x10" of an address, or NULL. */
static const char *name_address(struct annotation *annotation, const struct tables *tables,
				uint64_t address)
{
	char linkage[SYMTAB_NAME_MAX], plain[DEMANGLE_MAX], text[DEMANGLE_MAX + 24];
	const struct symbol *symbol;
	uint64_t offset;

	for (size_t i = 0; i < ARRAY_SIZE(tables->symtabs); i++) {
		const struct symtab *symtab = tables->symtabs[i];
		const struct debugfile *file = tables->files[i];

		symbol = symtab ? symtab_find(symtab, address) : NULL;
		if (!symbol || !symbol_is_named(symbol) ||
		    parser_name(annotation->parser, file->object, file->fd, symtab, symbol, linkage) < 0)
			continue;
		offset = address - symtab_start(symtab, symbol);
		snprintf(text, sizeof(text), offset ? "%s+%#" PRIx64 : "%s",
			 parser_demangle(annotation->parser, linkage, plain) ? linkage : plain, offset);
		return annotate_text(annotation, text);
	}
	return NULL;
}

static int take_line(struct annotation *annotation, void *ctx, uint32_t i,
		     const struct lines_frame *frames, uint32_t count, const char *strings)
{
	struct annotate_row *row = annotate_row(annotation, *(const size_t *)ctx + i);

	if (!count || !frames[0].line || !strings[frames[0].file])
		return 0;
	row->file = texts_intern(&annotation->hits.texts, strings + frames[0].file);
	row->line = frames[0].line;
	return row->file ? 0 : -E2BIG;
}

/* The source lines of a section's instructions, innermost ones. */
static int add_lines(struct annotation *annotation, const struct annotate_section *section)
{
	_cleanup_free_ uint64_t *addresses = calloc(section->count, sizeof(*addresses));
	size_t first = section->first;
	int r;

	if (!annotation->debug.object || !annotation->debug.with_dwarf)
		return 0;
	if (!addresses)
		return -E2BIG;
	for (size_t i = 0; i < section->count; i++)
		addresses[i] = annotate_row(annotation, first + i)->address;
	r = annotate_frames(annotation, addresses, (uint32_t)section->count, take_line, &first);
	return r == -E2BIG ? r : 0;
}

static int add_row(struct annotation *annotation, const struct tables *tables,
		   const struct annotate_section *section, const struct disassembly *code, uint32_t i)
{
	const struct instruction *instruction = &code->instructions[i];
	struct annotate_row row = {
		.address = instruction->address, .size = instruction->size,
		.text = annotate_text(annotation, code->strings + instruction->text),
	};

	memcpy(row.bytes, instruction->bytes, sizeof(row.bytes));
	if (instruction->target && instruction->target - section->start >= section->size)
		row.target = name_address(annotation, tables, instruction->target);
	return row.text && !buffer_append(&annotation->rows, &row, sizeof(row)) ? 0 : -E2BIG;
}

/* Each sample to the instruction that it is in. */
static void count_samples(struct annotation *annotation, struct annotate_section *section,
			  const struct code_hit *hits, size_t count)
{
	size_t i = 0;

	for (size_t k = 0; k < count; k++) {
		struct annotate_row *row = NULL;

		for (; i < section->count; i++) {
			row = annotate_row(annotation, section->first + i);
			if (hits[k].address - row->address < row->size)
				break;
		}
		if (i == section->count) {
			rows_sum(&annotation->outside, hits[k].hit->samples);
			continue;
		}
		rows_sum(&row->samples, hits[k].hit->samples);
		rows_sum(&row->weight, hits[k].hit->weight);
		annotation->next_hit[hits[k].chosen] = row->first_hit;
		row->first_hit = hits[k].chosen + 1;
		rows_sum(&section->weight, hits[k].hit->weight);
	}
}

/* The code of one function, and its samples. */
static int add_section(struct annotation *annotation, const struct tables *tables, uint64_t start,
		       uint64_t size, const struct code_hit *hits, size_t count)
{
	struct annotate_section section = {
		.start = start, .size = size, .first = annotate_row_count(annotation),
	};
	const struct debugfile *file = &annotation->code;
	struct disassembly code;
	int r;

	r = parser_instructions(annotation->parser, file->object, file->fd, start,
			(uint32_t)min_of(size, (uint64_t)DISASSEMBLE_BYTES_MAX),
			annotation->options->is_intel, &code);
	if (r < 0) {
		annotate_note(annotation, r == -EOPNOTSUPP ?
			      "%s is of an architecture that is not disassembled" :
			      "the code of %s cannot be read", file->object->path);
		for (size_t i = 0; i < count; i++)
			rows_sum(&annotation->outside, hits[i].hit->samples);
		return 0;
	}
	if (size > DISASSEMBLE_BYTES_MAX)
		annotate_note(annotation, "the first %u of its %" PRIu64 " bytes are shown",
			      (unsigned int)DISASSEMBLE_BYTES_MAX, size);
	for (uint32_t i = 0; !r && i < code.count; i++)
		r = add_row(annotation, tables, &section, &code, i);
	disassembly_free(&code);
	section.count = annotate_row_count(annotation) - section.first;
	r = r ?: add_lines(annotation, &section);
	if (r < 0)
		return r;
	count_samples(annotation, &section, hits, count);
	return buffer_append(&annotation->sections, &section, sizeof(section)) ? -E2BIG : 0;
}

/* Hits from @i on that are of one function, or near each other if nothing knows any. */
static size_t one_function(struct annotation *annotation, const struct tables *tables,
			   const struct code_hit *hits, size_t i, size_t count, uint64_t *ret_start,
			   uint64_t *ret_size)
{
	size_t next = i + 1;

	if (find_function(tables, hits[i].address, ret_start, ret_size)) {
		while (next < count && hits[next].address - *ret_start < *ret_size)
			next++;
		return next;
	}
	while (next < count && hits[next].address - hits[next - 1].address < NEAR)
		next++;
	*ret_start = hits[i].address;
	*ret_size = hits[next - 1].address - *ret_start + LAST_INSTRUCTION;
	annotate_note(annotation, "where it begins and ends is not known: from its first sample to its last");
	return next;
}

static int compare_sections(const void *a, const void *b)
{
	const struct annotate_section *x = a, *y = b;

	return (x->weight < y->weight) - (x->weight > y->weight) ?:
	       (x->start > y->start) - (x->start < y->start);
}

static bool has_lines(const struct annotation *annotation)
{
	for (size_t i = 0; annotation->places && i < annotation->count; i++)
		if (annotation->places[i].file)
			return true;
	return false;
}

/* Why there is no code; of a module, of which there never is any, why there are no lines in its place. */
static void note_absence(struct annotation *annotation)
{
	const struct debugfile *file = &annotation->code;

	if (!annotate_has_file(annotation->chosen[0]))
		return;
	if (!annotate_is_module(annotation->chosen[0]) || annotation->options->without_source) {
		annotate_note(annotation, "its code cannot be shown: %s",
			      file->note[0] ? file->note : "there is no file of this build");
		return;
	}
	if (annotation->debug.with_dwarf || has_lines(annotation))
		return;
	/* with a server that is asked, this was said */
	if (annotation->debuginfod && annotation->debug.note[0])
		annotate_note(annotation, "its lines cannot be shown");
	else
		annotate_note(annotation, "its lines cannot be shown: %s", annotation->debug.note[0] ?
			      annotation->debug.note : "there is no file of this build");
}

int annotate_code(struct annotation *annotation)
{
	_cleanup_free_ struct code_hit *hits = calloc(annotation->count, sizeof(*hits));
	_cleanup_(free_tables) struct tables tables = { 0 };
	uint64_t start, size;
	size_t count = 0;
	int r = 0;

	if (!hits)
		return -E2BIG;
	if (!annotation->code.object) {
		note_absence(annotation);
		return -ENOENT;
	}
	annotation->outside = 0;
	for (size_t i = 0; i < annotation->count; i++) {
		const struct hit *hit = annotation->chosen[i];

		if (annotate_address(&annotation->code, hit, &hits[count].address)) {
			hits[count].chosen = (uint32_t)i;
			hits[count++].hit = hit;
		} else {
			rows_sum(&annotation->outside, hit->samples);
		}
	}
	qsort(hits, count, sizeof(*hits), by_address);
	read_tables(annotation, &tables);
	for (size_t i = 0, next; !r && i < count; i = next) {
		next = one_function(annotation, &tables, hits, i, count, &start, &size);
		r = add_section(annotation, &tables, start, size, hits + i, next - i);
	}
	if (r < 0)
		return r;
	qsort(annotation->sections.data, annotate_section_count(annotation),
	      sizeof(struct annotate_section), compare_sections);
	return annotate_section_count(annotation) ? 0 : -ENOENT;
}
