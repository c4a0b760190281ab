// SPDX-License-Identifier: Apache-2.0
#include "symbol/symtab.h"

#include <string.h>

#include "base/pool.h"

enum { NESTING_MAX = 64 };	/* symbols looked at for one that encloses an address */

void symtab_free(struct symtab *symtab)
{
	if (!symtab)
		return;
	pool_uncharge(POOL_SYMBOLS, symtab->bytes);
	free(symtab->symbols);
	free(symtab->names);
	free(symtab->plt_names);
	free(symtab);
}

const struct symbol *symtab_find(const struct symtab *symtab, uint64_t address)
{
	uint64_t offset = address - symtab->base;
	uint32_t low = 0, high = symtab->count;

	if (address < symtab->base || offset > UINT32_MAX)
		return NULL;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (symtab->symbols[middle].start <= offset)
			low = middle + 1;
		else
			high = middle;
	}
	/* the nearest may be a short one nested in the one that holds the address */
	for (uint32_t i = 0; i < NESTING_MAX && low > i; i++) {
		const struct symbol *symbol = &symtab->symbols[low - 1 - i];

		if (offset - symbol->start < symbol->size)
			return symbol;
	}
	return NULL;
}

int symtab_trim(char *name)
{
	char *version = strchr(name, '@');

	if (version && version != name)
		*version = '\0';
	return name[0] ? 0 : -ENODATA;
}

int symtab_name(const struct symtab *symtab, const struct symbol *symbol,
		char ret_name[static SYMTAB_NAME_MAX])
{
	if (!symbol_is_named(symbol))
		return -ENODATA;
	if (symbol->name & SYMBOL_PLT) {
		snprintf(ret_name, SYMTAB_NAME_MAX, "%s",
			 symtab->plt_names + (symbol->name & ~SYMBOL_PLT));
		return 0;
	}
	snprintf(ret_name, SYMTAB_NAME_MAX, "%s", symtab->names + symbol->name);
	return symtab_trim(ret_name);
}
