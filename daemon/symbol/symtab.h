/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sorted table of functions: 12 bytes each, and names that are fetched when asked for. Of functions that no
 * symbol names it has where they are (SYMBOL_NAMELESS), if that is known from elsewhere.
 *
 * Names of a small string table are kept; those of a big one stay in the file and are read from it
 * by offset, so that a million symbols with 100 MB of names cost 12 MB. One entry per address: of
 * aliases the best one is kept, by a fixed order (see symtab.c).
 */
#ifndef STACKTAP_SYMBOL_SYMTAB_H
#define STACKTAP_SYMBOL_SYMTAB_H

#include "symbol/elf.h"

enum {
	SYMTAB_SYMBOLS_MAX = 512 * 1024,	/* functions of one file */
	SYMTAB_ENTRIES_MAX = 8 * 1024 * 1024,	/* entries looked at, functions or not */
	SYMTAB_NAMES_KEPT = 128 * 1024,		/* bytes of a string table kept in memory */
	SYMTAB_NAMES_MINI = 4 * 1024 * 1024,	/* the same where there is no file to read it from */
	SYMTAB_NAME_MAX = 4096,			/* with the NUL; longer ones are cut */
};

#define SYMBOL_PLT 0x80000000U
#define SYMBOL_NAMELESS UINT32_MAX	/* where it is is all that is known */

/* What is known of a function by something else than symbols. */
struct function_range {
	uint64_t start, end;	/* addresses */
	uint64_t name;		/* offset in the file, NUL-terminated; 0: none */
};

struct symbol {
	uint32_t start;		/* minus symtab.base */
	uint32_t size;
	/* offset in the string table; SYMBOL_PLT: in plt_names; SYMBOL_NAMELESS */
	uint32_t name;
};

struct symtab {
	uint64_t base;
	struct symbol *symbols;
	uint32_t count;
	const char *partial;	/* why some or all functions are missing, or NULL */
	bool is_late;		/* the file's deadline was over: some may be missing; from parser_symtab(): for want of a CPU */
	bool is_dynamic;	/* of .dynsym: static functions have no names */
	bool is_stripped;	/* of .dynsym, or there are no symbols at all */
	uint64_t go_start, go_end;	/* Go's code, by the ranges with names; equal: none */
	char *names;		/* kept string table, NUL-terminated; NULL: in the file */
	uint64_t names_offset;	/* in the file; of Go's as well, where it has those */
	uint64_t names_bytes;
	char *plt_names;	/* NUL-separated, "read@plt" */
	uint32_t plt_bytes;
	size_t bytes;		/* of memory, for the pool */
};

/* Asked to make room in POOL_SYMBOLS when a table does not fit; false: there is none. */
struct symtab_reclaim {
	bool (*make_room)(void *ctx, size_t bytes);
	void *ctx;
};

/*
 * Functions of an ELF file: .symtab, else .dynsym, its PLT, and those of the @range_count @ranges, sorted, that
 * begin in none of them. An empty table when it has none. A symbol without a size has that of the range which begins
 * there; without one it goes on to the next symbol or range, and in .dynsym it counts for nothing.
 * Charged to POOL_SYMBOLS; a table that does not fit there is cut and marked partial. -ENOBUFS: not
 * even an empty one fits.
 */
int symtab_read(const struct elf *elf, const struct function_range *ranges, size_t range_count,
		const struct symtab_reclaim *reclaim, struct symtab **ret_symtab);
/*
 * The same of MiniDebugInfo, which has a part of the file's functions: @ranges are the file's and give sizes alone, and
 * a symbol that has none counts for nothing.
 */
int symtab_read_mini(const struct elf *elf, const struct function_range *ranges, size_t range_count,
		     struct symtab **ret_symtab);
void symtab_free(struct symtab *symtab);

/* The function that holds @address, or NULL. */
const struct symbol *symtab_find(const struct symtab *symtab, uint64_t address);
static inline uint64_t symtab_start(const struct symtab *symtab, const struct symbol *symbol)
{
	return symtab->base + symbol->start;
}

static inline bool symtab_needs_file(const struct symtab *symtab, const struct symbol *symbol)
{
	return !symtab->names && !(symbol->name & SYMBOL_PLT);
}

/* Does it lack functions that the file had symbols of, once? */
static inline bool symtab_is_stripped(const struct symtab *symtab)
{
	return symtab->is_stripped;
}

static inline bool symtab_is_go(const struct symtab *symtab, uint64_t address)
{
	return address - symtab->go_start < symtab->go_end - symtab->go_start;
}

static inline bool symbol_is_named(const struct symbol *symbol)
{
	return symbol->name != SYMBOL_NAMELESS;
}

/* The name as the file has it, without a version; only if symtab_needs_file() is false. -ENODATA: none */
int symtab_name(const struct symtab *symtab, const struct symbol *symbol,
		char ret_name[static SYMTAB_NAME_MAX]);
/* "memcpy@@GLIBC_2.14" is memcpy; -ENODATA: nothing is left. */
int symtab_trim(char *name);

#endif /* STACKTAP_SYMBOL_SYMTAB_H */
