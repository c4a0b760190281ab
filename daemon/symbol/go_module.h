/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of the functions that Go's compiler inlined, and where a program has them: its moduledata tells. */
#ifndef STACKTAP_SYMBOL_GO_MODULE_H
#define STACKTAP_SYMBOL_GO_MODULE_H

#include "symbol/pclntab.h"

/* One of a function's inlined functions. */
struct go_inlined {
	uint32_t name;		/* offset from the names */
	uint32_t start_line;	/* 0: unknown */
	uint32_t call;		/* offset of an instruction that is at the line of the call, from the function's entry */
	int32_t parent;		/* inlined function that has the call; negative: none has */
	bool has_parent;	/* Go 1.18 and 1.19; later the instruction tells */
};

/* The address that lists are counted from; 0: it is not known. */
uint64_t go_module_trees(struct pclntab *pclntab);
/* Where @function's list is, from there. -ENODATA: it has none */
int go_module_tree(struct pclntab *pclntab, const struct pclntab_function *function,
		 uint32_t *ret_offset);
/* Element @i of the list at address @tree. -EBADMSG, -errno of reading */
int go_module_inlined(struct pclntab *pclntab, uint64_t tree, uint32_t i,
		      struct go_inlined *ret_inlined);

#endif /* STACKTAP_SYMBOL_GO_MODULE_H */
