// SPDX-License-Identifier: Apache-2.0
#include "symbol/dwarf_calls.h"

#include <dwarf.h>

#include "base/clock.h"
#include "symbol/dwarf_ranges.h"

enum { ENTRIES_PER_LOOK = 1024 };	/* at the clock */

struct walk {
	const struct dwarf_unit *unit;
	const uint64_t *addresses;
	uint32_t count;
	uint64_t deadline;
	uint32_t entries;		/* since the last look at the clock */
	struct dwarf_calls *calls;
	uint32_t at, depth;		/* of the entry at hand */
	bool is_function;		/* not inlined */
	bool has_code;			/* that the linker kept */
};

static int look_at_clock(struct walk *walk)
{
	if (++walk->entries < ENTRIES_PER_LOOK)
		return 0;
	walk->entries = 0;
	return clock_monotonic() > walk->deadline ? -ETIME : 0;
}

/* The first address at or above @low. */
static uint32_t first_from(const struct walk *walk, uint64_t low)
{
	uint32_t begin = 0, end = walk->count;

	while (begin < end) {
		const uint32_t middle = begin + (end - begin) / 2;

		if (walk->addresses[middle] < low)
			begin = middle + 1;
		else
			end = middle;
	}
	return begin;
}

static int add_call(struct walk *walk, uint32_t i)
{
	struct dwarf_calls *calls = walk->calls;
	uint32_t outer = walk->is_function ? DWARF_NO_CALL : calls->innermost[i];

	if (calls->count == calls->room) {
		const uint32_t room = calls->room ? 2 * calls->room : 1024;
		struct dwarf_call *grown = reallocarray(calls->calls, room, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		calls->calls = grown;
		calls->room = room;
	}
	/* of two beside each other that both claim it, the later one */
	while (outer != DWARF_NO_CALL && calls->calls[outer].depth >= walk->depth)
		outer = calls->calls[outer].outer;
	calls->calls[calls->count] = (struct dwarf_call){ .at = walk->at, .depth = walk->depth, .outer = outer };
	calls->innermost[i] = calls->count++;
	return 0;
}

static int take_range(void *ctx, uint64_t low, uint64_t high)
{
	struct walk *walk = ctx;
	int r = look_at_clock(walk);
	uint32_t i = first_from(walk, low);

	/* what the linker dropped has ranges that begin at 0 and are as long as it was */
	if (!dwarf_is_code(walk->unit->linked, low))
		return r;
	walk->has_code = walk->calls->has_code = true;
	if (i == walk->count || walk->addresses[i] >= high)
		return r;
	for (; !r && i < walk->count && walk->addresses[i] < high; i++)
		r = add_call(walk, i);
	return r;
}

static bool holds_code(uint16_t tag)
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

/* Behind what is in the entry: where its sibling is, if it says so. */
static int leave(const struct walk *walk, const struct dwarf_entry *entry, const struct dwarf_facts *facts,
		 uint32_t *ret_at)
{
	const bool is_inside = facts && facts->sibling.form && facts->sibling.form != DW_FORM_ref_addr;
	const uint64_t sibling = is_inside ? facts->sibling.number : 0;

	if (sibling <= entry->next || sibling >= walk->unit->header.size)
		return dwarf_entry_behind(walk->unit, entry, ret_at);
	*ret_at = (uint32_t)sibling;
	return 0;
}

/* Does it have code that is asked for, here or in what it has inside? */
static int look_at(struct walk *walk, const struct dwarf_entry *entry, struct dwarf_facts *facts, uint32_t depth,
		   bool *ret_enter)
{
	const uint32_t before = walk->calls->count;
	int r = dwarf_entry_facts(walk->unit, entry, facts);

	if (r < 0)
		return r;
	walk->at = entry->at;
	walk->depth = depth;
	walk->is_function = entry->tag == DW_TAG_subprogram;
	walk->has_code = false;
	r = dwarf_ranges(walk->unit, facts, take_range, walk);
	/*
	 * A function without code is a declaration, or what is inlined elsewhere; others are not nested in C, but elsewhere.
	 * What was inlined into one that was dropped may have ranges that look like code of others.
	 */
	*ret_enter = walk->has_code && (walk->is_function || walk->calls->count > before);
	return r < 0 ? r : 0;
}

/* Entries from *@at on, up to the end of their list, which *@at is behind then. */
static int visit(struct walk *walk, uint32_t *at, uint32_t depth)
{
	struct dwarf_entry entry = { .tag = 0 };
	struct dwarf_facts facts;
	int r;

	for (;;) {
		const struct dwarf_facts *known = NULL;
		bool enter;

		r = look_at_clock(walk) ?: dwarf_entry_at(walk->unit, *at, &entry);
		if (r < 0)
			return r;
		*at = entry.next;
		if (!entry.tag)
			return 0;
		enter = holds_code(entry.tag);
		if (entry.tag == DW_TAG_subprogram || entry.tag == DW_TAG_inlined_subroutine) {
			r = look_at(walk, &entry, &facts, depth, &enter);
			known = &facts;
		}
		if (!r && entry.has_children && enter && depth < DWARF_DEPTH_MAX)
			r = visit(walk, at, depth + 1);
		else if (!r && entry.has_children)
			r = leave(walk, &entry, known, at);
		if (r < 0)
			return r;
	}
}

int dwarf_calls_find(const struct dwarf_unit *unit, const uint64_t *addresses, uint32_t count, uint64_t deadline,
		     struct dwarf_calls *ret_calls)
{
	struct walk walk = {
		.unit = unit, .addresses = addresses, .count = count, .deadline = deadline, .calls = ret_calls,
	};
	struct dwarf_entry root;
	int r;

	*ret_calls = (struct dwarf_calls){ .innermost = malloc((count + 1) * sizeof(*ret_calls->innermost)) };
	if (!ret_calls->innermost)
		return -ENOMEM;
	memset(ret_calls->innermost, 0xff, count * sizeof(*ret_calls->innermost));
	r = dwarf_entry_at(unit, unit->header.bytes, &root);
	if (!r && root.has_children)
		r = visit(&walk, &root.next, 1);
	/* what could not be read may have some */
	ret_calls->has_code |= r < 0;
	if (r == -ETIME || r == -ENOMEM) {
		dwarf_calls_done(ret_calls);
		return r;
	}
	return 0;
}

void dwarf_calls_done(struct dwarf_calls *calls)
{
	free(calls->calls);
	free(calls->innermost);
	*calls = (struct dwarf_calls){ 0 };
}
