/* SPDX-License-Identifier: Apache-2.0 */
/* The units of a file: where each is, and those that were used last. */
#ifndef STACKTAP_SYMBOL_DWARF_UNITS_H
#define STACKTAP_SYMBOL_DWARF_UNITS_H

#include "symbol/dwarf_program.h"

enum {
	DWARF_UNITS_MAX = 1 << 21,	/* of one file */
	DWARF_UNITS_OPEN = 32,
	DWARF_UNITS_BYTES = 96 << 20,	/* of those that are open */
};

struct dwarf_units {
	struct dwarf_file *file;
	struct dwarf_units *alt;	/* of what dwz moved away; NULL: none */
	uint64_t *starts;		/* of each, sorted */
	uint32_t count, room;
	bool is_all;
	uint64_t next;			/* behind those that are known */
	struct dwarf_unit *open[DWARF_UNITS_OPEN];
	struct dwarf_program *programs[DWARF_UNITS_OPEN];	/* NULL: not asked for */
	uint64_t used[DWARF_UNITS_OPEN], clock;
};

void dwarf_units_init(struct dwarf_units *units, struct dwarf_file *file);
void dwarf_units_done(struct dwarf_units *units);

/* One more of them is known; -ENODATA: there are no more. */
int dwarf_units_find_next(struct dwarf_units *units);
/*
 * The one that begins there, or that has @offset in it. It stays as long as it is among those that were asked for last,
 * which @held is always. @parts: of a package, NULL: of none.
 */
int dwarf_units_get(struct dwarf_units *units, uint64_t offset, const struct dwarf_parts *parts,
		    const struct dwarf_unit *held, struct dwarf_unit **ret_unit);
int dwarf_units_holding(struct dwarf_units *units, uint64_t offset, const struct dwarf_parts *parts,
			const struct dwarf_unit *held, struct dwarf_unit **ret_unit);
/* Its line program, which goes with it; NULL: there is none that can be read. */
const struct dwarf_program *dwarf_units_program(struct dwarf_units *units, const struct dwarf_unit *unit);

#endif /* STACKTAP_SYMBOL_DWARF_UNITS_H */
