/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A growing array of equal entries that are found by a key. Whoever owns it hashes and compares; memory is
 * POOL_REPORT's.
 */
#ifndef STACKTAP_VIEW_ROWS_H
#define STACKTAP_VIEW_ROWS_H

#include "base/buffer.h"
#include "base/index.h"

struct rows {
	struct buffer data;
	uint32_t count;
	struct index index;
};

void rows_init(struct rows *rows);
void rows_free(struct rows *rows);
/* -E2BIG when memory is used up. @hash_of gets the array and a position in it. */
int rows_add(struct rows *rows, uint64_t hash,
	     uint64_t (*hash_of)(const void *ctx, uint32_t position), const void *row,
	     size_t size, uint32_t *ret_position);

/* Sums do not wrap, whatever the file says. */
static inline void rows_sum(uint64_t *sum, uint64_t value)
{
	if (__builtin_add_overflow(*sum, value, sum))
		*sum = UINT64_MAX;
}

#endif /* STACKTAP_VIEW_ROWS_H */
