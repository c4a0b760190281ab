// SPDX-License-Identifier: Apache-2.0
#include "symbol/dwarf_function.h"

#include <dwarf.h>

enum { REFERENCES_MAX = 16 };	/* that are followed */

/* Where an entry is. */
struct place {
	struct dwarf_units *units;
	struct dwarf_unit *unit;
	const struct dwarf_program *program;
	uint32_t at;
};

/* Into another unit, or another file. @home stays open. */
static bool enter(struct place *place, struct dwarf_units *units, uint64_t offset, const struct dwarf_unit *home)
{
	/* of a unit that may be closed by that */
	const struct dwarf_parts parts = place->unit->parts;

	offset += parts.info;
	if (!units || dwarf_units_holding(units, offset, &parts, home, &place->unit) < 0)
		return false;
	place->units = units;
	place->program = dwarf_units_program(units, place->unit);
	place->at = (uint32_t)(offset - place->unit->header.offset);
	return offset >= place->unit->header.offset;
}

static bool follow(struct place *place, const struct dwarf_value *value, const struct dwarf_unit *home)
{
	switch (value->form) {
	case DW_FORM_ref1:
	case DW_FORM_ref2:
	case DW_FORM_ref4:
	case DW_FORM_ref8:
	case DW_FORM_ref_udata:
		place->at = value->number < place->unit->header.size ? (uint32_t)value->number : 0;
		return true;
	case DW_FORM_ref_addr:
		return enter(place, place->units, value->number, home);
	case DW_FORM_GNU_ref_alt:
	case DW_FORM_ref_sup4:
	case DW_FORM_ref_sup8:
		return enter(place, place->units->alt, value->number, home);
	default:
		return false;
	}
}

static void take(const struct place *place, const struct dwarf_facts *facts, bool *has_linkage_name, bool *has_file,
		 struct dwarf_function *function)
{
	if (facts->linkage_name.form && !*has_linkage_name) {
		dwarf_value_text(place->unit, &facts->linkage_name, function->name);
		*has_linkage_name = function->name[0];
	} else if (facts->name.form && !function->name[0]) {
		dwarf_value_text(place->unit, &facts->name, function->name);
	}
	if (facts->decl_file.form && !*has_file) {
		*has_file = true;
		if (place->program)
			dwarf_program_path(place->program, facts->decl_file.number, function->file);
	}
	if (facts->decl_line.form && !function->line && facts->decl_line.number <= INT32_MAX)
		function->line = (uint32_t)facts->decl_line.number;
}

void dwarf_function_read(struct dwarf_units *units, struct dwarf_unit *unit, const struct dwarf_program *program,
			 uint32_t at, struct dwarf_function *ret_function)
{
	struct place place = { .units = units, .unit = unit, .program = program, .at = at };
	bool has_linkage_name = false, has_file = false;
	struct dwarf_entry entry;
	struct dwarf_facts facts;

	ret_function->name[0] = ret_function->file[0] = '\0';
	ret_function->line = 0;
	for (unsigned int i = 0; i < REFERENCES_MAX; i++) {
		if (dwarf_entry_at(place.unit, place.at, &entry) < 0 || !entry.tag ||
		    dwarf_entry_facts(place.unit, &entry, &facts) < 0)
			return;
		take(&place, &facts, &has_linkage_name, &has_file, ret_function);
		if (has_linkage_name && has_file && ret_function->line)
			return;
		if (!follow(&place, facts.abstract_origin.form ? &facts.abstract_origin : &facts.specification, unit))
			return;
	}
}
