/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which unit an address is in. First by .debug_aranges, if a file has that; for what is not in there, as compilers
 * like clang and rustc leave it out, by the first entries of all units.
 */
#ifndef STACKTAP_SYMBOL_DWARF_INDEX_H
#define STACKTAP_SYMBOL_DWARF_INDEX_H

#include "symbol/dwarf_units.h"

enum { DWARF_INDEX_RANGES_MAX = 2 << 20 };

/* Sorted, without overlap: of two units with the same code the one that begins first has it. */
struct dwarf_range {
	uint64_t low, high, unit;	/* unit: where it begins */
};

struct dwarf_index {
	struct dwarf_units *units;
	struct dwarf_range *ranges;
	uint32_t count, room;
	uint64_t *silent;		/* units that do not say where their code is */
	uint32_t silent_count, silent_room;
	bool is_whole;			/* of all units */
};

/* Of @units, which stay the caller's. */
void dwarf_index_init(struct dwarf_index *index, struct dwarf_units *units);
void dwarf_index_done(struct dwarf_index *index);
/* By .debug_aranges; where that is broken, or not there, it has what could be read. -ENOMEM, -ETIME */
int dwarf_index_read(struct dwarf_index *index);
/* By all units; what it had before stays where that fails. -ENOMEM, -ETIME */
int dwarf_index_make(struct dwarf_index *index);

/* False: it is in none that is known. */
bool dwarf_index_find(const struct dwarf_index *index, uint64_t address, uint64_t *ret_unit);

#endif /* STACKTAP_SYMBOL_DWARF_INDEX_H */
