/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows in ascending order of address, made into a table. Memory is counted against a limit that its
 * owner sets.
 */
#ifndef STACKTAP_UNWIND_BUILDER_H
#define STACKTAP_UNWIND_BUILDER_H

#include "unwind/machine.h"

struct builder {
	const struct machine *machine;
	uint64_t start;			/* of the first block */
	size_t memory_limit, memory;	/* bytes */
	uint32_t *units;		/* of rows, from start */
	uint16_t *numbers;		/* of their rules */
	size_t count, capacity;
	struct unwind_rule *rules;
	size_t rule_count, rule_capacity;
	uint16_t *slots;		/* by hash: number of a rule + 1 */
	size_t slot_count;		/* a power of two */
	uint16_t last;			/* the rule looked up last */
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
 * -EFBIG: too far from the start; -ENOMEM: memory or its limit.
 */
int builder_row(struct builder *builder, uint64_t address, const struct unwind_rule *rule);

/* The table, to be freed. -EFBIG: beyond what a table may hold. */
int builder_finish(struct builder *builder, void **ret_data, size_t *ret_size);

#endif /* STACKTAP_UNWIND_BUILDER_H */
