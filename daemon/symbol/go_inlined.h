/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists of the functions that Go's compiler inlined, and how the Go that made a program writes them.
 *
 * Nothing in the table says which Go before 1.16 that was: of the ways that there were, the one is taken by which the
 * lists make sense.
 */
#ifndef STACKTAP_SYMBOL_GO_INLINED_H
#define STACKTAP_SYMBOL_GO_INLINED_H

#include "symbol/pclntab.h"

enum go_form {
	GO_FORM_NONE,		/* before Go 1.9: nothing is inlined that could be told */
	GO_FORM_PLACES,		/* Go 1.9 to 1.11: file and line of the call */
	GO_FORM_CALLS,		/* Go 1.12 to 1.19: an instruction at the line of the call, and what has the call */
	GO_FORM_STARTS,		/* Go 1.20 and later: that instruction, which also tells what has the call */
};

struct go_lists {
	enum go_form form;
	uint8_t values, data;	/* Go's PCDATA_InlTreeIndex, FUNCDATA_InlTree */
	uint64_t base;		/* address that lists are counted from since Go 1.18; 0: unknown */
};

/* One of a function's inlined functions. */
struct go_inlined {
	uint32_t name;		/* offset from the names */
	uint32_t start_line;	/* 0: unknown */
	uint32_t call;		/* offset of an instruction that is at the line of the call, from the function's entry */
	int32_t parent;		/* inlined function that has the call; negative: none has */
	int32_t file, line;	/* of the call; by Go 1.9 to 1.11 in place of @call */
};

/* How the lists of @pclntab are written; not where they are. */
void go_inlined_form(struct pclntab *pclntab, struct go_lists *ret_lists);
/* Where @function's list is; where the base is 0, counted from it. -ENODATA: it has none */
int go_inlined_list(struct pclntab *pclntab, const struct go_lists *lists, const struct pclntab_function *function,
		    uint64_t *ret_address);
/* Element @i of the list at @address. -EBADMSG, -errno of reading */
int go_inlined_get(struct pclntab *pclntab, const struct go_lists *lists, uint64_t address, uint32_t i,
		   struct go_inlined *ret_inlined);
/* Can it be that @inlined is in a function of so many bytes? */
bool go_inlined_fits(struct pclntab *pclntab, const struct go_lists *lists, const struct go_inlined *inlined,
		     uint64_t bytes);

#endif /* STACKTAP_SYMBOL_GO_INLINED_H */
