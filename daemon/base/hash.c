// SPDX-License-Identifier: Apache-2.0
#include "base/hash.h"

enum {
	HASH_TABLE_MIN = 64,
};

static int hash_table_resize(struct hash_table *table, size_t size)
{
	struct hash_link **buckets;

	if (!pool_charge(table->pool, size * sizeof(*buckets)))
		return -ENOBUFS;
	buckets = calloc(size, sizeof(*buckets));
	if (!buckets) {
		pool_uncharge(table->pool, size * sizeof(*buckets));
		return -ENOMEM;
	}
	for (size_t i = 0; i < table->size; i++) {
		struct hash_link *link = table->buckets[i];

		while (link) {
			struct hash_link *next = link->next;
			struct hash_link **bucket = &buckets[link->hash & (size - 1)];

			link->next = *bucket;
			*bucket = link;
			link = next;
		}
	}
	pool_uncharge(table->pool, table->size * sizeof(*buckets));
	free(table->buckets);
	table->buckets = buckets;
	table->size = size;
	return 0;
}

int hash_table_add(struct hash_table *table, struct hash_link *link, uint64_t hash)
{
	struct hash_link **bucket;

	if (table->count >= table->size) {
		int r = hash_table_resize(table, table->size ? 2 * table->size : HASH_TABLE_MIN);

		/* longer chains are slower, not wrong: only the first allocation must succeed */
		if (r < 0 && !table->size)
			return r;
	}
	bucket = &table->buckets[hash & (table->size - 1)];
	link->hash = hash;
	link->next = *bucket;
	*bucket = link;
	table->count++;
	return 0;
}

void hash_table_remove(struct hash_table *table, struct hash_link *link)
{
	struct hash_link **p = &table->buckets[link->hash & (table->size - 1)];

	while (*p != link)
		p = &(*p)->next;
	*p = link->next;
	link->next = NULL;
	table->count--;
}

void hash_table_done(struct hash_table *table)
{
	pool_uncharge(table->pool, table->size * sizeof(*table->buckets));
	free(table->buckets);
	table->buckets = NULL;
	table->size = 0;
	table->count = 0;
}
