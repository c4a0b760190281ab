/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of a table one after the other. */
#ifndef STACKTAP_UNWIND_LISTING_H
#define STACKTAP_UNWIND_LISTING_H

#include <stacktap/unwind_table.h>

#include "base/macro.h"

struct listing {
	const struct unwind_table *table;
	uint32_t block, row;
	uint64_t start, end;		/* of the current row */
	const struct unwind_rule *rule;
};

/* Before the first row; zeroed but for the table. */
static inline void listing_begin(struct listing *listing, const struct unwind_table *table)
{
	*listing = (struct listing){ .table = table };
}

static inline uint64_t listing_address(const struct listing *listing, uint32_t block, uint32_t row)
{
	uint64_t unit = (uint64_t)block << UNWIND_BLOCK_SHIFT;

	if (row >= listing->table->row_count)
		return listing->table->start + listing->table->bytes;
	return listing->table->start +
	       ((unit + (listing->table->rows[row] & 0xff)) << listing->table->shift);
}

/* The block of @row, which is at or behind @block. */
static inline uint32_t listing_block(const struct listing *listing, uint32_t block, uint32_t row)
{
	while (block + 1 < listing->table->block_count &&
	       unwind_table_row(listing->table, block + 1) <= row)
		block++;
	return block;
}

static inline bool listing_next(struct listing *listing)
{
	uint32_t row = listing->row;

	if (row >= listing->table->row_count)
		return false;
	listing->block = listing_block(listing, listing->block, row);
	listing->start = listing_address(listing, listing->block, row);
	listing->rule = unwind_table_rule(listing->table, row);
	listing->row++;
	listing->end = listing_address(listing, listing_block(listing, listing->block, row + 1),
				       row + 1);
	return true;
}

#endif /* STACKTAP_UNWIND_LISTING_H */
