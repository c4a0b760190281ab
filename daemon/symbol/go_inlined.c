// SPDX-License-Identifier: Apache-2.0
#include "symbol/go_inlined.h"

#include "symbol/relocation.h"

enum {
	LIST_NONE = -1,
	PROBES = 32,		/* lists that a form is tried with */
	LOOKED_AT = 1 << 16,	/* functions, for these */
	WORDS_MAX = 5,
	DATA_NONE = UINT8_MAX,	/* no function has so many */
};

/* Go 1.9 to 1.11; 1.13 to 1.15, 1.12; 1.16 and 1.17; 1.18 and 1.19; 1.20 and later */
static const struct go_lists with_places = { .form = GO_FORM_PLACES, .values = 1, .data = 2 };
static const struct go_lists with_calls[] = {
	{ .form = GO_FORM_CALLS, .values = 2, .data = 4 },
	{ .form = GO_FORM_CALLS, .values = 1, .data = 2 },
};
static const struct go_lists with_units = { .form = GO_FORM_CALLS, .values = 2, .data = 3 };
static const struct go_lists with_starts = { .form = GO_FORM_STARTS, .values = 2, .data = 3 };

int go_inlined_get(struct pclntab *pclntab, const struct go_lists *lists, uint64_t address, uint32_t i,
		   struct go_inlined *ret_inlined)
{
	const size_t size = (lists->form == GO_FORM_CALLS ? 5 : 4) * sizeof(uint32_t);
	uint32_t words[WORDS_MAX];
	int r = elf_read_at(pclntab->elf, address + i * (uint64_t)size, words, size);

	if (r < 0)
		return r;
	switch (lists->form) {
	case GO_FORM_STARTS:	/* kind, name, call, first line */
		*ret_inlined = (struct go_inlined){ .name = words[1], .call = words[2], .start_line = words[3] };
		break;
	case GO_FORM_CALLS:	/* parent and kind, file, line, name, call */
		*ret_inlined = (struct go_inlined){
			.name = words[3], .call = words[4], .parent = (int16_t)(words[0] & 0xffff),
		};
		break;
	case GO_FORM_PLACES:	/* parent, file, line, name */
		*ret_inlined = (struct go_inlined){
			.name = words[3], .parent = (int32_t)words[0], .file = (int32_t)words[1],
			.line = (int32_t)words[2],
		};
		break;
	case GO_FORM_NONE:
		return -EBADMSG;
	}
	return 0;
}

int go_inlined_list(struct pclntab *pclntab, const struct go_lists *lists, const struct pclntab_function *function,
		    uint64_t *ret_address)
{
	const uint64_t data = pclntab->descriptions + function->more + 4 * (uint64_t)function->value_count;
	const uint64_t start = pclntab->section->sh_addr;
	uint32_t offset;
	int r;

	if (function->data_count <= lists->data)
		return -ENODATA;
	if (pclntab->has_offsets) {
		r = pclntab_get(pclntab, &pclntab->function_window, data + 4 * lists->data, &offset, sizeof(offset));
		*ret_address = lists->base + offset;
		return r == 0 && offset == (uint32_t)LIST_NONE ? -ENODATA : r;
	}
	/* whole addresses, each where one may be */
	r = relocation_words(pclntab->elf, ((start + data + 7) & ~(uint64_t)7) + 8 * lists->data, ret_address, 1);
	return r ?: *ret_address ? 0 : -ENODATA;
}

/* Before Go 1.16 names were among all else; since then each is behind another one, but the first. */
static bool is_name(struct pclntab *pclntab, uint32_t name)
{
	char bytes[2] = "";

	if (!name)
		return pclntab->has_units && pclntab_get(pclntab, &pclntab->value_window, pclntab->names, bytes, 1) == 0 &&
		       bytes[0];
	return pclntab_get(pclntab, &pclntab->value_window, pclntab->names + name - 1, bytes, sizeof(bytes)) == 0 &&
	       bytes[1] && (!bytes[0] || !pclntab->has_units);
}

bool go_inlined_fits(struct pclntab *pclntab, const struct go_lists *lists, const struct go_inlined *inlined,
		     uint64_t bytes)
{
	if (lists->form == GO_FORM_PLACES ? inlined->file < 1 || inlined->line < 1 : inlined->call >= bytes)
		return false;
	return is_name(pclntab, inlined->name);
}

/*
 * How many of the first lists make sense by @lists, of how many. What is in their place in another Go begins with a count.
 * A list begins with a function whose call is in none.
 */
static uint32_t try(struct pclntab *pclntab, const struct go_lists *lists, uint32_t *ret_tried)
{
	const uint32_t count = min_of(pclntab->count, (uint32_t)LOOKED_AT);
	struct pclntab_function function;
	struct go_inlined inlined;
	uint64_t entry, end, address;
	uint32_t at, unused, good = 0;
	int r;

	*ret_tried = 0;
	for (uint32_t i = 0; i < count && *ret_tried < PROBES; i++) {
		if (pclntab_entry(pclntab, i, &entry, &at) < 0 || pclntab_entry(pclntab, i + 1, &end, &unused) < 0 ||
		    pclntab_describe(pclntab, at, &function) < 0)
			break;
		if (function.value_count <= lists->values || go_inlined_list(pclntab, lists, &function, &address) < 0)
			continue;
		r = go_inlined_get(pclntab, lists, address, 0, &inlined);
		if (r == 0 && inlined.parent != -1)
			continue;
		++*ret_tried;
		good += r == 0 && go_inlined_fits(pclntab, lists, &inlined, end - entry);
	}
	return good;
}

static void choose(struct pclntab *pclntab, const struct go_lists *forms, size_t count, struct go_lists *ret_lists)
{
	uint32_t tried;
	bool is_some = false;

	for (size_t i = 0; i < count; i++) {
		*ret_lists = forms[i];
		if (try(pclntab, ret_lists, &tried) == tried && tried)
			return;
		is_some = is_some || tried;
	}
	*ret_lists = is_some ? forms[0] : (struct go_lists){ .form = GO_FORM_NONE };
	/* lists that make no sense: what has others inlined stays without lines */
	ret_lists->data = DATA_NONE;
}

void go_inlined_form(struct pclntab *pclntab, struct go_lists *ret_lists)
{
	if (pclntab->has_units)
		*ret_lists = pclntab->has_line ? with_starts : with_units;
	else if (pclntab->has_ids)
		choose(pclntab, with_calls, ARRAY_SIZE(with_calls), ret_lists);
	else
		choose(pclntab, &with_places, 1, ret_lists);
}
