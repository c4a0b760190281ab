/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hashing for tables in memory, and an intrusive chained table. The hash is SipHash-1-3 with a key
 * that is random in each process, so that who chooses keys of a table cannot choose where they go.
 * Never store it, never let a result depend on it or on its being free of collisions.
 */
#ifndef STACKTAP_BASE_HASH_H
#define STACKTAP_BASE_HASH_H

#include <string.h>

#include "base/macro.h"
#include "base/pool.h"

/* Of a table's keys. */
uint64_t hash_bytes(const void *data, size_t size);

static inline uint64_t hash_words(const uint64_t *words, size_t count)
{
	return hash_bytes(words, count * sizeof(*words));
}

static inline uint64_t hash_string(const char *text)
{
	return hash_bytes(text, strlen(text));
}

/*
 * A key that is known instead of the random one, for who wants the same tables in each run. Before
 * the first table is made: what tables hold is not found by another key.
 */
void hash_set_key(uint64_t low, uint64_t high);

struct hash_link {
	struct hash_link *next;
	uint64_t hash;
};

/* Grows with its entries, whose memory is their owner's; buckets are charged to @pool. */
struct hash_table {
	struct hash_link **buckets;
	size_t size;		/* a power of two, 0: nothing allocated */
	size_t count;
	enum pool_id pool;
};

int hash_table_add(struct hash_table *table, struct hash_link *link, uint64_t hash) _must_check_;
void hash_table_remove(struct hash_table *table, struct hash_link *link);
void hash_table_done(struct hash_table *table);	/* frees buckets, not entries */

/* First link with this hash, then the others. */
static inline struct hash_link *hash_link_match(struct hash_link *link, uint64_t hash)
{
	while (link && link->hash != hash)
		link = link->next;
	return link;
}

static inline struct hash_link *hash_table_first(const struct hash_table *table, uint64_t hash)
{
	return table->size ? hash_link_match(table->buckets[hash & (table->size - 1)], hash) : NULL;
}

static inline struct hash_link *hash_table_next(const struct hash_link *link)
{
	return hash_link_match(link->next, link->hash);
}

#endif /* STACKTAP_BASE_HASH_H */
