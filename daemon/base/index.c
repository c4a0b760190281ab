// SPDX-License-Identifier: Apache-2.0
#include "base/index.h"

#include <string.h>

#define INDEX_MIN_SLOTS 256u
#define INDEX_KEEP_SLOTS 8192u

static size_t slots_bytes(uint32_t mask)
{
	return mask ? ((size_t)mask + 1) * sizeof(struct index_slot) : 0;
}

void index_insert(struct index *index, uint64_t hash, uint32_t position)
{
	uint32_t slot = (uint32_t)hash & index->mask;

	while (index->slots[slot].position)
		slot = (slot + 1) & index->mask;
	index->slots[slot].tag = (uint32_t)(hash >> 32);
	index->slots[slot].position = position + 1;
	index->count++;
}

int index_reserve(struct index *index, uint64_t (*hash_of)(const void *ctx, uint32_t position),
		  const void *ctx)
{
	struct index bigger = { .pool = index->pool };
	uint32_t slots = index->mask + 1, i;

	/* at most 3/4 full: every probe ends at a free slot */
	if (index->slots && index->count < slots / 4 * 3)
		return 0;
	if (slots > UINT32_MAX / 4)
		return -ENOBUFS;
	slots = index->slots ? slots * 2 : INDEX_MIN_SLOTS;
	bigger.mask = slots - 1;
	if (!pool_charge(index->pool, slots_bytes(bigger.mask)))
		return -ENOBUFS;
	bigger.slots = calloc(slots, sizeof(*bigger.slots));
	if (!bigger.slots) {
		pool_uncharge(index->pool, slots_bytes(bigger.mask));
		return -ENOMEM;
	}
	for (i = 0; i <= index->mask && index->slots; i++)
		if (index->slots[i].position)
			index_insert(&bigger, hash_of(ctx, index->slots[i].position - 1),
				     index->slots[i].position - 1);
	index_free(index);
	*index = bigger;
	return 0;
}

/* Slots that are a quarter full at most, if they can be had. */
static void index_shrink(struct index *index, uint32_t count)
{
	struct index smaller = { .pool = index->pool };
	uint32_t slots = index->mask + 1;

	while (slots > INDEX_MIN_SLOTS && count < slots / 8)
		slots /= 2;
	if (slots > index->mask)
		return;
	smaller.mask = slots - 1;
	if (!pool_charge(index->pool, slots_bytes(smaller.mask)))
		return;
	smaller.slots = calloc(slots, sizeof(*smaller.slots));
	if (!smaller.slots) {
		pool_uncharge(index->pool, slots_bytes(smaller.mask));
		return;
	}
	index_free(index);
	*index = smaller;
}

void index_rebuild(struct index *index, uint32_t count,
		   uint64_t (*hash_of)(const void *ctx, uint32_t position), const void *ctx)
{
	if (!index->slots)
		return;
	index_shrink(index, count);
	memset(index->slots, 0, slots_bytes(index->mask));
	index->count = 0;
	for (uint32_t i = 0; i < count; i++)
		index_insert(index, hash_of(ctx, i), i);
}

void index_clear(struct index *index)
{
	if (index->mask >= INDEX_KEEP_SLOTS)
		index_free(index);
	else if (index->slots)
		memset(index->slots, 0, slots_bytes(index->mask));
	index->count = 0;
}

void index_free(struct index *index)
{
	free(index->slots);
	pool_uncharge(index->pool, slots_bytes(index->mask));
	index_init(index, index->pool);
}
