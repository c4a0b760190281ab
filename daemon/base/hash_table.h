/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entries that their owners hold, found by hash: each has a struct hash_link in it. Their addresses are an array,
 * in no order, which a base/index.h is over; both are charged to one pool.
 *
 * Look up:
 *	for (p = hash_table_first(t, hash); (link = hash_table_next(t, &p));)
 *		if (container_of(link, ...) is the one) ...
 */
#ifndef STACKTAP_BASE_HASH_TABLE_H
#define STACKTAP_BASE_HASH_TABLE_H

#include "base/index.h"

struct hash_link {
	uint64_t hash;
	uint32_t position;	/* in the array */
};

struct hash_table {
	struct index index;
	struct hash_link **links;
	uint32_t count, capacity;
};

static inline void hash_table_init(struct hash_table *table, enum pool_id pool)
{
	*table = (struct hash_table){ 0 };
	index_init(&table->index, pool);
}

static inline struct index_probe hash_table_first(const struct hash_table *table, uint64_t hash)
{
	return index_first(&table->index, hash);
}

/* NULL: there is no other one. */
static inline struct hash_link *hash_table_next(const struct hash_table *table, struct index_probe *probe)
{
	const uint32_t position = index_next(&table->index, probe);

	return position == INDEX_NONE ? NULL : table->links[position];
}

/* -ENOBUFS, -ENOMEM */
int hash_table_add(struct hash_table *table, struct hash_link *link, uint64_t hash) _must_check_;
/* The last one of the array takes its place there. */
void hash_table_remove(struct hash_table *table, const struct hash_link *link);
void hash_table_done(struct hash_table *table);	/* frees the table, not its entries */

#endif /* STACKTAP_BASE_HASH_TABLE_H */
