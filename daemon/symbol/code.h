/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions that a runtime compiled and says where they are, in a file that grows: a perf map (symbol/perf_map.h) or
 * a jitdump (symbol/jitdump.h). 16 bytes for each; their names stay in the file.
 *
 * Memory of code is used again, so where two overlap the later one counts, and what is left of the earlier one
 * stays. Of more than CODE_MAX the earliest in the file go.
 */
#ifndef STACKTAP_SYMBOL_CODE_H
#define STACKTAP_SYMBOL_CODE_H

#include "base/macro.h"

enum {
	CODE_MAX = 64 << 10,	/* functions of one process */
	CODE_NAME_MAX = 4096,	/* with the NUL; longer ones are cut */
};

#define CODE_FILE_MAX ((uint64_t)2 << 30) /* bytes that are read of a file */

struct code {
	uint64_t start;		/* run-time address */
	uint32_t size;
	uint32_t name;		/* offset in the file */
};

/* Sorted, without overlap. */
struct code_table {
	struct code *codes;
	uint32_t count;
	uint64_t dropped;	/* functions that there was no room for */
};

/* What reading a file from some offset on found; thread B's copy has passed through a memfd. */
struct code_read {
	struct code_table table;
	uint64_t end;		/* all before this was read: go on here */
	uint64_t bad;		/* lines or records that are none */
	bool needs_all;		/* it tells of code before the offset: read all of it */
};

void code_table_free(struct code_table *table);	/* its codes; an empty table is fine */

/* Put those of @over, which are later, over those of @table. -ENOMEM: the table is as it was. */
int code_table_lay(struct code_table *table, const struct code_table *over);
/* Memory that code_table_lay() takes at most, beside what both have. */
size_t code_table_lay_bytes(const struct code_table *table, const struct code_table *over);

/* The function that holds @address, or NULL. */
const struct code *code_table_find(const struct code_table *table, uint64_t address);

/* Are they what a table has, and do their names begin before @end? */
bool code_table_is_valid(const struct code_table *table, uint64_t end);

/* Collects functions in the order of their age, that may overlap; the table takes them in batches. */
struct code_batch {
	struct code_table *table;
	struct code *codes;
	size_t count;
};

int code_batch_add(struct code_batch *batch, uint64_t start, uint64_t size, uint64_t name);
int code_batch_flush(struct code_batch *batch);
void code_batch_free(struct code_batch *batch);

#endif /* STACKTAP_SYMBOL_CODE_H */
