/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which functions a kernel module's file has, by name: a frame whose recorded function the file has elsewhere than at the
 * frame's address proves that the module's code is not where it is expected to be.
 */
#ifndef STACKTAP_CLI_MODULE_FUNCTIONS_H
#define STACKTAP_CLI_MODULE_FUNCTIONS_H

#include "base/buffer.h"
#include "cli/debugfile.h"

struct module_functions {
	struct buffer names;		/* struct module_function, sorted */
	struct symtab *symtab;		/* NULL: cannot be read */
	bool has_looked;
};

void module_functions_init(struct module_functions *functions);
void module_functions_free(struct module_functions *functions);
/*
 * Has @file, always the same, whose names are read at the first time, @name, as linkers know it, and nowhere in the function
 * that holds @address? What cannot be read proves nothing.
 */
bool module_functions_elsewhere(struct module_functions *functions, struct parser *parser, const struct debugfile *file,
				uint64_t address, const char *name);

#endif /* STACKTAP_CLI_MODULE_FUNCTIONS_H */
