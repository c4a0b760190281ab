// SPDX-License-Identifier: Apache-2.0
#include "unwind/compile.h"

#include <string.h>

#include "base/clock.h"
#include "unwind/frames.h"
#include "unwind/gap.h"
#include "unwind/pcsp.h"
#include "unwind/rule.h"

enum {
	FDES_FIRST = 1024,
	CLOCK_EVERY = 4096,	/* frame entries or rows between two looks at the deadline */
	SPREAD_BYTES = 64 << 20,
	SPREAD_FACTOR = 16,
};

struct compiler {
	const struct elf *elf;
	struct builder builder;
	struct gaps gaps;
	struct pcsp pcsp;
	uint64_t go_start, go_end;	/* what it is about */
	struct object_segment *segments;
	size_t segment_count;
	struct cfi_section eh, debug;
	/* frame entries: unit of the start, which section, offset there; sorted, .eh_frame first */
	uint64_t *places;
	size_t count, capacity;
	uint64_t limit;		/* where the current frame entry ends at the latest */
	uint64_t padding;	/* bytes before it that get its first rule */
	const struct gap *clone;	/* in it, and not passed yet */
	struct unwind_rule last;	/* of its rows so far */
	int32_t last_saved;
	uint64_t rows;		/* so far, in all passes */
	struct compile_stats *stats;
};

static uint64_t place_make(uint64_t unit, bool is_debug, size_t at)
{
	return unit << 32 | (uint64_t)is_debug << 31 | at;
}

static bool place_is_debug(uint64_t place)
{
	return place >> 31 & 1;
}

static size_t place_at(uint64_t place)
{
	return place & 0x7fffffff;
}

static uint64_t place_start(const struct compiler *compiler, uint64_t place)
{
	return compiler->builder.start + ((place >> 32) << compiler->builder.machine->shift);
}

/* The executable segment that holds @address, or NULL. */
static const struct object_segment *segment_of(const struct compiler *compiler, uint64_t address)
{
	for (size_t i = 0; i < compiler->segment_count; i++)
		if (address - compiler->segments[i].vaddr < compiler->segments[i].size)
			return &compiler->segments[i];
	return NULL;
}

