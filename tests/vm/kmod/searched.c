// SPDX-License-Identifier: Apache-2.0
#include <stacktap/unwind_table.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../workload/spin_with.h"
#include "forge.h"
#include "frameless.h"
#include "searched.h"
#include "tables.h"

enum {
	SEARCHED_MAPPINGS = 1024,	/* of the code */
	SEARCHED_WALKS = 1 << 8,	/* that begin at different words */
	SEARCHED_DEPTH = STACKTAP_MAX_USER_FRAMES + 100,
};

/* A table with a row for each of the first @bytes bytes of code; the CFA is a word above @base. 0: refused. */
static uint64_t load_rows(struct client *client, uint64_t bytes, uint8_t base)
{
	const struct unwind_rule rule = {
		.cfa = UNWIND_VALUE | base, .cfa_offset = UNWIND_WORD,
		.ra = UNWIND_LOAD | UNWIND_BASE_CFA, .ra_offset = -UNWIND_WORD,
	};
	size_t size;
	void *table = frameless_filler(0, bytes / 256 + 1, &size);
	uint64_t id = 0;

	memcpy((char *)table + sizeof(struct unwind_table_header), &rule, sizeof(rule));
	frameless_checksum(table, size);
	if (tables_load(client, table, size, &id))
		id = 0;
	free(table);
	return id;
}

/* Our own text goes on where the frame pointer is, the code behind every word of the stack. */
bool searched_set(struct client *client, const struct searched *searched)
{
	static struct stacktap_mapping mappings[1 + SEARCHED_MAPPINGS];
	const uint64_t part = SEARCHED_CODE / SEARCHED_MAPPINGS;
	struct stacktap_image image;
	uint64_t start, end, id, code = searched->code;
	unsigned int i;

	frameless_text(&start, &end);
	mappings[0] = (struct stacktap_mapping){
		.start = start, .end = end, .bias = start,
		.table_id = load_rows(client, end - start, UNWIND_BASE_FP),
	};
	id = load_rows(client, SEARCHED_CODE, UNWIND_BASE_SP);
	for (i = 0; i < SEARCHED_MAPPINGS; i++)
		mappings[1 + i] = (struct stacktap_mapping){
			.start = code + i * part, .end = code + (i + 1) * part, .bias = code, .table_id = id,
		};
	return mappings[0].table_id && id && !tables_image(client, getpid(), &image) &&
	       !tables_set(client, &image, 1, mappings, 1 + SEARCHED_MAPPINGS);
}

bool searched_begin(struct searched *searched)
{
	struct dice dice;
	unsigned int i;

	searched->code = (uintptr_t)mmap(NULL, SEARCHED_CODE, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS,
					 -1, 0);
	dice_seed(&dice, 1);
	for (i = 0; i < SEARCHED_WORDS; i++)
		searched->words[i] = searched->code + 1 + dice_roll(&dice, SEARCHED_CODE - 1);
	return searched->code != (uintptr_t)MAP_FAILED;
}

void searched_burn(const struct searched *searched, uint64_t turns)
{
	unsigned int i, from;

	for (i = 0; i < SEARCHED_WALKS; i++) {
		/* where the walks before this one have not been for long, so that nothing is remembered */
		from = i * 37 % SEARCHED_WALKS;
		spin_with((uintptr_t)&searched->words[from * ((SEARCHED_WORDS - SEARCHED_DEPTH) / SEARCHED_WALKS)],
			  turns / SEARCHED_WALKS);
	}
}

void searched_end(struct searched *searched)
{
	munmap((void *)(uintptr_t)searched->code, SEARCHED_CODE);
}
