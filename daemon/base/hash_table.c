// SPDX-License-Identifier: Apache-2.0
#include "base/hash_table.h"

enum { CAPACITY_MIN = 64 };

static uint64_t hash_of(const void *ctx, uint32_t position)
{
	return ((struct hash_link *const *)ctx)[position]->hash;
}

static int grow(struct hash_table *table)
{
	const uint32_t capacity = table->capacity ? table->capacity + table->capacity / 2 : CAPACITY_MIN;
	const size_t bytes = (capacity - table->capacity) * sizeof(*table->links);
	struct hash_link **links;

	if (table->count < table->capacity)
		return 0;
	if (!pool_charge(table->index.pool, bytes))
		return -ENOBUFS;
	links = reallocarray(table->links, capacity, sizeof(*links));
	if (!links) {
		pool_uncharge(table->index.pool, bytes);
		return -ENOMEM;
	}
	table->links = links;
	table->capacity = capacity;
	return 0;
}

int hash_table_add(struct hash_table *table, struct hash_link *link, uint64_t hash)
{
	int r = grow(table);

	r = r ?: index_reserve(&table->index, hash_of, table->links);
	if (r < 0)
		return r;
	link->hash = hash;
	link->position = table->count;
	table->links[table->count] = link;
	index_insert(&table->index, hash, table->count++);
	return 0;
}

void hash_table_remove(struct hash_table *table, const struct hash_link *link)
{
	struct hash_link *last = table->links[table->count - 1];

	index_remove(&table->index, link->hash, link->position, hash_of, table->links);
	if (last != link) {
		index_move(&table->index, last->hash, last->position, link->position);
		last->position = link->position;
		table->links[last->position] = last;
	}
	table->count--;
}

void hash_table_done(struct hash_table *table)
{
	pool_uncharge(table->index.pool, table->capacity * sizeof(*table->links));
	free(table->links);
	index_free(&table->index);
	hash_table_init(table, table->index.pool);
}
