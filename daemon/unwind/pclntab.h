/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Go's own table of its functions, .gopclntab, which its runtime needs and which therefore stripped
 * programs have. It says of each instruction how far the stack pointer is from where it was at the
 * function's entry. Of what Go before 1.18 wrote only the functions are read: it does not say which of them leave
 * the stack that they are on, and a rule there would be a wrong one.
 *
 * The file is hostile: reads are bounded, and time is in proportion to the code that is covered.
 */
#ifndef STACKTAP_UNWIND_PCLNTAB_H
#define STACKTAP_UNWIND_PCLNTAB_H

#include "symbol/symtab.h"
#include "unwind/builder.h"

enum {
	PCLNTAB_BYTES_MAX = 256 << 20,
	PCLNTAB_WINDOW = 4096,
};

struct pclntab_window {
	uint64_t offset;
	size_t size;
	uint8_t bytes[PCLNTAB_WINDOW];
};

struct pclntab {
	const struct elf *elf;
	const Elf64_Shdr *section;	/* NULL: none that is understood */
	uint64_t text;			/* address that functions are counted from */
	/* offsets in the section; where a function is described counts from @descriptions */
	uint64_t names, values, functions, descriptions;
	uint32_t count;			/* of functions */
	bool has_line;			/* Go 1.20 and later */
	bool has_rules;			/* Go 1.18 and later; before, addresses were whole ones */
	uint32_t next;			/* function to look at next */
	uint64_t done;			/* end of the last range that was filled */
	struct pclntab_window entry_window, function_window, value_window;
};

/* The table of @elf, if it has one and it is known where its functions are. */
void pclntab_find(const struct elf *elf, const struct machine *machine,
		  struct pclntab *ret_pclntab);

/* The code that functions of the table take up; empty without a table, and without rules in it. */
void pclntab_range(struct pclntab *pclntab, uint64_t *ret_start, uint64_t *ret_end);

/*
 * Function @i: where it is and, if that is known, where the file has its name. -EBADMSG: the table is broken
 * there; -errno of reading.
 */
int pclntab_function(struct pclntab *pclntab, uint32_t i, struct function_range *ret_range);

/*
 * Rows for [@start, @end), which lies within pclntab_range() and which no frame entry covers; cheap
 * when called with ascending ranges. -errno of reading or of the builder.
 */
int pclntab_fill(struct pclntab *pclntab, struct builder *builder, uint64_t start, uint64_t end);

#endif /* STACKTAP_UNWIND_PCLNTAB_H */
