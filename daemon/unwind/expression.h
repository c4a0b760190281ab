/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DWARF expressions that compilers and hand-written assembly really use, as what a rule can say:
 *
 *	breg + constants			a value
 *	breg + constants, deref, + constants	what is there: realigned and saved stack pointers
 *	the linker's expression for PLT entries
 *
 * Everything else is refused, not approximated.
 */
#ifndef STACKTAP_UNWIND_EXPRESSION_H
#define STACKTAP_UNWIND_EXPRESSION_H

#include "unwind/machine.h"

struct expression {
	uint8_t how;		/* enum unwind_how with its base */
	uint8_t extra;		/* as in struct unwind_rule */
	int64_t offset;
};

/*
 * @on_cfa: the CFA is on the stack when the expression begins, as for register rules; the whole
 * then is what the expression leaves on top.
 */
bool expression_parse(const struct machine *machine, const uint8_t *data, size_t size, bool on_cfa,
		      struct expression *ret_expression);

#endif /* STACKTAP_UNWIND_EXPRESSION_H */
