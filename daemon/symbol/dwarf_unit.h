/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A unit of debugging information and its entries. Places of entries are offsets from the unit's beginning.
 */
#ifndef STACKTAP_SYMBOL_DWARF_UNIT_H
#define STACKTAP_SYMBOL_DWARF_UNIT_H

#include "symbol/dwarf_abbrev.h"

enum {
	DWARF_UNIT_BYTES_MAX = 96 << 20,
	DWARF_DEPTH_MAX = 256,		/* of entries in each other */
};

struct dwarf_header {
	uint64_t offset, size;		/* with its length field */
	uint64_t abbrev_offset;
	uint64_t dwo_id;		/* from DWARF 5 on, of a skeleton and of what it stands for */
	uint16_t version;
	uint8_t type;			/* DW_UT_*; before DWARF 5 DW_UT_compile */
	uint8_t address_size, offset_size;
	uint8_t bytes;			/* of the header: there the first entry is */
};

struct dwarf_value {
	uint16_t form;			/* 0: there is none */
	uint64_t number;
	const char *text;		/* DW_FORM_string */
};

struct dwarf_entry {
	uint32_t at, next;		/* next: behind its attributes */
	uint16_t tag;			/* 0: the end of a list */
	bool has_children;
	const struct dwarf_abbrev *abbrev;
};

/* What is wanted of an entry. */
struct dwarf_facts {
	struct dwarf_value low, high, ranges, name, linkage_name, abstract_origin, specification;
	struct dwarf_value decl_file, decl_line, call_file, call_line, call_column;
	struct dwarf_value stmt_list, comp_dir, sibling, dwo_name, dwo_id;
	struct dwarf_value str_offsets_base, addr_base, rnglists_base, ranges_base;
};

/* Where sections of a unit begin that a package (.dwp) has those of many of. */
struct dwarf_parts {
	uint64_t info, abbrev, str_offsets, rnglists;
};

struct dwarf_unit {
	struct dwarf_header header;
	struct dwarf_file *file, *linked;	/* linked: that has addresses and, before DWARF 5, ranges */
	struct dwarf_parts parts;
	struct dwarf_abbrevs *abbrevs;
	const uint8_t *bytes;
	void *owned;			/* bytes */
	struct dwarf_facts root;
	uint16_t tag;
	bool is_skeleton;
	uint64_t low;			/* what ranges are relative to, unless they say */
	uint64_t str_offsets_base, addr_base, rnglists_base;
	uint64_t ranges_start;		/* what offsets of ranges are relative to */
};

/* -ENODATA: no unit begins there. -EBADMSG: it is of a kind that cannot be read; @ret_header has its size. */
int dwarf_header_read(struct dwarf_file *file, uint64_t offset, struct dwarf_header *ret_header);
/* Its first entry alone, if @is_brief, or all. @parts: of a package; NULL: of none. -EFBIG */
int dwarf_unit_open(struct dwarf_file *file, uint64_t offset, bool is_brief, const struct dwarf_parts *parts,
		    struct dwarf_unit **ret_unit);
/* Of split DWARF: what the unit takes from the one that stands for it in the linked file. */
void dwarf_unit_link(struct dwarf_unit *unit, const struct dwarf_unit *skeleton);
/* False: it has none. */
bool dwarf_unit_dwo_id(const struct dwarf_unit *unit, uint64_t *ret_id);
void dwarf_unit_close(struct dwarf_unit *unit);		/* NULL is fine */

/* -EBADMSG: there is no entry. */
int dwarf_entry_at(const struct dwarf_unit *unit, uint32_t at, struct dwarf_entry *ret_entry);
int dwarf_entry_facts(const struct dwarf_unit *unit, const struct dwarf_entry *entry,
		      struct dwarf_facts *ret_facts);
/* Behind the entry and all that is in it. */
int dwarf_entry_behind(const struct dwarf_unit *unit, const struct dwarf_entry *entry, uint32_t *ret_at);

/* False: it is none, or not there. */
bool dwarf_value_address(const struct dwarf_unit *unit, const struct dwarf_value *value, uint64_t *ret_address);
const char *dwarf_value_text(const struct dwarf_unit *unit, const struct dwarf_value *value,
			     char ret_text[static DWARF_TEXT_MAX]);

/* A form's value, as line tables have them, too. @cursor is bad if it is none or unknown. */
void dwarf_value_read(struct cursor *cursor, const struct dwarf_header *header, uint16_t form, int64_t implicit,
		      struct dwarf_value *ret_value);

#endif /* STACKTAP_SYMBOL_DWARF_UNIT_H */
