// SPDX-License-Identifier: Apache-2.0
#include "profile/location_cache.h"

#include "base/fingerprint.h"

#define CACHE_WINDOWS 8		/* windows that an unused Location survives */

struct location_entry {
	struct location *location;
	const void *owner;	/* object or mapped file; kept alive by the Location's file */
	uint32_t epoch;		/* of its last use */
};

void location_cache_init(struct location_cache *cache)
{
	*cache = (struct location_cache){ .epoch = 1 };
	index_init(&cache->index, POOL_AGGREGATE);
}

void location_cache_free(struct location_cache *cache)
{
	for (uint32_t i = 0; i < cache->count; i++)
		location_unref(cache->entries[i].location);
	pool_uncharge(POOL_AGGREGATE, cache->capacity * sizeof(*cache->entries));
	free(cache->entries);
	index_free(&cache->index);
	location_cache_init(cache);
}

static uint64_t key_hash(const void *owner, uint64_t offset, enum frame_type type, bool is_return)
{
	struct fingerprint print = fingerprint_start((uintptr_t)owner);

	fingerprint_mix(&print, offset, (uint64_t)type << 1 | is_return);
	return fingerprint_end(print).lo;
}

static uint64_t entry_hash(const void *ctx, uint32_t position)
{
	const struct location_entry *entry = (const struct location_entry *)ctx + position;
	const struct location *location = entry->location;

	return key_hash(entry->owner, location->offset, location->type, location->is_return);
}

static int cache_grow(struct location_cache *cache)
{
	uint32_t capacity = cache->capacity ? cache->capacity + cache->capacity / 2 : 256;
	size_t bytes = (capacity - cache->capacity) * sizeof(*cache->entries);
	struct location_entry *entries;

	if (cache->count < cache->capacity)
		return 0;
	if (!pool_charge(POOL_AGGREGATE, bytes))
		return -ENOBUFS;
	entries = reallocarray(cache->entries, capacity, sizeof(*entries));
	if (!entries) {
		pool_uncharge(POOL_AGGREGATE, bytes);
		return -ENOMEM;
	}
	cache->entries = entries;
	cache->capacity = capacity;
	return 0;
}

/* Processes that map one content share its Locations once thread B has found that content. */
static const void *owner_of(const struct mapped_file *file)
{
	const struct object *object = file ? mapped_file_object(file) : NULL;

	if (object && atomic_load_explicit(&object->state, memory_order_acquire) == OBJECT_READY)
		return object;
	return file;
}

int location_cache_get(struct location_cache *cache, struct mapped_file *file, uint64_t offset,
		       enum frame_type type, bool is_return, struct location **ret_location,
		       bool *ret_is_first)
{
	const void *owner = owner_of(file);
	uint64_t hash = key_hash(owner, offset, type, is_return);
	struct index_probe probe = index_first(&cache->index, hash);
	struct location_entry *entry;
	struct location *location;
	uint32_t i;
	int err;

	while ((i = index_next(&cache->index, &probe)) != INDEX_NONE) {
		entry = &cache->entries[i];
		location = entry->location;
		if (entry->owner != owner || location->offset != offset ||
		    location->type != type || location->is_return != is_return)
			continue;
		*ret_is_first = entry->epoch != cache->epoch;
		entry->epoch = cache->epoch;
		*ret_location = location;
		return 0;
	}

	err = cache_grow(cache);
	if (err)
		return err;
	err = index_reserve(&cache->index, entry_hash, cache->entries);
	if (err)
		return err;
	location = location_new(file, offset, type, is_return);
	if (!location)
		return -ENOBUFS;
	cache->entries[cache->count] = (struct location_entry){
		.location = location,
		.owner = owner,
		.epoch = cache->epoch,
	};
	index_insert(&cache->index, hash, cache->count++);
	*ret_location = location;
	*ret_is_first = true;
	return 0;
}

/* Nobody but this cache gives out a Location, so one that is dropped is looked up anew under the same key. */
static bool is_put_off(const struct location *location)
{
	return atomic_load_explicit(&location->is_put_off, memory_order_relaxed);
}

static bool cache_drop(struct location_cache *cache, uint32_t windows)
{
	uint32_t kept = 0;
	bool dropped;

	for (uint32_t i = 0; i < cache->count; i++) {
		if (cache->epoch - cache->entries[i].epoch > windows ||
		    (windows && is_put_off(cache->entries[i].location)))
			location_unref(cache->entries[i].location);
		else
			cache->entries[kept++] = cache->entries[i];
	}
	dropped = kept != cache->count;
	cache->count = kept;
	if (!dropped)
		return false;
	index_rebuild(&cache->index, kept, entry_hash, cache->entries);
	return true;
}

bool location_cache_evict(struct location_cache *cache)
{
	return cache_drop(cache, 0);
}

void location_cache_advance(struct location_cache *cache)
{
	cache->epoch++;
	cache_drop(cache, CACHE_WINDOWS);
}
