/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of a unit that addresses are in, and those that were inlined there. */
#ifndef STACKTAP_SYMBOL_DWARF_CALLS_H
#define STACKTAP_SYMBOL_DWARF_CALLS_H

#include "symbol/dwarf_unit.h"

#define DWARF_NO_CALL UINT32_MAX

struct dwarf_call {
	uint32_t at;			/* its entry */
	uint32_t depth, outer;		/* outer: the one around it; DWARF_NO_CALL: none */
};

struct dwarf_calls {
	struct dwarf_call *calls;
	uint32_t count, room;
	uint32_t *innermost;		/* of each address */
	bool has_code;			/* the unit has functions, whether addresses are in them or not */
};

/*
 * Of the addresses, which are sorted. What comes before an entry that cannot be read is there all the same. -ETIME,
 * -ENOMEM
 */
int dwarf_calls_find(const struct dwarf_unit *unit, const uint64_t *addresses, uint32_t count, uint64_t deadline,
		     struct dwarf_calls *ret_calls);
void dwarf_calls_done(struct dwarf_calls *calls);

#endif /* STACKTAP_SYMBOL_DWARF_CALLS_H */
