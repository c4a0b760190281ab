// SPDX-License-Identifier: Apache-2.0
#include "unwind/functions.h"

#include <string.h>

#include "base/sort.h"
#include "symbol/pclntab.h"
#include "unwind/frames.h"
#include "unwind/gap.h"

enum { RANGES_FIRST = 1024 };

struct list {
	struct function_range *ranges;
	size_t count, capacity;
};

static int add(struct list *list, const struct function_range *range)
{
	size_t capacity = list->capacity ? list->capacity * 2 : RANGES_FIRST;
	struct function_range *grown;

	if (list->count == list->capacity) {
		grown = realloc(list->ranges, capacity * sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		list->ranges = grown;
		list->capacity = capacity;
	}
	list->ranges[list->count++] = *range;
	return 0;
}

static int add_frames(struct list *list, const struct elf *elf, const struct machine *machine)
{
	_cleanup_free_ struct cfi_section *section = calloc(1, sizeof(*section));
	size_t offset = 0, at;
	struct cfi_fde fde;
	int r = 0;

	if (!section)
		return -ENOMEM;
	frames_find_eh(elf, machine, section);
	while (r == 0 && list->count < SYMTAB_SYMBOLS_MAX && cfi_next(section, &offset, &at, &fde))
		r = add(list, &(struct function_range){ .start = fde.start, .end = fde.end });
	return r;
}

static int add_go(struct list *list, const struct elf *elf)
{
	_cleanup_free_ struct pclntab *pclntab = calloc(1, sizeof(*pclntab));
	struct function_range range;
	int r = 0;

	if (!pclntab)
		return -ENOMEM;
	pclntab_find(elf, pclntab);
	for (uint32_t i = 0; pclntab->section && i < pclntab->count; i++) {
		if (list->count == SYMTAB_SYMBOLS_MAX)
			break;
		r = pclntab_function(pclntab, i, &range);
		if (r < 0)
			break;
		if (range.start < range.end)
			r = add(list, &range);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Of one address those with a name come first, then the longest. */
static int compare(const void *a, const void *b)
{
	const struct function_range *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	if (!x->name != !y->name)
		return x->name ? -1 : 1;
	return (x->end < y->end) - (x->end > y->end);
}

static uint64_t start_of(const void *range)
{
	return ((const struct function_range *)range)->start;
}

/* In order, and one per address. */
static void put_in_order(struct list *list)
{
	const size_t all = list->count;

	sort_items(list->ranges, list->count, sizeof(*list->ranges), start_of, compare);
	list->count = 0;
	for (size_t i = 0; i < all; i++)
		if (!list->count || list->ranges[i].start != list->ranges[list->count - 1].start)
			list->ranges[list->count++] = list->ranges[i];
}

/* @range up to where the next one begins, unless it begins inside of one. Of those in order. */
static int add_between(struct list *list, struct function_range range)
{
	size_t at = 0, left = list->count;
	int r;

	/* the first that begins behind it */
	while (left) {
		const size_t half = left / 2;

		if (list->ranges[at + half].start <= range.start) {
			at += half + 1;
			left -= half + 1;
		} else {
			left = half;
		}
	}
	if (at && range.start < list->ranges[at - 1].end)
		return 0;
	if (at < list->count)
		range.end = min_of(range.end, list->ranges[at].start);
	if (range.start >= range.end || list->count == SYMTAB_SYMBOLS_MAX)
		return 0;
	r = add(list, &range);
	if (r < 0)
		return r;
	memmove(&list->ranges[at + 1], &list->ranges[at], (list->count - 1 - at) * sizeof(range));
	list->ranges[at] = range;
	return 0;
}

/* Functions without frame entries whose places the file tells: where it is entered, as ld.so, and what runs before and after it. */
static int add_entries(struct list *list, const struct elf *elf, const struct machine *machine)
{
	static const char *const sections[] = { ".init", ".fini" };
	struct function_range range = { 0 };
	int r = 0;

	if (gap_entry(elf, machine, &range.start, &range.end))
		r = add_between(list, range);
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(sections); i++) {
		const Elf64_Shdr *shdr = elf_find_section(elf, SHT_PROGBITS, sections[i]);

		if (!shdr || !(shdr->sh_flags & SHF_EXECINSTR) || shdr->sh_size > UINT64_MAX - shdr->sh_addr)
			continue;
		r = add_between(list, (struct function_range){ .start = shdr->sh_addr, .end = shdr->sh_addr + shdr->sh_size });
	}
	return r;
}

int functions_read(const struct elf *elf, struct function_range **ret_ranges, size_t *ret_count)
{
	const struct machine *machine = elf->is_64 ? machine_find(elf->machine) : NULL;
	struct list list = { 0 };
	int r = 0;

	if (machine)
		r = add_frames(&list, elf, machine);
	if (machine && r == 0)
		r = add_go(&list, elf);
	if (r < 0) {
		free(list.ranges);
		return r;
	}
	put_in_order(&list);
	r = machine ? add_entries(&list, elf, machine) : 0;
	if (r < 0) {
		free(list.ranges);
		return r;
	}
	*ret_ranges = list.ranges;
	*ret_count = list.count;
	return 0;
}
