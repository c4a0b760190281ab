// SPDX-License-Identifier: Apache-2.0
#include "symbol/dwarf_units.h"

void dwarf_units_init(struct dwarf_units *units, struct dwarf_file *file)
{
	*units = (struct dwarf_units){ .file = file };
}

static void close_unit(struct dwarf_units *units, size_t i)
{
	dwarf_program_close(units->programs[i]);
	dwarf_unit_close(units->open[i]);
	units->programs[i] = NULL;
	units->open[i] = NULL;
}

void dwarf_units_done(struct dwarf_units *units)
{
	for (size_t i = 0; i < DWARF_UNITS_OPEN; i++)
		close_unit(units, i);
	free(units->starts);
	*units = (struct dwarf_units){ 0 };
}

int dwarf_units_find_next(struct dwarf_units *units)
{
	struct dwarf_header header;
	int r = units->is_all ? -ENODATA : dwarf_header_read(units->file, units->next, &header);

	/* one of a kind that cannot be read has a size all the same */
	if (r == -EBADMSG)
		r = 0;
	if (r == -ENODATA || (!r && units->count == DWARF_UNITS_MAX)) {
		units->is_all = true;
		return -ENODATA;
	}
	if (r < 0)
		return r;
	if (units->count == units->room) {
		const uint32_t room = units->room ? 2 * units->room : 256;
		uint64_t *starts = reallocarray(units->starts, room, sizeof(*starts));

		if (!starts)
			return -ENOMEM;
		units->starts = starts;
		units->room = room;
	}
	units->starts[units->count++] = units->next;
	units->next += header.size;
	return 0;
}

/* Where there is room for one more, which takes some: those used longest ago go. */
static size_t make_room(struct dwarf_units *units, uint64_t bytes, const struct dwarf_unit *held)
{
	for (;;) {
		size_t oldest = DWARF_UNITS_OPEN, empty = DWARF_UNITS_OPEN;
		uint64_t sum = bytes;

		for (size_t i = 0; i < DWARF_UNITS_OPEN; i++) {
			if (!units->open[i]) {
				empty = i;
				continue;
			}
			sum += units->open[i]->header.size;
			if (units->open[i] != held &&
			    (oldest == DWARF_UNITS_OPEN || units->used[i] < units->used[oldest]))
				oldest = i;
		}
		if ((empty < DWARF_UNITS_OPEN && sum <= DWARF_UNITS_BYTES) || oldest == DWARF_UNITS_OPEN)
			return empty;
		close_unit(units, oldest);
	}
}

int dwarf_units_get(struct dwarf_units *units, uint64_t offset, const struct dwarf_parts *parts,
		    const struct dwarf_unit *held, struct dwarf_unit **ret_unit)
{
	struct dwarf_header header;
	size_t i;
	int r;

	for (i = 0; i < DWARF_UNITS_OPEN; i++)
		if (units->open[i] && units->open[i]->header.offset == offset) {
			units->used[i] = ++units->clock;
			*ret_unit = units->open[i];
			return 0;
		}
	r = dwarf_header_read(units->file, offset, &header);
	if (r < 0)
		return r;
	i = make_room(units, header.size, held);
	if (i == DWARF_UNITS_OPEN)
		return -ENOMEM;
	r = dwarf_unit_open(units->file, offset, false, parts, &units->open[i]);
	if (r < 0) {
		units->open[i] = NULL;
		return r;
	}
	units->used[i] = ++units->clock;
	*ret_unit = units->open[i];
	return 0;
}

int dwarf_units_holding(struct dwarf_units *units, uint64_t offset, const struct dwarf_parts *parts,
			const struct dwarf_unit *held, struct dwarf_unit **ret_unit)
{
	uint32_t begin = 0, end;
	int r = 0;

	while (!r && units->next <= offset)
		r = dwarf_units_find_next(units);
	if (r < 0)
		return r;
	for (end = units->count; end - begin > 1;) {
		const uint32_t middle = begin + (end - begin) / 2;

		if (units->starts[middle] <= offset)
			begin = middle;
		else
			end = middle;
	}
	return units->count ? dwarf_units_get(units, units->starts[begin], parts, held, ret_unit) : -ENODATA;
}

const struct dwarf_program *dwarf_units_program(struct dwarf_units *units, const struct dwarf_unit *unit)
{
	for (size_t i = 0; i < DWARF_UNITS_OPEN; i++) {
		if (units->open[i] != unit)
			continue;
		if (!units->programs[i] && dwarf_program_open(unit, &units->programs[i]) < 0)
			units->programs[i] = NULL;
		return units->programs[i];
	}
	return NULL;
}
