/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows in ascending order of address, made into a table, in two passes over the same rows: the
 * first counts them, the second writes them where they belong. So nothing but rules and the table
 * itself is ever in memory. Memory is counted against a limit that its owner sets.
 */
#ifndef STACKTAP_UNWIND_BUILDER_H
#define STACKTAP_UNWIND_BUILDER_H

#include "base/index.h"
#include "unwind/machine.h"

/* What the rows' rules come to, in bytes of code. */
struct builder_cover {
	uint64_t covered;	/* by a rule or the end of the stack */
	uint64_t no_rule;
};

enum { BUILDER_RECENT = 64 };

struct builder_rule {
	struct unwind_rule rule;
	int32_t saved;
};

struct builder {
	const struct machine *machine;
	uint64_t start;			/* of the first block */
	size_t memory_limit, memory, memory_peak; /* bytes */
	bool with_saved;		/* the table has saved[] */
	bool wants_saved;		/* a rule was seen that needs it */
	struct builder_rule *rules;
	uint32_t *uses;			/* of rules; in the second pass their number in the table */
	size_t rule_count, rule_capacity;
	struct index index;		/* of these */
	uint16_t recent[BUILDER_RECENT];	/* rules that were looked up, by what most of them differ in */

	bool has_pending;		/* a row that may still be replaced */
	uint32_t pending_unit, unit;	/* unit: of the last row that is settled */
	uint16_t pending, settled;	/* their rules */
	uint32_t rows, wides;		/* settled so far */
	uint32_t blocks, spans;		/* second pass: written so far, those without rows as well */
	uint32_t indexed;		/* blocks of spans that have rows; in the first pass to their ends */
	struct builder_cover cover;

	struct unwind_table_header *table; /* second pass: the table, of @table_bytes */
	size_t table_bytes;
};

/* For code from @start on. */
int builder_init(struct builder *builder, const struct machine *machine, uint64_t start,
		 size_t memory_limit);
void builder_done(struct builder *builder);

/* Memory for somebody who works for the same limit; builder_free() with the same size. */
void *builder_alloc(struct builder *builder, size_t bytes) _must_check_;
void builder_free(struct builder *builder, void *memory, size_t bytes);

/*
 * @rule holds from @address on; addresses never descend. A second rule for one address wins.
 * -EFBIG: too far from the start, too many rules; -ENOMEM: memory or its limit; -ESTALE: the second
 * pass does not say what the first did.
 */
int builder_row(struct builder *builder, uint64_t address, const struct unwind_rule *rule);
/* With what saved[] says of it; it does not count unless builder_with_saved() was called. */
int builder_row_saved(struct builder *builder, uint64_t address, const struct unwind_rule *rule,
		      int32_t saved);

/* Begin the first pass again, now with saved[]. */
int builder_with_saved(struct builder *builder);

/* The first pass is over. -EFBIG: beyond what a table may hold. */
int builder_plan(struct builder *builder);
/* So is the second: the table, to be freed. */
int builder_finish(struct builder *builder, void **ret_data, size_t *ret_size);

#endif /* STACKTAP_UNWIND_BUILDER_H */
