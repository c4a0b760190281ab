/* SPDX-License-Identifier: Apache-2.0 */
/* What is open of a file that lines are looked up in: for symbol/lines_file.c, which opens it, and symbol/lines.c. */
#ifndef STACKTAP_SYMBOL_LINES_STATE_H
#define STACKTAP_SYMBOL_LINES_STATE_H

#include "symbol/dwarf_dwos.h"
#include "symbol/dwarf_index.h"
#include "symbol/go_lines.h"
#include "symbol/symtab.h"

/* The DWARF of a file. */
struct debug {
	struct elf elf;
	struct dwarf_file *file;	/* NULL: none that can be read */
	struct dwarf_units units;
};

struct lines {
	struct elf file;
	struct symtab *symtab;		/* NULL: none */
	struct debug main, alt;		/* main has its ELF file in @file */
	struct dwarf_split split;	/* the package */
	struct dwarf_dwos dwos;
	struct dwarf_index index;
	bool has_new_index;		/* that was not given */
	struct go_lines *go;		/* NULL: no program of Go */
};

#endif /* STACKTAP_SYMBOL_LINES_STATE_H */
