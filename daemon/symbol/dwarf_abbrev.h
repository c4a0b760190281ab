/* SPDX-License-Identifier: Apache-2.0 */
/* Abbreviations: which attributes entries have, and in which form. */
#ifndef STACKTAP_SYMBOL_DWARF_ABBREV_H
#define STACKTAP_SYMBOL_DWARF_ABBREV_H

#include "symbol/dwarf_file.h"

struct dwarf_attribute {
	uint16_t name, form;
	int64_t implicit;		/* DW_FORM_implicit_const */
};

struct dwarf_abbrev {
	uint64_t code;
	uint32_t first, count;		/* attributes */
	uint16_t tag;
	bool has_children;
	/* bytes that all attributes take: these, and addresses and offsets, of which the unit knows the size */
	bool is_fixed;
	uint16_t bytes, addresses, offsets;
};

struct dwarf_abbrevs {
	uint64_t offset;
	uint32_t references;
	uint32_t count, attribute_count;
	struct dwarf_abbrev *abbrevs;	/* by code */
	struct dwarf_attribute *attributes;
};

/* The table at @offset; with @code alone if that is not 0. One reference is the caller's. */
int dwarf_abbrevs_read(struct dwarf_file *file, uint64_t offset, uint64_t code,
		       struct dwarf_abbrevs **ret_abbrevs);
void dwarf_abbrevs_unref(struct dwarf_abbrevs *abbrevs);	/* NULL is fine */
/* NULL: there is none */
const struct dwarf_abbrev *dwarf_abbrevs_find(const struct dwarf_abbrevs *abbrevs, uint64_t code);

#endif /* STACKTAP_SYMBOL_DWARF_ABBREV_H */
