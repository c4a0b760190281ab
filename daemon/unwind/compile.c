// SPDX-License-Identifier: Apache-2.0
#include "unwind/compile.h"

#include <string.h>

#include "base/clock.h"
#include "unwind/frames.h"
#include "unwind/gap.h"
#include "unwind/rule.h"

enum {
	FDES_FIRST = 1024,
	CLOCK_EVERY = 4096,	/* frame entries between two looks at the deadline */
};

/* A frame entry of either section, to be sorted; it is parsed again when it is its turn. */
struct place {
	uint64_t start;
	uint32_t size;
	uint32_t at : 31;
	uint32_t is_debug : 1;
};

struct compiler {
	const struct elf *elf;
	struct builder builder;
	struct gaps gaps;
	struct object_segment *segments;
	size_t segment_count;
	struct cfi_section eh, debug;
	struct place *places;
	size_t count, capacity;
	uint64_t limit;		/* where the current frame entry ends at the latest */
	struct compile_stats *stats;
};

/* The executable segment that holds @address, or NULL. */
static const struct object_segment *segment_of(const struct compiler *compiler, uint64_t address)
{
	for (size_t i = 0; i < compiler->segment_count; i++)
		if (address - compiler->segments[i].vaddr < compiler->segments[i].size)
			return &compiler->segments[i];
	return NULL;
}

