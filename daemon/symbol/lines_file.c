// SPDX-License-Identifier: Apache-2.0
#include "symbol/lines_file.h"

#include "symbol/dwarf_index_file.h"
#include "symbol/kernel_module.h"
#include "symbol/lines_facts.h"
#include "symbol/lines_state.h"

static int open_debug(struct debug *debug, const struct elf *elf)
{
	int r = dwarf_file_open(elf, false, &debug->file);

	if (r < 0)
		debug->file = NULL;
	else
		dwarf_units_init(&debug->units, debug->file);
	return r;
}

static void close_debug(struct debug *debug)
{
	dwarf_units_done(&debug->units);
	dwarf_file_close(debug->file);
	debug->file = NULL;
	elf_close(&debug->elf);
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
	if (kernel_module_is(&lines->file))
		kernel_module_place(&lines->file);
	if (symtab_read(&lines->file, NULL, 0, NULL, &lines->symtab) < 0)
		lines->symtab = NULL;
	if (go_lines_open(&lines->file, &lines->go) < 0)
		lines->go = NULL;
	if (with_dwarf && !lines_is_relocatable(&lines->file))
		r = open_debug(&lines->main, &lines->file);
	if (lines->main.file) {
		dwarf_index_init(&lines->index, &lines->main.units);
		r = dwarf_index_read(&lines->index);
	} else if (r != -EFBIG || lines->go) {
		r = 0;
	}
	if (!r && !lines->main.file && !lines->go && (!lines->symtab || !lines->symtab->count))
		r = -ENODATA;
	if (r < 0) {
		lines_free(lines);
		return r;
	}
	*ret_lines = lines;
	return 0;
}

int lines_set_alt(struct lines *lines, int fd, uint64_t size, uint64_t deadline)
{
	struct debug *alt = &lines->alt;
	int r;

	if (!lines->main.file)
		return 0;
	r = elf_open(&alt->elf, fd, size, deadline) ?: open_debug(alt, &alt->elf);
	if (r < 0)
		return r;
	dwarf_set_alt(lines->main.file, alt->file);
	lines->main.units.alt = &alt->units;
	return 0;
}

int lines_set_split(struct lines *lines, int fd, uint64_t size, uint64_t deadline)
{
	if (lines->main.file)
		dwarf_split_open(&lines->split, fd, size, deadline);
	return 0;
}

/* The unit of an address; the index is made whole for one that it does not have. */
static int unit_of(struct lines *lines, uint64_t address, uint64_t *ret_unit)
{
	struct dwarf_index *index = &lines->index;
	int r = -ENOENT;

	if (dwarf_index_find(index, address, ret_unit))
		return 0;
	if (!index->is_whole) {
		r = dwarf_index_make(index);
		lines->has_new_index = !r;
	}
	return r ?: dwarf_index_find(index, address, ret_unit) ? 0 : -ENOENT;
}

/* Whether the unit at @offset stands for one of a .dwo file: is that wanted? -ENOSPC: by the next question. */
static int want_dwo_of(struct lines *lines, uint64_t offset)
{
	struct dwarf_unit *unit, *found;
	int r = dwarf_unit_open(lines->main.file, offset, true, NULL, &unit);

	/* what is broken has no lines either */
	if (r < 0)
		return r == -ENOMEM || r == -ETIME ? r : 0;
	if (unit->is_skeleton) {
		r = dwarf_split_find(&lines->split, unit, &found);
		if (r == -ENOENT)
			r = dwarf_dwos_want(&lines->dwos, unit);
	}
	dwarf_unit_close(unit);
	return r;
}

/* What .dwo files are asked for costs no lines, which come of the same files. */
static void drop_failures(struct lines *lines)
{
	dwarf_take_failure(lines->main.file);
	dwarf_take_failure(lines->split.file);
}

int lines_find_dwos(struct lines *lines, const uint64_t *addresses, uint32_t count, uint64_t deadline,
		    uint32_t *ret_count, uint32_t *ret_addresses)
{
	uint64_t unit, last = UINT64_MAX;
	uint32_t i;
	int r = 0;

	*ret_count = *ret_addresses = 0;
	dwarf_dwos_close(&lines->dwos);
	lines->file.deadline = deadline;
	lines->split.elf.deadline = deadline;
	for (i = 0; i < count && lines->main.file; i++) {
		r = unit_of(lines, addresses[i], &unit);
		if (!r && unit != last) {
			r = want_dwo_of(lines, unit);
			last = unit;
		}
		if (r == -ENOSPC)
			break;
		if (r < 0 && r != -ENOENT)
			break;
	}
	drop_failures(lines);
	if (r < 0 && r != -ENOENT && r != -ENOSPC)
		return r;
	*ret_count = lines->dwos.count;
	*ret_addresses = r == -ENOSPC ? i : count;
	return 0;
}

int lines_dwo_names(struct lines *lines, uint32_t number, uint64_t deadline, struct dwarf_dwo_names *ret_names)
{
	int r;

	if (!lines->main.file)
		return -ENOENT;
	lines->file.deadline = deadline;
	r = dwarf_dwos_names(&lines->dwos, number, lines->main.file, ret_names);
	drop_failures(lines);
	return r;
}

int lines_set_dwo(struct lines *lines, uint32_t number, int *fd, uint64_t size, uint64_t deadline)
{
	return dwarf_dwos_set(&lines->dwos, number, fd, size, deadline);
}

int lines_save_index(struct lines *lines, void **ret_bytes, size_t *ret_size)
{
	if (!lines->has_new_index)
		return -ENODATA;
	lines->has_new_index = false;
	return dwarf_index_pack(&lines->index, &lines->file, ret_bytes, ret_size);
}

int lines_load_index(struct lines *lines, const void *bytes, size_t size)
{
	return lines->main.file ? dwarf_index_unpack(&lines->index, &lines->file, bytes, size) : -ENODATA;
}

void lines_free(struct lines *lines)
{
	if (!lines)
		return;
	dwarf_index_done(&lines->index);
	close_debug(&lines->main);
	close_debug(&lines->alt);
	dwarf_split_close(&lines->split);
	dwarf_dwos_close(&lines->dwos);
	go_lines_free(lines->go);
	symtab_free(lines->symtab);
	elf_close(&lines->file);
	free(lines);
}
