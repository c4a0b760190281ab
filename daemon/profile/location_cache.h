/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Thread A's Locations, kept from window to window so that each is named once. An object's Locations
 * are shared by all processes that map it. Those that no recent window used are dropped, those that thread B
 * put off, and all that the open window does not use when memory is short.
 */
#ifndef STACKTAP_PROFILE_LOCATION_CACHE_H
#define STACKTAP_PROFILE_LOCATION_CACHE_H

#include "base/index.h"
#include "profile/location.h"

struct location_entry;

struct location_cache {
	struct location_entry *entries;
	uint32_t count, capacity;
	uint32_t epoch;		/* counts windows */
	struct index index;
};

void location_cache_init(struct location_cache *cache);
void location_cache_free(struct location_cache *cache);

/*
 * Borrowed, valid until the next location_cache_evict() or _advance(). *ret_is_first: not asked for
 * in this window before. -ENOBUFS: out of pool memory.
 */
int location_cache_get(struct location_cache *cache, struct mapped_file *file, uint64_t offset,
		       enum frame_type type, bool is_return, struct location **ret_location,
		       bool *ret_is_first);

/* Drop what the open window does not use; true when there was something. */
bool location_cache_evict(struct location_cache *cache);
/* The next window begins. */
void location_cache_advance(struct location_cache *cache);

#endif /* STACKTAP_PROFILE_LOCATION_CACHE_H */
