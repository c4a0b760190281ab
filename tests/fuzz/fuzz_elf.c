// SPDX-License-Identifier: Apache-2.0
/*
 * Any bytes as a mapped file: facts, functions by unwind information, symbols, those inside, and the names of
 * each. No crash, no name beyond its limit, symbols in order, all memory back.
 */
#include <stdlib.h>
#include <string.h>

#include "base/pool.h"
#include "symbol/demangle.h"
#include "symbol/facts.h"
#include "symbol/symtab.h"
#include "unwind/functions.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void look_at_facts(const struct elf *elf)
{
	struct object object = { .kind = OBJECT_FILE };

	if (!facts_read(elf, &object) && object.segment_count > OBJECT_SEGMENTS_MAX)
		abort();
	if (strnlen(object.build_id, sizeof(object.build_id)) == sizeof(object.build_id))
		abort();
	pool_uncharge(POOL_PROCESSES, object.segment_count * sizeof(*object.segments));
	free(object.segments);
}

static void look_at_symbols(struct symtab *symtab)
{
	static char name[SYMTAB_NAME_MAX];

	for (uint32_t i = 0; i < symtab->count; i++) {
		const struct symbol *symbol = &symtab->symbols[i];

		if (i && symbol->start < symtab->symbols[i - 1].start)
			abort();
		symtab_find(symtab, symtab_start(symtab, symbol));
		if (symbol_is_named(symbol) && !symtab_needs_file(symtab, symbol) &&
		    !symtab_name(symtab, symbol, name) && strlen(name) >= sizeof(name))
			abort();
	}
	symtab_free(symtab);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct function_range *ranges = NULL;
	struct symtab *symtab;
	size_t count = 0;
	struct elf elf;

	if (elf_open_memory(&elf, data, size) < 0)
		return 0;
	look_at_facts(&elf);
	functions_read(&elf, &ranges, &count);
	if (!symtab_read(&elf, ranges, count, NULL, &symtab))
		look_at_symbols(symtab);
	if (!symtab_read_mini(&elf, ranges, count, &symtab))
		look_at_symbols(symtab);
	free(ranges);
	elf_close(&elf);
	if (pool_get(POOL_SYMBOLS)->used || pool_get(POOL_PROCESSES)->used)
		abort();
	return 0;
}
