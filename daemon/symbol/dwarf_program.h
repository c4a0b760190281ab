/* SPDX-License-Identifier: Apache-2.0 */
/* The line program of a unit: which line an address is of, and the files that numbers stand for. */
#ifndef STACKTAP_SYMBOL_DWARF_PROGRAM_H
#define STACKTAP_SYMBOL_DWARF_PROGRAM_H

#include "symbol/dwarf_unit.h"

enum {
	DWARF_PROGRAM_BYTES_MAX = 64 << 20,
	DWARF_PATHS_MAX = 1 << 18,	/* files or directories of one program */
};

struct dwarf_program;

struct dwarf_row {
	uint32_t file, line, column;
	bool is_found;
};

/* -ENODATA: the unit has none. Reads it all: *ret_program is for rows and files. */
int dwarf_program_open(const struct dwarf_unit *unit, struct dwarf_program **ret_program);
void dwarf_program_close(struct dwarf_program *program);	/* NULL is fine */

/* Rows of the addresses, which are sorted. -ETIME */
int dwarf_program_rows(const struct dwarf_program *program, const uint64_t *addresses, uint32_t count,
		       uint64_t deadline, struct dwarf_row *ret_rows);
/* The path of a file, which may be relative; empty: there is none. */
const char *dwarf_program_path(const struct dwarf_program *program, uint64_t file,
			       char ret_path[static DWARF_TEXT_MAX]);

#endif /* STACKTAP_SYMBOL_DWARF_PROGRAM_H */
