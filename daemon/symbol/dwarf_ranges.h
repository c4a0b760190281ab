/* SPDX-License-Identifier: Apache-2.0 */
/* Which code an entry is of. */
#ifndef STACKTAP_SYMBOL_DWARF_RANGES_H
#define STACKTAP_SYMBOL_DWARF_RANGES_H

#include "symbol/dwarf_unit.h"

enum { DWARF_RANGES_MAX = 1 << 20 };	/* of one entry */

/* Calls @each, which ends it by -errno. How many there are, or -errno. */
int dwarf_ranges(const struct dwarf_unit *unit, const struct dwarf_facts *facts,
		 int (*each)(void *ctx, uint64_t low, uint64_t high), void *ctx);

#endif /* STACKTAP_SYMBOL_DWARF_RANGES_H */
