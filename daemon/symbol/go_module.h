/* SPDX-License-Identifier: Apache-2.0 */
/* Where the lists of inlined functions are since Go 1.18: a program's moduledata tells. */
#ifndef STACKTAP_SYMBOL_GO_MODULE_H
#define STACKTAP_SYMBOL_GO_MODULE_H

#include "symbol/go_inlined.h"

/* The address that lists of this form are counted from; 0: it is not known. */
uint64_t go_module_base(struct pclntab *pclntab, const struct go_lists *form);

#endif /* STACKTAP_SYMBOL_GO_MODULE_H */
