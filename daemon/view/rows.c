// SPDX-License-Identifier: Apache-2.0
#include "view/rows.h"

#define LARGE ((size_t)32 << 20)

void rows_init(struct rows *rows)
{
	*rows = (struct rows){ 0 };
	buffer_init(&rows->data, POOL_REPORT);
	index_init(&rows->index, POOL_REPORT);
}

void rows_free(struct rows *rows)
{
	buffer_free(&rows->data);
	index_free(&rows->index);
	rows_init(rows);
}

int rows_add(struct rows *rows, uint64_t hash,
	     uint64_t (*hash_of)(const void *ctx, uint32_t position), const void *row,
	     size_t size, uint32_t *ret_position)
{
	/* what is large grows by less than the half that a buffer does: nothing is moved, and memory is limited */
	if (rows->data.capacity >= LARGE && rows->data.capacity - rows->data.size < size)
		buffer_fit(&rows->data, rows->data.capacity + rows->data.capacity / 8);
	if (rows->count >= INDEX_NONE - 1 ||
	    index_reserve(&rows->index, hash_of, rows->data.data) ||
	    buffer_append(&rows->data, row, size))
		return -E2BIG;
	index_insert(&rows->index, hash, rows->count);
	*ret_position = rows->count++;
	return 0;
}
