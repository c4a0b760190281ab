// SPDX-License-Identifier: Apache-2.0
#include "export/known.h"

#include "base/fingerprint.h"

static uint64_t pointer_hash(const void *pointer)
{
	return fingerprint_fold((uintptr_t)pointer ^ fingerprint_key[0], fingerprint_key[1]);
}

static uint64_t hash_of(const void *ctx, uint32_t position)
{
	return pointer_hash(((const struct known_item *)ctx)[position].pointer);
}

const struct known_item *known_find(const struct known *known, const void *pointer)
{
	struct index_probe probe = index_first(&known->index, pointer_hash(pointer));
	uint32_t i;

	while ((i = index_next(&known->index, &probe)) != INDEX_NONE)
		if (known_items(known)[i].pointer == pointer)
			return &known_items(known)[i];
	return NULL;
}

int known_add(struct known *known, struct known_item item)
{
	uint32_t position = (uint32_t)known_count(known);
	int err = index_reserve(&known->index, hash_of, known->items.data);

	if (!err)
		err = buffer_append(&known->items, &item, sizeof(item));
	if (err)
		return -ENOBUFS;
	index_insert(&known->index, pointer_hash(item.pointer), position);
	return item.index;
}

void known_init(struct known *known)
{
	buffer_init(&known->items, POOL_ENCODE);
	index_init(&known->index, POOL_ENCODE);
}

void known_clear(struct known *known)
{
	known->items.size = 0;
	index_clear(&known->index);
}

void known_free(struct known *known)
{
	buffer_free(&known->items);
	index_free(&known->index);
}
