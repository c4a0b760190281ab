// SPDX-License-Identifier: Apache-2.0
/* Any bytes as an ELF file with call frame information: a sound table or none, bounded memory. */
#include <stdint.h>
#include <stdlib.h>

#include "unwind/compile.h"
#include "unwind/listing.h"
#include "unwind/rule.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MEMORY = 32 << 20 };

static void look_at(const void *data, size_t size)
{
	struct unwind_table table;
	struct listing listing;
	char text[RULE_TEXT_MAX];
	uint64_t last = 0;

	if (unwind_table_check(data, size, &table) < 0)
		abort();
	for (listing_begin(&listing, &table); listing_next(&listing); last = listing.start) {
		if (listing.start < last ||
		    unwind_table_find(&table, listing.start) != listing.rule)
			abort();
		rule_format(machine_find(table.machine), listing.rule, text);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct compile_stats stats;
	size_t table_size;
	struct elf elf;
	void *table;

	if (elf_open_memory(&elf, data, size) < 0)
		return 0;
	if (compile_elf(&elf, MEMORY, &table, &table_size, &stats) == 0) {
		look_at(table, table_size);
		free(table);
		if (stats.memory > MEMORY)
			abort();
	}
	elf_close(&elf);
	return 0;
}
