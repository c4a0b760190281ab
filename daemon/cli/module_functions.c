// SPDX-License-Identifier: Apache-2.0
#include "cli/module_functions.h"

#include <string.h>

struct module_function {
	char *name;
	uint64_t start;
};

static struct module_function *function_at(const struct module_functions *functions, size_t i)
{
	return &((struct module_function *)(void *)functions->names.data)[i];
}

static size_t function_count(const struct module_functions *functions)
{
	return functions->names.size / sizeof(struct module_function);
}

void module_functions_init(struct module_functions *functions)
{
	*functions = (struct module_functions){ .has_looked = false };
	buffer_init(&functions->names, POOL_REPORT);
}

void module_functions_free(struct module_functions *functions)
{
	for (size_t i = 0; i < function_count(functions); i++)
		free(function_at(functions, i)->name);
	buffer_free(&functions->names);
	symtab_free(functions->symtab);
}

static bool no_room(void *ctx _unused_, size_t bytes _unused_)
{
	return false;
}

static int by_name(const void *a, const void *b)
{
	const struct module_function *x = a, *y = b;

	return strcmp(x->name, y->name);
}

static int against_name(const void *name, const void *function)
{
	return strcmp(name, ((const struct module_function *)function)->name);
}

static void look(struct module_functions *functions, struct parser *parser, const struct debugfile *file)
{
	const struct symtab_reclaim reclaim = { .make_room = no_room };
	const struct symtab *symtab;

	if (parser_symtab(parser, file->object, file->fd, &reclaim, &functions->symtab) < 0)
		functions->symtab = NULL;
	symtab = functions->symtab;
	for (uint32_t i = 0; symtab && i < symtab->count; i++) {
		const struct symbol *symbol = &symtab->symbols[i];
		struct module_function function = { .start = symtab_start(symtab, symbol) };
		char name[SYMTAB_NAME_MAX];

		if (!symbol_is_named(symbol) || parser_name(parser, file->object, file->fd, symtab, symbol, name) < 0)
			continue;
		function.name = strdup(name);
		if (!function.name || buffer_append(&functions->names, &function, sizeof(function)))
			free(function.name);
	}
	if (function_count(functions))
		qsort(functions->names.data, function_count(functions), sizeof(struct module_function), by_name);
}

bool module_functions_elsewhere(struct module_functions *functions, struct parser *parser, const struct debugfile *file,
				uint64_t address, const char *name)
{
	const struct module_function *found, *end;
	const struct symbol *symbol;
	uint64_t start;

	if (!functions->has_looked)
		look(functions, parser, file);
	functions->has_looked = true;
	if (!function_count(functions))
		return false;
	found = bsearch(name, functions->names.data, function_count(functions), sizeof(*found), against_name);
	if (!found)
		return false;
	symbol = symtab_find(functions->symtab, address);
	start = symbol ? symtab_start(functions->symtab, symbol) : address;
	end = function_at(functions, function_count(functions));
	while (found > function_at(functions, 0) && !against_name(name, found - 1))
		found--;
	/* static functions may share a name, and labels are inside of functions */
	for (; found < end && !against_name(name, found); found++)
		if (found->start >= start && found->start <= address)
			return false;
	return true;
}