static int add_place(struct compiler *compiler, struct place place)
{
	size_t capacity = compiler->capacity ? 2 * compiler->capacity : FDES_FIRST;
	struct place *grown;

	if (compiler->count == compiler->capacity) {
		grown = builder_alloc(&compiler->builder, capacity * sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		if (compiler->count)
			memcpy(grown, compiler->places, compiler->count * sizeof(*grown));
		builder_free(&compiler->builder, compiler->places,
			     compiler->capacity * sizeof(*grown));
		compiler->places = grown;
		compiler->capacity = capacity;
	}
	compiler->places[compiler->count++] = place;
	return 0;
}

static int compare_places(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->at < y->at ? -1 : x->at > y->at;
}

static void sort_places(struct compiler *compiler)
{
	for (size_t i = 1; i < compiler->count; i++)
		if (compiler->places[i - 1].start > compiler->places[i].start) {
			qsort(compiler->places, compiler->count, sizeof(*compiler->places),
			      compare_places);
			return;
		}
}

/* Does one of the first @count places, which are sorted, cover part of [@start, @end)? */
static bool is_taken(const struct compiler *compiler, size_t count, uint64_t start, uint64_t end)
{
	size_t first = 0, last = count;

	while (first < last) {
		size_t middle = first + (last - first) / 2;

		if (compiler->places[middle].start < end)
			first = middle + 1;
		else
			last = middle;
	}
	return first > 0 &&
	       compiler->places[first - 1].start + compiler->places[first - 1].size > start;
}

static bool is_late(const struct compiler *compiler)
{
	return compiler->elf->deadline && clock_monotonic() > compiler->elf->deadline;
}

static int collect(struct compiler *compiler, struct cfi_section *section)
{
	size_t offset = 0, at, before = compiler->count;
	struct cfi_fde fde;
	int r = 0;

	while (r == 0 && cfi_next(section, &offset, &at, &fde)) {
		uint64_t size = fde.end - fde.start;

		/* sections that the linker dropped leave entries for address 0 behind */
		if (size > UINT32_MAX || !segment_of(compiler, fde.start) ||
		    fde.start % (1U << compiler->builder.machine->shift) ||
		    (section->is_debug && is_taken(compiler, before, fde.start, fde.end)))
			continue;
		if (compiler->count % CLOCK_EVERY == 0 && is_late(compiler))
			return -ETIME;
		r = add_place(compiler, (struct place){
			.start = fde.start,
			.size = (uint32_t)size,
			.at = (uint32_t)at & 0x7fffffff,
			.is_debug = section->is_debug,
		});
	}
	sort_places(compiler);
	return r;
}

static int take_row(void *ctx, const struct cfi_fde *fde, uint64_t address,
		    const struct cfi_state *state)
{
	struct compiler *compiler = ctx;
	struct unwind_rule rule;

	/* 1: no more of this entry */
	if (address >= compiler->limit)
		return 1;
	rule = rule_from_state(compiler->builder.machine, state, fde->cie->is_signal);
	return builder_row(&compiler->builder, address, &rule);
}

static int run_place(struct compiler *compiler, const struct place *place, uint64_t limit)
{
	struct cfi_section *section = place->is_debug ? &compiler->debug : &compiler->eh;
	size_t offset = place->at, at;
	struct cfi_fde fde;
	int r;

	/* the bytes are in memory and have not changed: the same entry as before */
	if (!cfi_next(section, &offset, &at, &fde))
		return 0;
	compiler->limit = limit;
	r = cfi_run(section, &fde, take_row, compiler);
	return r < 0 ? r : 0;
}

/* [@start, @end) has no frame entry; it may lie in several segments, or beyond all. */
static int leave_gap(struct compiler *compiler, uint64_t start, uint64_t end)
{
	return gaps_fill(&compiler->gaps, &compiler->builder, start, end);
}

static int run_places(struct compiler *compiler)
{
	const struct object_segment *last = &compiler->segments[compiler->segment_count - 1];
	uint64_t end = compiler->segments[0].vaddr;
	int r = 0;

	for (size_t i = 0; r == 0 && i < compiler->count; i++) {
		const struct place *place = &compiler->places[i];
		const struct object_segment *segment = segment_of(compiler, place->start);
		uint64_t limit = min_of(place->start + place->size,
					segment->vaddr + segment->size);

		if (i % CLOCK_EVERY == 0 && is_late(compiler))
			return -ETIME;
		if (i + 1 < compiler->count)
			limit = min_of(limit, compiler->places[i + 1].start);
		if (limit <= place->start)
			continue;
		if (place->start > end)
			r = leave_gap(compiler, end, place->start);
		if (r == 0)
			r = run_place(compiler, place, limit);
		end = limit;
		compiler->stats->fdes++;
	}
	return r ? r : leave_gap(compiler, end, last->vaddr + last->size);
}

/* Of segment bytes: how many have a rule, and how many information that rules cannot express. */
static void count_bytes(struct compiler *compiler)
{
	const struct builder *builder = &compiler->builder;
	struct compile_stats *stats = compiler->stats;

	for (size_t i = 0; i < compiler->segment_count; i++)
		stats->text_bytes += compiler->segments[i].size;
	for (size_t i = 0; i + 1 < builder->count; i++) {
		uint64_t bytes = (uint64_t)(builder->units[i + 1] - builder->units[i])
				 << builder->machine->shift;
		const struct unwind_rule *rule = &builder->rules[builder->numbers[i]];

		if (rule->cfa == UNWIND_NO_RULE)
			stats->no_rule_bytes += bytes;
		else if (rule->cfa != UNWIND_UNCOVERED)
			stats->covered_bytes += bytes;
	}
}

static int compile(struct compiler *compiler, void **ret_data, size_t *ret_size)
{
	struct builder *builder = &compiler->builder;
	int r;

	r = frames_read_eh(compiler->elf, builder, &compiler->eh);
	if (r == 0)
		r = frames_read_debug(compiler->elf, builder, &compiler->debug);
	if (r < 0)
		return r;
	if (!compiler->eh.size && !compiler->debug.size)
		return -ENODATA;
	compiler->stats->eh_bytes = compiler->eh.size;
	compiler->stats->debug_bytes = compiler->debug.size;
	gaps_find(compiler->elf, builder->machine, &compiler->gaps);
	r = collect(compiler, &compiler->eh);
	if (r == 0)
		r = collect(compiler, &compiler->debug);
	if (r == 0)
		r = run_places(compiler);
	if (r < 0)
		return r;
	count_bytes(compiler);
	compiler->stats->memory = builder->memory;
	return builder_finish(builder, ret_data, ret_size);
}

int compile_elf(const struct elf *elf, size_t memory_limit, void **ret_data, size_t *ret_size,
		struct compile_stats *ret_stats)
{
	const struct machine *machine = elf->is_64 ? machine_find(elf->machine) : NULL;
	_cleanup_free_ struct object_segment *segments = NULL;
	_cleanup_free_ struct compiler *compiler = NULL;
	int r;

	if (!machine || (elf->type != ET_EXEC && elf->type != ET_DYN))
		return -ENOTSUP;
	*ret_stats = (struct compile_stats){ 0 };
	/* the remembered common entries make it too large for a stack */
	compiler = calloc(1, sizeof(*compiler));
	if (!compiler)
		return -ENOMEM;
	compiler->elf = elf;
	compiler->stats = ret_stats;
	r = elf_segments(elf, &segments, &compiler->segment_count);
	if (r < 0)
		return r;
	compiler->segments = segments;
	r = builder_init(&compiler->builder, machine, segments[0].vaddr, memory_limit);
	if (r == 0)
		r = compile(compiler, ret_data, ret_size);
	frames_free(&compiler->builder, &compiler->eh);
	frames_free(&compiler->builder, &compiler->debug);
	builder_free(&compiler->builder, compiler->places,
		     compiler->capacity * sizeof(*compiler->places));
	builder_done(&compiler->builder);
	return r;
}
