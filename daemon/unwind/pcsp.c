// SPDX-License-Identifier: Apache-2.0
#include "unwind/pcsp.h"

#include <string.h>

#include "unwind/rule.h"

enum {
	ALIGNMENT = 64,
	CLOCK_EVERY = 4096,	/* runs or functions between two looks at the deadline: what is in memory has none */
};

static bool is_late(struct pcsp *pcsp)
{
	return pcsp->runs++ % CLOCK_EVERY == 0 && elf_is_late(pcsp->pclntab.elf);
}

/*
 * The rule where the stack pointer is @distance below its place at entry. The return address is
 * above the frame (x86) or at its lower end (arm64), where it is stored. That fp stays the same is not so; but the walk
 * stays by rules that do not ask for it as long as it is in Go's code, and then fp is below the
 * stack pointer, which no step by the frame pointer accepts.
 */
static struct unwind_rule rule_of(const struct machine *machine, int32_t distance, bool is_stored)
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
	if (!bytes || !is_stored) {
		rule.ra = UNWIND_VALUE | machine->ra;
		rule.ra_offset = 0;
	}
	return rule;
}

/* Rows of @run in [@start, @end): others where the link register is stored in the middle of it, and where no frame is left. */
static int add_rows(struct builder *builder, const struct pclntab_run *run, const struct go_stack_function *known,
		    uint64_t start, uint64_t end)
{
	const uint64_t again = max_of(start, known->again);
	struct unwind_rule rule;
	int r = 0;

	if (start < again) {
		rule = rule_of(builder->machine, run->value, start >= known->saved);
		r = builder_row(builder, start, &rule);
	}
	if (r == 0 && start < known->saved && known->saved < min_of(again, end)) {
		rule = rule_of(builder->machine, run->value, true);
		r = builder_row(builder, known->saved, &rule);
	}
	if (r == 0 && again < min_of(known->behind, end)) {
		rule = rule_of(builder->machine, 0, true);
		r = builder_row(builder, again, &rule);
	}
	if (r < 0 || known->behind >= end)
		return r;
	rule = rule_special(UNWIND_NO_RULE);
	return builder_row(builder, max_of(start, known->behind), &rule);
}

/* Rows of one function, [@start, @end) of it. */
static int run(struct pcsp *pcsp, struct builder *builder, const struct pclntab_function *function, uint64_t entry,
	       const struct go_stack_function *known, uint64_t start, uint64_t end)
{
	struct pclntab *pclntab = &pcsp->pclntab;
	struct pclntab_run run;
	struct unwind_rule rule;
	uint64_t at = entry;
	int r;

	pclntab_values(pclntab, function->distances, entry, &run);
	while (at < end) {
		if (is_late(pcsp))
			return -ETIME;
		r = pclntab_next(pclntab, &run);
		/* broken: nothing is known of the rest */
		if (r == 0 || r == -EBADMSG)
			break;
		if (r < 0)
			return r;
		at = min_of(run.end, end);
		if (at <= start)
			continue;
		r = add_rows(builder, &run, known, max_of(run.start, start), at);
		if (r < 0)
			return r;
	}
	/* what aligns the next function; one of which nothing is known has no other's rule */
	if (at > entry && end - at < ALIGNMENT)
		return 0;
	rule = rule_special(UNWIND_UNCOVERED);
	return builder_row(builder, max_of(at, start), &rule);
}

