/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Go's own table of its functions, .gopclntab, which its runtime needs and which therefore stripped programs have. For
 * each function it has the name and values by instruction: the file, the line, and what was inlined there (see
 * symbol/go_lines.h), and how far the stack pointer is from where it was at the entry (see unwind/pcsp.h), all of these
 * since Go 1.2.
 *
 * Where C's linker makes a position-independent program, it puts the table among other constants, in .data.rel.ro, until
 * Go 1.25. There it is searched by how it begins, in programs that have a note or section of Go's.
 *
 * The file is hostile: reads are bounded, by the section and by the deadline of the ELF file.
 */
#ifndef STACKTAP_SYMBOL_PCLNTAB_H
#define STACKTAP_SYMBOL_PCLNTAB_H

#include "symbol/symtab.h"

enum {
	PCLNTAB_BYTES_MAX = 256 << 20,
	PCLNTAB_WINDOW = 4096,
};

struct pclntab_window {
	uint64_t offset;
	size_t size;
	bool is_linked;			/* its words are as the loader leaves them */
	union {
		uint8_t bytes[PCLNTAB_WINDOW];
		uint64_t words[PCLNTAB_WINDOW / sizeof(uint64_t)];
	};
};

struct pclntab {
	const struct elf *elf;
	const Elf64_Shdr *section;	/* NULL: none that is understood */
	Elf64_Shdr found;		/* what @section is where the file has none for the table alone */
	uint64_t text;			/* address that functions are counted from */
	/* offsets in the section; where a function is described counts from @descriptions */
	uint64_t names, units, files, values, functions, descriptions;
	uint32_t count;			/* of functions */
	uint8_t quantum;		/* bytes that instructions are multiples of */
	bool has_line;			/* Go 1.20 and later */
	bool has_offsets;		/* Go 1.18 and later; before, addresses were whole ones */
	bool has_units;			/* Go 1.16 and later; before, all files were in one list */
	bool has_ids;			/* Go 1.12 and later: how many further data there are has one byte */
	struct pclntab_window entry_window, function_window, value_window;
};

/* How a function is described. */
struct pclntab_function {
	uint32_t name;			/* offset from the names */
	uint32_t distances, files, lines;	/* tables of values; 0: none */
	uint32_t unit;			/* first of its files' names, in the units; 0 before Go 1.16 */
	uint32_t start_line;		/* 0: unknown */
	uint32_t value_count, data_count;	/* of further tables of values, and of further data */
	uint64_t more;			/* offset of these from @descriptions */
	uint8_t flags;			/* 0 before Go 1.17 */
};

/* Values of a function's instructions, one run of the same value after the other. */
struct pclntab_run {
	uint64_t offset, entry;
	uint64_t start, end;		/* addresses with this value */
	int32_t value;
};

/* The table of @elf, if it has one and it is known where its functions are. */
void pclntab_find(const struct elf *elf, struct pclntab *ret_pclntab);

/*
 * Function @i: where it is and, if that is known, where the file has its name. -EBADMSG: the table is broken
 * there; -errno of reading.
 */
int pclntab_function(struct pclntab *pclntab, uint32_t i, struct function_range *ret_range);

/* Where function @i begins, and is described; @i may be their count, for where the last one ends. */
int pclntab_entry(struct pclntab *pclntab, uint32_t i, uint64_t *ret_address, uint32_t *ret_at);
int pclntab_describe(struct pclntab *pclntab, uint32_t at, struct pclntab_function *ret_function);
/* The function that holds @address, as the two above. -ENODATA: none, which has no end */
int pclntab_search(struct pclntab *pclntab, uint64_t address, uint64_t *ret_entry, uint64_t *ret_end,
		   struct pclntab_function *ret_function);

/* @table: a place in the values. */
void pclntab_values(const struct pclntab *pclntab, uint32_t table, uint64_t entry,
		    struct pclntab_run *ret_run);
/* 1: the next run; 0: that was the last; -EBADMSG, -errno of reading. */
int pclntab_next(struct pclntab *pclntab, struct pclntab_run *run);

/* @size bytes at @offset of the section, PCLNTAB_WINDOW at most; what is behind its end is 0. */
int pclntab_get(const struct pclntab *pclntab, struct pclntab_window *window, uint64_t offset,
		void *ret_bytes, size_t size);
/* Where the @value-th file of @function has its name, counted from the files. -ENODATA: nowhere */
int pclntab_file(struct pclntab *pclntab, const struct pclntab_function *function, int32_t value, uint32_t *ret_name);
/* A NUL-terminated text at @offset of the section; one that is longer is cut. */
int pclntab_text(struct pclntab *pclntab, uint64_t offset, char *ret_text, size_t size);

#endif /* STACKTAP_SYMBOL_PCLNTAB_H */
