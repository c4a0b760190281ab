// SPDX-License-Identifier: Apache-2.0
/*
 * Any bytes as tables, mappings, registers and memory: the check refuses, or what it lets pass is
 * safe to look up and to walk with, in bounded steps, and a walk that remembers finds the same.
 *
 * Input: a length (u16), so many bytes of table, then the machine, registers, mappings and stack.
 */
#include <linux/types.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define STACK 0x10000ULL
#define LIMIT 0x7ffffffff000ULL

enum {
	FRAMES = 200,
	READS_PER_FRAME = 6,
};

struct memory {
	const uint8_t *data;
	size_t size;
	size_t reads;
};

static inline int unwind_read_word(void *ctx, uint64_t address, __u64 *ret_value)
{
	struct memory *memory = ctx;

	memory->reads++;
	if (address % 8 || address > LIMIT - 8)
		abort();
	if (memory->size < 8)
		return -1;
	/* everything is readable: the input over and over */
	memcpy(ret_value, memory->data + address % (memory->size - 7), 8);
	return 0;
}

#include <stacktap/unwind.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool take(const uint8_t **data, size_t *size, void *to, size_t bytes)
{
	if (*size < bytes)
		return false;
	memcpy(to, *data, bytes);
	*data += bytes;
	*size -= bytes;
	return true;
}

/* A table in memory of exactly its size, with the right checksum: the fuzzer cannot guess that. */
static void *seal(const uint8_t *data, size_t size, struct unwind_table *ret_table)
{
	struct unwind_table_header *header;
	void *copy = NULL;

	if (size < sizeof(*header) || size % 8 || posix_memalign(&copy, 8, size))
		return NULL;
	memcpy(copy, data, size);
	header = copy;
	header->magic = UNWIND_TABLE_MAGIC;
	header->version = UNWIND_TABLE_VERSION;
	header->checksum = unwind_table_checksum(copy, size);
	if (unwind_table_check(copy, size, ret_table) == 0)
		return copy;
	free(copy);
	return NULL;
}

static void look_up(const struct unwind_table *table)
{
	uint64_t step = table->bytes / 997 + 1;

	for (uint64_t offset = 0; offset < table->bytes; offset += step)
		unwind_table_find(table, table->start + offset);
	unwind_table_find(table, table->start + table->bytes);
	unwind_table_find(table, table->start - 1);
}

static int run(struct unwind_walk *w, struct memory *memory)
{
	int end;

	memory->reads = 0;
	unwind_walk_begin(w);
	do
		end = unwind_walk_run(w, memory, w->count + 7);
	while (end == STACKTAP_END_NONE);
	if (w->count > FRAMES || w->exact_count > 3 || end >= STACKTAP_END_REASONS ||
	    memory->reads > (size_t)READS_PER_FRAME * (FRAMES + 1))
		abort();
	return end;
}

/* Once to learn, and once with what was learnt, the walk comes to the same as @plain did. */
static void walk_remembering(const struct unwind_walk *begin, const struct unwind_walk *plain, int end,
			     struct memory *memory)
{
	static struct unwind_memo memo;
	static __u64 list;
	__u64 ips[FRAMES];
	uint16_t exact[3];

	list++;
	for (int i = 0; i < 2; i++) {
		struct unwind_walk w = *begin;

		w.memo = &memo;
		w.memo_tag = unwind_memo_tag(list, (__u64)i);
		w.ips = ips;
		w.exact = exact;
		if (run(&w, memory) != end || w.count != plain->count ||
		    w.exact_count != plain->exact_count || w.fp_count != plain->fp_count ||
		    memcmp(ips, plain->ips, w.count * sizeof(ips[0])) ||
		    memcmp(exact, plain->exact, w.exact_count * sizeof(exact[0])))
			abort();
	}
}

static void walk(const struct unwind_table *table, const uint8_t *data, size_t size)
{
	struct unwind_mapping mappings[2] = { 0 };
	__u64 regs[33], ips[FRAMES], places[6];
	uint16_t exact[3];
	struct memory memory;
	struct unwind_walk begin, w = {
		.regs = regs, .reg_count = 33, .machine = UNWIND_MACHINE_X86_64,
		.address_limit = LIMIT, .mappings = mappings, .mapping_count = 2,
		.ips = ips, .max = FRAMES, .exact = exact, .max_exact = 3,
	};

	if (!take(&data, &size, regs, sizeof(regs)) || !take(&data, &size, places, sizeof(places)))
		return;
	if (places[0] & 1)
		w.machine = UNWIND_MACHINE_AARCH64;
	w.pc = places[1];
	w.sp = places[2] & ~7ULL;
	w.fp = places[3];
	w.pac_mask = places[0] & 2 ? 0x7fULL << 48 : 0;
	mappings[0] = (struct unwind_mapping){ .start = places[4] & (LIMIT - 1), .table = table };
	mappings[0].end = mappings[0].start + table->bytes;
	mappings[0].bias = mappings[0].start - table->start;
	mappings[1] = (struct unwind_mapping){ .start = mappings[0].end, .end = UINT64_MAX };
	memory = (struct memory){ .data = data, .size = size };
	begin = w;
	walk_remembering(&begin, &w, run(&w, &memory), &memory);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct unwind_table table;
	uint16_t length;
	void *sealed;

	if (!take(&data, &size, &length, sizeof(length)) || length > size)
		return 0;
	sealed = seal(data, length, &table);
	if (!sealed)
		return 0;
	look_up(&table);
	walk(&table, data + length, size - length);
	free(sealed);
	return 0;
}
