// SPDX-License-Identifier: Apache-2.0
#include "unwind/rule.h"

#include "unwind/expression.h"

/* Where a register of the caller is: how and offset of a rule's ra or fp. */
static bool convert(const struct machine *machine, const struct cfi_value *value, uint8_t *ret_how,
		    int64_t *ret_offset)
{
	struct expression expression;
	uint8_t base;

	*ret_offset = value->number;
	switch (value->kind) {
	case CFI_OFFSET:
		*ret_how = UNWIND_LOAD | UNWIND_BASE_CFA;
		return true;
	case CFI_VAL_OFFSET:
		*ret_how = UNWIND_VALUE | UNWIND_BASE_CFA;
		return true;
	case CFI_REGISTER:
		if (!machine_base(machine, (uint64_t)value->number, &base))
			return false;
		*ret_how = UNWIND_VALUE | base;
		*ret_offset = 0;
		return true;
	case CFI_EXPRESSION:
	case CFI_VAL_EXPRESSION:
		if (!expression_parse(machine, value->expression, value->size, true, &expression) ||
		    expression.extra)
			return false;
		/* an expression that ends with a load yields an address to CFI_EXPRESSION */
		if ((expression.how & UNWIND_HOW_MASK) == UNWIND_LOAD &&
		    value->kind == CFI_EXPRESSION)
			return false;
		*ret_how = expression.how;
		*ret_offset = expression.offset;
		if (value->kind == CFI_EXPRESSION)
			*ret_how = UNWIND_LOAD | (expression.how & UNWIND_BASE_MASK);
		return true;
	default:
		return false;
	}
}

static bool convert_cfa(const struct machine *machine, const struct cfi_state *state,
			struct unwind_rule *rule, int64_t *ret_offset)
{
	struct expression expression;
	uint8_t base;

	if (state->cfa.kind == CFI_OFFSET) {
		*ret_offset = state->cfa.number;
		if (!machine_base(machine, state->cfa_register, &base))
			return false;
		rule->cfa = UNWIND_VALUE | base;
		return true;
	}
	if (state->cfa.kind != CFI_EXPRESSION ||
	    !expression_parse(machine, state->cfa.expression, state->cfa.size, false, &expression))
		return false;
	*ret_offset = expression.offset;
	rule->cfa = expression.how;
	rule->extra = expression.extra;
	return true;
}

static bool convert_ra(const struct machine *machine, const struct cfi_state *state,
		       struct unwind_rule *rule, int64_t *ret_offset)
{
	const struct cfi_value *value = &state->values[CFI_RA];

	if (value->kind == CFI_UNSET || value->kind == CFI_SAME) {
		*ret_offset = 0;
		rule->ra = UNWIND_VALUE | machine->ra;
		return machine->has_link;
	}
	return convert(machine, value, &rule->ra, ret_offset);
}

static bool convert_fp(const struct machine *machine, const struct cfi_state *state,
		       struct unwind_rule *rule, int64_t *ret_offset)
{
	const struct cfi_value *value = &state->values[CFI_FP];

	*ret_offset = 0;
	switch (value->kind) {
	case CFI_UNSET:
	case CFI_SAME:
		rule->fp = UNWIND_FP_SAME;
		return true;
	case CFI_UNDEFINED:
		rule->fp = UNWIND_FP_UNDEFINED;
		return true;
	default:
		return convert(machine, value, &rule->fp, ret_offset);
	}
}

/* The walk takes the CFA for the caller's stack pointer: does @state say the same? */
static bool is_sp_cfa(const struct machine *machine, const struct cfi_state *state,
		      const struct unwind_rule *rule, int64_t cfa_offset)
{
	const struct cfi_value *value = &state->values[CFI_SP];
	int64_t offset;
	uint8_t how;

	if (value->kind == CFI_UNSET)
		return true;
	return convert(machine, value, &how, &offset) && !rule->extra &&
	       ((how == (UNWIND_VALUE | UNWIND_BASE_CFA) && offset == 0) ||
		(how == rule->cfa && offset == cfa_offset));
}

static bool fits(int64_t offset)
{
	return offset >= -UNWIND_OFFSET_MAX && offset <= UNWIND_OFFSET_MAX;
}

