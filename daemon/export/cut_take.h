/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers and texts out of a cut (export/cut_format.h), and what their indices count in. is_bad is true
 * after the first that is not there or not in its range; indices and texts are 0 and empty from then on.
 */
#ifndef STACKTAP_EXPORT_CUT_TAKE_H
#define STACKTAP_EXPORT_CUT_TAKE_H

#include "base/macro.h"

struct cut_bytes {
	const uint8_t *at, *end;
	bool is_bad;
};

/* Charged to POOL_AGGREGATE; what it points to is its owner's. */
struct cut_table {
	void **items;
	uint32_t count, capacity;
};

uint64_t cut_take(struct cut_bytes *bytes);
int64_t cut_take_signed(struct cut_bytes *bytes);
/* One below @limit. */
uint32_t cut_take_below(struct cut_bytes *bytes, uint64_t limit);
uint32_t cut_take_word(struct cut_bytes *bytes);
/* Of a size that is told. */
uint8_t cut_take8(struct cut_bytes *bytes);
uint16_t cut_take16(struct cut_bytes *bytes);
uint32_t cut_take32(struct cut_bytes *bytes);
/* @most of them; valid as long as the cut. */
const uint8_t *cut_take_bytes(struct cut_bytes *bytes, size_t most, size_t *ret_size);
/* To @ret_text, of @room bytes with the NUL. */
void cut_take_text(struct cut_bytes *bytes, char *ret_text, size_t room);
/* Index + 1 of what is in a table; NULL: 0. */
void *cut_take_item(struct cut_bytes *bytes, const struct cut_table *table);

int cut_table_add(struct cut_table *table, void *item);	/* -ENOBUFS, -ENOMEM */
void cut_table_free(struct cut_table *table);

#endif /* STACKTAP_EXPORT_CUT_TAKE_H */