/* [@start, @end) of the function that takes up [@entry, @next). */
static int fill_function(struct pcsp *pcsp, struct builder *builder, uint32_t description, uint64_t entry, uint64_t next,
			 uint64_t start, uint64_t end)
{
	struct pclntab *pclntab = &pcsp->pclntab;
	struct pclntab_function function;
	struct go_stack_function known;
	struct unwind_rule rule = rule_special(UNWIND_UNCOVERED);
	int r = pclntab_describe(pclntab, description, &function);

	/* of nothing at all: C, which Go's linker has put in */
	if (r == 0 && (function.distances || function.flags))
		r = go_stack_get(&pcsp->stack, &function, entry, next, &known);
	else if (r == 0)
		return builder_row(builder, start, &rule);
	if (r == 0 && known.kind == GO_STACK_ENDS)
		rule = rule_special(UNWIND_END);
	else if (r == 0 && known.kind == GO_STACK_LEAVES)
		rule = rule_special(UNWIND_NO_RULE);
	else if (r == 0 && function.distances)
		return run(pcsp, builder, &function, entry, &known, start, end);
	/* a broken description is no reason to do without the others */
	if (r < 0 && r != -EBADMSG)
		return r;
	return builder_row(builder, start, &rule);
}

bool pcsp_find(struct pcsp *pcsp, const struct elf *elf, uint64_t *ret_start, uint64_t *ret_end)
{
	struct pclntab *pclntab = &pcsp->pclntab;
	uint32_t at;

	*ret_start = *ret_end = UINT64_MAX;
	pcsp->next = 0;
	pcsp->done = 0;
	pcsp->runs = 0;
	pclntab_find(elf, pclntab);
	if (!pclntab->section || !go_stack_init(&pcsp->stack, pclntab))
		return false;
	if (pclntab_entry(pclntab, 0, ret_start, &at) < 0 ||
	    pclntab_entry(pclntab, pclntab->count, ret_end, &at) < 0 || *ret_end < *ret_start)
		*ret_start = *ret_end = UINT64_MAX;
	return true;
}

int pcsp_fill(struct pcsp *pcsp, struct builder *builder, uint64_t start, uint64_t end)
{
	struct pclntab *pclntab = &pcsp->pclntab;
	struct unwind_rule uncovered = rule_special(UNWIND_UNCOVERED);
	uint64_t entry, next;
	uint32_t at, unused;
	int r;

	/* another pass */
	if (start < pcsp->done)
		pcsp->next = 0;
	pcsp->done = end;
	r = builder_row(builder, start, &uncovered);
	for (; r == 0 && pcsp->next < pclntab->count; pcsp->next++) {
		if (is_late(pcsp))
			return -ETIME;
		r = pclntab_entry(pclntab, pcsp->next, &entry, &at);
		if (r == 0)
			r = pclntab_entry(pclntab, pcsp->next + 1, &next, &unused);
		if (r < 0 || entry >= end || next < entry)
			break;
		if (next <= start || next == entry)
			continue;
		r = fill_function(pcsp, builder, at, entry, next, max_of(start, entry), min_of(next, end));
		start = min_of(next, end);
		/* the rest of it may lie behind a frame entry */
		if (next > end)
			break;
	}
	return r == -EBADMSG ? 0 : r;
}

int pcsp_each(struct pcsp *pcsp, void (*see)(void *ctx, uint64_t number), void *ctx)
{
	struct pclntab *pclntab = &pcsp->pclntab;
	struct pclntab_function function;
	struct go_stack_function known;
	uint64_t entry, next;
	uint32_t at, unused;
	int r = 0;

	if (!go_stack_reads_code(&pcsp->stack))
		return 0;
	for (uint32_t i = 0; (r == 0 || r == -EBADMSG) && i < pclntab->count; i++) {
		if (is_late(pcsp))
			return -ETIME;
		r = pclntab_entry(pclntab, i, &entry, &at);
		if (r == 0)
			r = pclntab_entry(pclntab, i + 1, &next, &unused);
		if (r == 0)
			r = pclntab_describe(pclntab, at, &function);
		/* functions are in order, as those that have rules have to be */
		if (r == 0 && next < entry)
			break;
		if (r == 0 && next > entry && function.distances)
			r = go_stack_get(&pcsp->stack, &function, entry, next, &known);
		else
			continue;
		if (r == 0) {
			see(ctx, (uint64_t)known.kind);
			see(ctx, known.saved);
			see(ctx, known.again);
			see(ctx, known.behind);
		}
	}
	return r == -EBADMSG ? 0 : r;
}