static int add_place(struct compiler *compiler, uint64_t place)
{
	size_t old = compiler->capacity, new = old ? old + old / 2 : FDES_FIRST;
	uint64_t *grown;

	if (compiler->count == old) {
		grown = builder_alloc(&compiler->builder, new * sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		if (compiler->count)
			memcpy(grown, compiler->places, compiler->count * sizeof(*grown));
		builder_free(&compiler->builder, compiler->places, old * sizeof(*grown));
		compiler->places = grown;
		compiler->capacity = new;
	}
	compiler->places[compiler->count++] = place;
	return 0;
}

static int compare_places(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static void sort_places(struct compiler *compiler)
{
	for (size_t i = 1; i < compiler->count; i++)
		if (compiler->places[i - 1] > compiler->places[i]) {
			qsort(compiler->places, compiler->count, sizeof(*compiler->places),
			      compare_places);
			return;
		}
}

static int collect(struct compiler *compiler, struct cfi_section *section)
{
	unsigned int shift = compiler->builder.machine->shift;
	size_t offset = 0, at;
	struct cfi_fde fde;
	int r = 0;

	while (r == 0 && cfi_next(section, &offset, &at, &fde)) {
		uint64_t unit = (fde.start - compiler->builder.start) >> shift;

		/* sections that the linker dropped leave entries for address 0 behind */
		if (!segment_of(compiler, fde.start) || unit > UINT32_MAX ||
		    fde.start % (1U << shift))
			continue;
		if (compiler->count % CLOCK_EVERY == 0 && elf_is_late(compiler->elf))
			return -ETIME;
		r = add_place(compiler, place_make(unit, section->is_debug, at));
	}
	return r ? r : section->error;
}

/* The end of stacks where threads begin, and behind it what the frame entry says last before @address. */
static int pass_clone(struct compiler *compiler, uint64_t address)
{
	const struct unwind_rule end = { .cfa = UNWIND_END };
	const struct gap *clone = compiler->clone;
	int r = builder_row(&compiler->builder, clone->start, &end);

	compiler->clone = NULL;
	if (r < 0 || address <= clone->end)
		return r;
	return builder_row_saved(&compiler->builder, clone->end, &compiler->last, compiler->last_saved);
}

static int take_row(void *ctx, const struct cfi_fde *fde, uint64_t address,
		    const struct cfi_state *state)
{
	struct compiler *compiler = ctx;
	struct unwind_rule rule;

	/* 1: no more of this entry */
	if (address >= compiler->limit)
		return 1;
	/* rules that are made to collide cost much, and an entry may have thousands of them */
	if (++compiler->rows % CLOCK_EVERY == 0 && elf_is_late(compiler->elf))
		return -ETIME;
	rule = rule_from_state(compiler->builder.machine, state, fde->cie->is_signal);
	gaps_correct(&compiler->gaps, fde->start, &rule);
	if (fde->start == compiler->gaps.context_start)
		rule = (struct unwind_rule){ .cfa = UNWIND_NO_RULE };
	if (compiler->clone && address >= compiler->clone->end) {
		int r = pass_clone(compiler, address);

		if (r < 0)
			return r;
	}
	compiler->last = rule;
	compiler->last_saved = rule_saved(state, &rule);
	if (compiler->clone && address >= compiler->clone->start)
		return 0;
	if (address == fde->start)
		address -= compiler->padding;
	return builder_row_saved(&compiler->builder, address, &rule, compiler->last_saved);
}

/* The start of the entry behind place @i that cuts it off, or UINT64_MAX. */
static uint64_t next_start(const struct compiler *compiler, size_t i)
{
	bool is_debug = place_is_debug(compiler->places[i]);

	/* .debug_frame does not cut .eh_frame */
	for (size_t next = i + 1; next < compiler->count; next++)
		if (is_debug || !place_is_debug(compiler->places[next]))
			return place_start(compiler, compiler->places[next]);
	return UINT64_MAX;
}

/* Rows for [@start, @end), which no frame entry covers. */
static int fill(struct compiler *compiler, uint64_t start, uint64_t end)
{
	uint64_t go_start = max_of(start, compiler->go_start);
	uint64_t go_end = min_of(end, compiler->go_end);
	int r;

	if (go_start >= go_end)
		return gaps_fill(&compiler->gaps, &compiler->builder, start, end);
	r = gaps_fill(&compiler->gaps, &compiler->builder, start, go_start);
	if (r == 0)
		r = pcsp_fill(&compiler->pcsp, &compiler->builder, go_start, go_end);
	if (r == 0 && go_end < end)
		r = gaps_fill(&compiler->gaps, &compiler->builder, go_end, end);
	return r;
}

/* One frame entry, with what lies between *@end, where the one before ended, and its start. */
static int run_place(struct compiler *compiler, size_t i, uint64_t *end)
{
	uint64_t place = compiler->places[i];
	struct cfi_section *section = place_is_debug(place) ? &compiler->debug : &compiler->eh;
	const struct object_segment *segment;
	size_t offset = place_at(place), at;
	struct cfi_fde fde;
	int r = 0;

	if (!cfi_next(section, &offset, &at, &fde))
		return section->error ? section->error : -ESTALE;
	segment = segment_of(compiler, fde.start);
	/* the file was another one when it was read first */
	if (fde.start != place_start(compiler, place) || !segment)
		return -ESTALE;
	if (fde.start < *end)
		return 0;
	compiler->limit = min_of(fde.end, segment->vaddr + segment->size);
	compiler->limit = min_of(compiler->limit, next_start(compiler, i));
	if (compiler->limit <= fde.start)
		return 0;
	compiler->padding = 0;
	if (!gaps_is_padding(&compiler->gaps, *end, fde.start))
		r = fill(compiler, *end, fde.start);
	else if (fde.start != compiler->gaps.context_start || fde.start == *end)
		compiler->padding = fde.start - *end;
	else
		r = builder_row(&compiler->builder, *end,
				&(struct unwind_rule){ .cfa = UNWIND_END });
	compiler->clone = gaps_clone(&compiler->gaps, fde.start, compiler->limit);
	if (r == 0)
		r = cfi_run(section, &fde, take_row, compiler);
	if (r >= 0 && compiler->clone)
		r = pass_clone(compiler, compiler->limit);
	*end = compiler->limit;
	compiler->stats->fdes++;
	return r < 0 ? r : 0;
}

/* All rows, in ascending order. */
static int run_places(struct compiler *compiler)
{
	const struct object_segment *last = &compiler->segments[compiler->segment_count - 1];
	uint64_t end = compiler->segments[0].vaddr;
	int r = 0;

	compiler->stats->fdes = 0;
	for (size_t i = 0; r == 0 && i < compiler->count; i++) {
		if (i % CLOCK_EVERY == 0 && elf_is_late(compiler->elf))
			return -ETIME;
		r = run_place(compiler, i, &end);
	}
	if (r < 0)
		return r;
	return fill(compiler, end, last->vaddr + last->size);
}

static int compile(struct compiler *compiler, void **ret_data, size_t *ret_size)
{
	struct builder *builder = &compiler->builder;
	struct compile_stats *stats = compiler->stats;
	bool has_go;
	int r;

	frames_find_eh(compiler->elf, builder->machine, &compiler->eh);
	r = frames_find_debug(compiler->elf, builder, &compiler->debug);
	/* what is broken there takes nothing from .eh_frame */
	if (r == -ENOMEM || (r < 0 && !compiler->eh.size))
		return r;
	gaps_find(compiler->elf, builder->machine, &compiler->gaps);
	has_go = pcsp_find(&compiler->pcsp, compiler->elf, &compiler->go_start, &compiler->go_end);
	/* some vDSOs have a trampoline and nothing else to go by */
	if (!compiler->eh.size && !compiler->debug.size && !compiler->gaps.count && !has_go)
		return -ENODATA;
	stats->eh_bytes = compiler->eh.size;
	stats->debug_bytes = compiler->debug.size;
	for (size_t i = 0; i < compiler->segment_count; i++)
		stats->text_bytes += compiler->segments[i].size;
	r = collect(compiler, &compiler->eh);
	if (r == 0)
		r = collect(compiler, &compiler->debug);
	if (r < 0)
		return r;
	sort_places(compiler);
	r = run_places(compiler);
	if (r == 0 && builder->wants_saved) {
		r = builder_with_saved(builder);
		if (r == 0)
			r = run_places(compiler);
	}
	if (r == 0)
		r = builder_plan(builder);
	if (r == 0)
		r = run_places(compiler);
	if (r < 0)
		return r;
	stats->covered_bytes = builder->cover.covered;
	stats->no_rule_bytes = builder->cover.no_rule;
	return builder_finish(builder, ret_data, ret_size);
}

/*
 * Only code that the file holds counts, and segments that lie far apart for what they hold are
 * refused: a table has eight bytes for each 65,536 instruction units between them, 512 KiB at most, and a
 * file of a page is not to take that from the memory that all tables share.
 */
static int take_segments(struct compiler *compiler)
{
	uint64_t bytes = 0, start, end;
	size_t count = 0;

	for (size_t i = 0; i < compiler->segment_count; i++) {
		struct object_segment segment = compiler->segments[i];

		/* the upper half of the addresses is the kernel's */
		if (segment.offset >= compiler->elf->size || segment.vaddr > INT64_MAX)
			continue;
		segment.size = min_of(segment.size, compiler->elf->size - segment.offset);
		bytes += segment.size;
		compiler->segments[count++] = segment;
	}
	compiler->segment_count = count;
	if (count == 0)
		return -ENODATA;
	start = compiler->segments[0].vaddr;
	end = compiler->segments[count - 1].vaddr + compiler->segments[count - 1].size;
	return end - start > SPREAD_BYTES + SPREAD_FACTOR * bytes ? -EFBIG : 0;
}

int compile_elf(const struct elf *elf, size_t memory_limit, void **ret_data, size_t *ret_size,
		struct compile_stats *ret_stats)
{
	const struct machine *machine = elf->is_64 ? machine_find(elf->machine) : NULL;
	const uint64_t began = clock_monotonic();
	_cleanup_free_ struct object_segment *segments = NULL;
	_cleanup_free_ struct compiler *compiler = NULL;
	int r;

	if (!machine || (elf->type != ET_EXEC && elf->type != ET_DYN))
		return -ENOTSUP;
	*ret_stats = (struct compile_stats){ 0 };
	/* with its windows too large for a stack */
	if (memory_limit < sizeof(*compiler))
		return -ENOMEM;
	compiler = calloc(1, sizeof(*compiler));
	if (!compiler)
		return -ENOMEM;
	compiler->elf = elf;
	compiler->stats = ret_stats;
	r = elf_segments(elf, &segments, &compiler->segment_count);
	if (r < 0)
		return r;
	compiler->segments = segments;
	r = take_segments(compiler);
	if (r < 0)
		return r;
	r = builder_init(&compiler->builder, machine, segments[0].vaddr,
			 memory_limit - sizeof(*compiler));
	if (r == 0)
		r = compile(compiler, ret_data, ret_size);
	ret_stats->memory = compiler->builder.memory_peak + sizeof(*compiler);
	frames_free(&compiler->builder, &compiler->debug);
	builder_free(&compiler->builder, compiler->places,
		     compiler->capacity * sizeof(*compiler->places));
	builder_done(&compiler->builder);
	ret_stats->ns = clock_monotonic() - began;
	return r;
}
