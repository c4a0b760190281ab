/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Interning of Functions: one for one name, source file and line, whatever objects it is found in. The table holds a
 * reference of its own to each; those that no Location holds any more go in names_sweep().
 */
#ifndef STACKTAP_RESOLVE_NAMES_H
#define STACKTAP_RESOLVE_NAMES_H

#include "helper/parser.h"
#include "profile/location.h"

struct names;

enum {
	NAMES_MAX_BYTES = 10 << 20,		/* of all Functions, half of POOL_SYMBOLS */
	NAMES_FOREIGN_MAX_BYTES = 8 << 20,	/* for programs'; the rest is the kernel's */
	NAMES_OBJECT_MAX_BYTES = 2 << 20,	/* that one object adds in one window */
};

/* @parser, which is borrowed, demangles them; NULL: they stay as they are. */
int names_new(struct parser *parser, struct names **ret_names);
void names_free(struct names *names);

/*
 * The Function of a symbol: demangled, cut to 4 KiB, valid UTF-8. A new reference. *budget: bytes
 * that new Functions may take, less those that this one took; NULL for the kernel's. -EDQUOT:
 * that, or what the table may hold, is used up; -ENOBUFS: the pool is; -EAGAIN: what it is called in its source
 * cannot be told now.
 */
int names_get(struct names *names, const char *symbol, size_t *budget,
	      struct function **ret_function);
/* The same for one of a source file, from DWARF; @filename may be NULL. */
int names_get_at(struct names *names, const char *symbol, const char *filename, int64_t start_line,
		 size_t *budget, struct function **ret_function);
/* A window begins: what is out of use is looked for again when something does not fit. */
void names_begin(struct names *names);
/* Drop what is out of use; returns how many went. */
size_t names_sweep(struct names *names);

#endif /* STACKTAP_RESOLVE_NAMES_H */
