// SPDX-License-Identifier: Apache-2.0
#include "unwind/pcsp.h"

#include <string.h>

#include "unwind/rule.h"

enum {
	FLAG_TOP = 1,		/* nothing called it: goexit, mstart, signal handlers */
	FLAG_SP_WRITE = 2,	/* it goes to another stack */
	NAME_BYTES = 32,
	ALIGNMENT = 64,
	CLOCK_EVERY = 4096,	/* runs or functions between two looks at the deadline: what is in memory has none */
};

static bool is_late(struct pcsp *pcsp)
{
	return pcsp->runs++ % CLOCK_EVERY == 0 && elf_is_late(pcsp->pclntab.elf);
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

	if (pclntab_text(pclntab, pclntab->names + name, found, sizeof(found)) < 0)
		return false;
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

/* Rows of one function, [@start, @end) of it. */
static int run(struct pcsp *pcsp, struct builder *builder,
	       const struct pclntab_function *function, uint64_t entry, uint64_t start, uint64_t end)
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
		rule = rule_of(builder->machine, run.value);
		r = builder_row(builder, max_of(run.start, start), &rule);
		if (r < 0)
			return r;
	}
	/* what aligns the next function; one of which nothing is known has no other's rule */
	if (at > entry && end - at < ALIGNMENT)
		return 0;
	rule = rule_special(UNWIND_UNCOVERED);
	return builder_row(builder, max_of(at, start), &rule);
}

static int fill_function(struct pcsp *pcsp, struct builder *builder, uint32_t description,
			 uint64_t entry, uint64_t start, uint64_t end)
{
	struct pclntab *pclntab = &pcsp->pclntab;
	struct pclntab_function function;
	struct unwind_rule rule = rule_special(UNWIND_UNCOVERED);
	int r = pclntab_describe(pclntab, description, &function);

	if (r == 0 && function.flags & FLAG_TOP)
		rule = rule_special(UNWIND_END);
	else if (r == 0 && function.flags & FLAG_SP_WRITE)
		rule = rule_special(is_switch(pclntab, function.name) ? UNWIND_END :
									UNWIND_NO_RULE);
	else if (r == 0 && function.distances)
		return run(pcsp, builder, &function, entry, start, end);
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
	if (!pclntab->section || !pclntab->has_rules)
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
		r = fill_function(pcsp, builder, at, entry, max_of(start, entry),
				  min_of(next, end));
		start = min_of(next, end);
		/* the rest of it may lie behind a frame entry */
		if (next > end)
			break;
	}
	return r == -EBADMSG ? 0 : r;
}
