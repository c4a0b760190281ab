/* SPDX-License-Identifier: Apache-2.0 */
/* What a function is called and where it begins, by its entry and those that this one refers to. */
#ifndef STACKTAP_SYMBOL_DWARF_FUNCTION_H
#define STACKTAP_SYMBOL_DWARF_FUNCTION_H

#include "symbol/dwarf_units.h"

struct dwarf_function {
	char name[DWARF_TEXT_MAX];	/* as linkers know it; empty: unknown */
	char file[DWARF_TEXT_MAX];	/* where it is declared */
	uint32_t line;			/* 0: unknown */
};

/* @program has the unit's files; NULL: there is none. */
void dwarf_function_read(struct dwarf_units *units, struct dwarf_unit *unit, const struct dwarf_program *program,
			 uint32_t at, struct dwarf_function *ret_function);

#endif /* STACKTAP_SYMBOL_DWARF_FUNCTION_H */
