/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where an object's functions begin and end by what unwinding needs to know of them, which stripped files have
 * as well: each frame entry of .eh_frame is one function's, or one part's of a function that the compiler split
 * (.cold); and Go's .gopclntab has all of Go's, with their names. Without an entry are ld.so's first instructions and musl's, which
 * are known by themselves (unwind/gap.h), and what runs before and after a program, which has a section each (.init, .fini).
 */
#ifndef STACKTAP_UNWIND_FUNCTIONS_H
#define STACKTAP_UNWIND_FUNCTIONS_H

#include "symbol/symtab.h"

/*
 * In ascending order of address, one per address, at most SYMTAB_SYMBOLS_MAX; none where the machine is unknown.
 * What comes after something broken, or after @elf's deadline, is missing. Freed by the caller. -ENOMEM
 */
int functions_read(const struct elf *elf, struct function_range **ret_ranges, size_t *ret_count);

#endif /* STACKTAP_UNWIND_FUNCTIONS_H */
