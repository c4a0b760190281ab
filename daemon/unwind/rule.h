/* SPDX-License-Identifier: Apache-2.0 */
/* A row of call frame information as a rule of the table, and rules in words. */
#ifndef STACKTAP_UNWIND_RULE_H
#define STACKTAP_UNWIND_RULE_H

#include "unwind/cfi.h"

/* UNWIND_NO_RULE when a rule cannot say exactly what @state says; @state may be NULL. */
struct unwind_rule rule_from_state(const struct machine *machine, const struct cfi_state *state,
				   bool is_signal);

/* The same row for saved[] of a table, beside @rule. */
int32_t rule_saved(const struct cfi_state *state, const struct unwind_rule *rule);

static inline struct unwind_rule rule_special(enum unwind_special special)
{
	return (struct unwind_rule){ .cfa = (uint8_t)special };
}

enum { RULE_TEXT_MAX = 128 };

/* "cfa=sp+16 ra=[cfa-8] fp=same" */
void rule_format(const struct machine *machine, const struct unwind_rule *rule,
		 char ret_text[static RULE_TEXT_MAX]);

#endif /* STACKTAP_UNWIND_RULE_H */
