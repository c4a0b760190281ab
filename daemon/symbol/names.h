/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Interning of Functions: one for one name, whatever objects it is found in. The table holds a
 * reference of its own to each; those that no Location holds any more go in names_sweep().
 */
#ifndef STACKTAP_SYMBOL_NAMES_H
#define STACKTAP_SYMBOL_NAMES_H

#include "profile/location.h"

struct names;

int names_new(struct names **ret_names);
void names_free(struct names *names);

/* The Function of a symbol: demangled, cut to 4 KiB, valid UTF-8. A new reference. */
int names_get(struct names *names, const char *symbol, struct function **ret_function);
/* Drop what is out of use; returns how many went. */
size_t names_sweep(struct names *names);

#endif /* STACKTAP_SYMBOL_NAMES_H */
