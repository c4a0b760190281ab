// SPDX-License-Identifier: Apache-2.0
/*
 * Any bytes as a mapped file: facts, functions by unwind information, symbols, those inside, the names of
 * each, and Go's lines. No crash, no name beyond its limit, symbols in order, all memory back.
 */
#include <stdlib.h>
#include <string.h>

#include "base/pool.h"
#include "symbol/demangle.h"
#include "symbol/facts.h"
#include "symbol/go_lines.h"
#include "symbol/symtab.h"
#include "unwind/functions.h"

enum { GO_FUNCTIONS = 64, GO_FRAMES = 256 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void look_at_facts(const struct elf *elf)
{
	struct object object = { .kind = OBJECT_FILE };
	char go_build_id[ELF_GO_BUILD_ID_MAX];

	elf_go_build_id(elf, go_build_id);
	if (strnlen(go_build_id, sizeof(go_build_id)) == sizeof(go_build_id))
		abort();
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

static void see_frame(void *ctx, const struct go_frame *frame)
{
	if (++*(unsigned int *)ctx > GO_FRAMES || strlen(frame->name) >= SYMTAB_NAME_MAX ||
	    strlen(frame->file) >= SYMTAB_NAME_MAX)
		abort();
}

static void look_at_go_lines(const struct elf *elf, const struct function_range *ranges, size_t count)
{
	struct go_lines *go;

	if (go_lines_open(elf, &go) < 0)
		return;
	for (size_t i = 0; i < count && i < GO_FUNCTIONS; i++)
		for (size_t k = 0; k < 3; k++) {
			unsigned int frames = 0;
			int r = go_lines_find(go, ranges[i].start + k * (ranges[i].end - ranges[i].start) / 2,
					      see_frame, &frames);

			if ((r == 0) != (frames > 0))
				abort();
		}
	go_lines_free(go);
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
	look_at_go_lines(&elf, ranges, count);
	free(ranges);
	elf_close(&elf);
	if (pool_get(POOL_SYMBOLS)->used || pool_get(POOL_PROCESSES)->used)
		abort();
	return 0;
}
