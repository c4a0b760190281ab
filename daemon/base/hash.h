/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hashing for tables in memory, and an intrusive chained table. The hash is not keyed and not
 * stable between versions: never store it, never let correctness depend on its being free of
 * collisions.
 */
#ifndef STACKTAP_BASE_HASH_H
#define STACKTAP_BASE_HASH_H

#include <string.h>

#include "base/macro.h"
#include "base/pool.h"

static inline uint64_t hash_fold(uint64_t a, uint64_t b)
{
	__extension__ unsigned __int128 product = (unsigned __int128)a * b;

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* Mix one more value into a running hash. */
static inline uint64_t hash_add(uint64_t hash, uint64_t value)
{
	return hash_fold(hash ^ 0x9e3779b97f4a7c15ULL, value ^ 0xd6e8feb86659fd93ULL);
}

static inline uint64_t hash_bytes(uint64_t hash, const void *data, size_t size)
{
	const unsigned char *bytes = data;
	uint64_t word;

	hash = hash_add(hash, size);
	for (; size >= sizeof(word); bytes += sizeof(word), size -= sizeof(word)) {
		memcpy(&word, bytes, sizeof(word));
		hash = hash_add(hash, word);
	}
	if (size) {
		word = 0;
		memcpy(&word, bytes, size);
		hash = hash_add(hash, word);
	}
	return hash;
}

static inline uint64_t hash_string(uint64_t hash, const char *text)
{
	return hash_bytes(hash, text, strlen(text));
}

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
