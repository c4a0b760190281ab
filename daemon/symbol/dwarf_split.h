/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Split DWARF (-gsplit-dwarf): a linked file has units that are skeletons, with ranges and line programs; entries of
 * functions are in .dwo files, or in the package (.dwp) that a packager makes of all. Which belongs to which says a
 * number of 64 bits, the DWO id.
 */
#ifndef STACKTAP_SYMBOL_DWARF_SPLIT_H
#define STACKTAP_SYMBOL_DWARF_SPLIT_H

#include "symbol/dwarf_units.h"

/* Of a package, see DWARF 5, 7.3.5; without entries: of a .dwo file. */
struct dwarf_package_index {
	uint16_t version;		/* 2: of GNU's, before DWARF 5 */
	uint32_t columns, rows, slots;
};

struct dwarf_split {
	struct elf elf;
	struct dwarf_file *file;	/* NULL: none */
	struct dwarf_units units;
	struct dwarf_package_index index;
};

/* @fd stays the caller's, and open. -ENODATA: it is neither. */
int dwarf_split_open(struct dwarf_split *split, int fd, uint64_t size, uint64_t deadline);
void dwarf_split_close(struct dwarf_split *split);

/* The unit that @skeleton stands for; it stays as those of dwarf_units_get(). -ENOENT: it is not in there. */
int dwarf_split_find(struct dwarf_split *split, const struct dwarf_unit *skeleton, struct dwarf_unit **ret_unit);
/* The same without a look into it: is there a unit of this id? */
int dwarf_split_has(struct dwarf_split *split, uint64_t id);

#endif /* STACKTAP_SYMBOL_DWARF_SPLIT_H */
