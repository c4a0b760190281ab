// SPDX-License-Identifier: Apache-2.0
#include "base/index.h"

#include <string.h>

#define INDEX_MIN_SLOTS 256u
#define INDEX_KEEP_SLOTS 8192u

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
	if (!pool_charge(index->pool, index_bytes(&bigger)))
		return -ENOBUFS;
	bigger.slots = calloc(slots, sizeof(*bigger.slots));
	if (!bigger.slots) {
		pool_uncharge(index->pool, index_bytes(&bigger));
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

static uint32_t slot_of(const struct index *index, uint64_t hash, uint32_t position)
{
	uint32_t slot = (uint32_t)hash & index->mask;

	while (index->slots[slot].position != position + 1)
		slot = (slot + 1) & index->mask;
	return slot;
}

void index_remove(struct index *index, uint64_t hash, uint32_t position,
		  uint64_t (*hash_of)(const void *ctx, uint32_t position), const void *ctx)
{
	uint32_t hole = slot_of(index, hash, position), slot = hole, from;

	while (index->slots[slot = (slot + 1) & index->mask].position) {
		from = (uint32_t)hash_of(ctx, index->slots[slot].position - 1) & index->mask;
		/* a probe for it that begins behind the hole would not pass there */
		if (((slot - from) & index->mask) < ((slot - hole) & index->mask))
			continue;
		index->slots[hole] = index->slots[slot];
		hole = slot;
	}
	index->slots[hole] = (struct index_slot){ 0 };
	index->count--;
}

void index_move(struct index *index, uint64_t hash, uint32_t from, uint32_t to)
{
	index->slots[slot_of(index, hash, from)].position = to + 1;
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
	if (!pool_charge(index->pool, index_bytes(&smaller)))
		return;
	smaller.slots = calloc(slots, sizeof(*smaller.slots));
	if (!smaller.slots) {
		pool_uncharge(index->pool, index_bytes(&smaller));
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
	memset(index->slots, 0, index_bytes(index));
	index->count = 0;
	for (uint32_t i = 0; i < count; i++)
		index_insert(index, hash_of(ctx, i), i);
}

void index_clear(struct index *index)
{
	if (index->mask >= INDEX_KEEP_SLOTS)
		index_free(index);
	else if (index->slots)
		memset(index->slots, 0, index_bytes(index));
	index->count = 0;
}

void index_free(struct index *index)
{
	free(index->slots);
	pool_uncharge(index->pool, index_bytes(index));
	index_init(index, index->pool);
}