struct unwind_rule rule_from_state(const struct machine *machine, const struct cfi_state *state,
				   bool is_signal)
{
	struct unwind_rule rule = { 0 };
	int64_t cfa, ra, fp;

	if (state && state->values[CFI_RA].kind == CFI_UNDEFINED)
		return rule_special(UNWIND_END);
	if (!state || !convert_cfa(machine, state, &rule, &cfa) ||
	    !convert_ra(machine, state, &rule, &ra) || !convert_fp(machine, state, &rule, &fp) ||
	    !is_sp_cfa(machine, state, &rule, cfa) || !fits(cfa) || !fits(ra) || !fits(fp))
		return rule_special(UNWIND_NO_RULE);
	rule.cfa_offset = (int32_t)cfa;
	rule.ra_offset = (int32_t)ra;
	rule.fp_offset = (int32_t)fp;
	if (is_signal)
		rule.extra |= UNWIND_EXTRA_SIGNAL;
	return unwind_rule_valid(&rule) ? rule : rule_special(UNWIND_NO_RULE);
}

int32_t rule_saved(const struct cfi_state *state, const struct unwind_rule *rule)
{
	const struct cfi_value *value;

	if ((rule->cfa & UNWIND_HOW_MASK) == UNWIND_SPECIAL)
		return UNWIND_SAVED_SAME;
	value = &state->values[CFI_SAVED];
	if (value->kind == CFI_UNSET || value->kind == CFI_SAME)
		return UNWIND_SAVED_SAME;
	if (value->kind == CFI_OFFSET && value->number < 0 && fits(value->number))
		return (int32_t)value->number;
	return UNWIND_SAVED_LOST;
}

static void format_value(const struct machine *machine, uint8_t how, int32_t offset,
			 char ret_text[static 32])
{
	uint8_t base = how & UNWIND_BASE_MASK;
	bool is_load = (how & UNWIND_HOW_MASK) == UNWIND_LOAD;
	char name[8], distance[16] = "";

	if (base == UNWIND_BASE_SP)
		snprintf(name, sizeof(name), "sp");
	else if (base == UNWIND_BASE_FP)
		snprintf(name, sizeof(name), "fp");
	else if (base == UNWIND_BASE_CFA)
		snprintf(name, sizeof(name), "cfa");
	else if (machine->has_link && base == machine->ra)
		snprintf(name, sizeof(name), "lr");
	else
		snprintf(name, sizeof(name), "r%u", base);
	if (offset)
		snprintf(distance, sizeof(distance), "%+d", offset);
	snprintf(ret_text, 32, is_load ? "[%s%s]" : "%s%s", name, distance);
}

void rule_format(const struct machine *machine, const struct unwind_rule *rule,
		 char ret_text[static RULE_TEXT_MAX])
{
	static const char *const specials[] = {
		[UNWIND_UNCOVERED] = "uncovered",
		[UNWIND_NO_RULE] = "no rule",
		[UNWIND_END] = "end of stack",
	};
	unsigned int extra = rule->extra & UNWIND_EXTRA_MASK;
	char cfa[32], ra[32], fp[32], more[16] = "";

	if ((rule->cfa & UNWIND_HOW_MASK) == UNWIND_SPECIAL) {
		snprintf(ret_text, RULE_TEXT_MAX, "%s",
			 rule->cfa < ARRAY_SIZE(specials) ? specials[rule->cfa] : "invalid");
		return;
	}
	format_value(machine, rule->cfa, rule->cfa_offset, cfa);
	format_value(machine, rule->ra, rule->ra_offset, ra);
	if (rule->fp == UNWIND_FP_SAME)
		snprintf(fp, sizeof(fp), "same");
	else if (rule->fp == UNWIND_FP_UNDEFINED)
		snprintf(fp, sizeof(fp), "undefined");
	else
		format_value(machine, rule->fp, rule->fp_offset, fp);
	if ((rule->cfa & UNWIND_HOW_MASK) == UNWIND_PLT)
		snprintf(more, sizeof(more), "+plt%u", extra);
	else if (extra)
		snprintf(more, sizeof(more), "+%u", extra * UNWIND_WORD);
	snprintf(ret_text, RULE_TEXT_MAX, "cfa=%s%s ra=%s fp=%s%s", cfa, more, ra, fp,
		 rule->extra & UNWIND_EXTRA_SIGNAL ? " signal" : "");
}
