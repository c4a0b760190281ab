/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compiled tables on disk, so that a daemon that starts again only reads them.
 *
 * A table's name is a hash of everything it was made from: the bytes of the call frame information
 * and where they lie, the executable segments, and what is known of code without information. A
 * build-id may be forged or missing; the bytes are what counts. What is read back is checked like
 * any table, and one that does not pass is made again.
 *
 * The directory belongs to this user alone. Its bytes are limited, the least recently used go
 * first. Several processes may use it at once.
 */
#ifndef STACKTAP_RESOLVE_CACHE_H
#define STACKTAP_RESOLVE_CACHE_H

#include "unwind/key.h"

enum { CACHE_FILES_MAX = 8192 };

#define CACHE_DIRECTORY "/var/cache/stacktap" /* the daemon's, by systemd */

struct cache;

struct cache_stats {
	uint64_t hits, misses;
	uint64_t files, bytes;		/* on disk */
	uint64_t evicted;
	uint64_t errors;		/* writes that failed, files that did not pass the check */
};

/* -EPERM: the directory is another user's, or others may write to it. It must exist. */
int cache_open(const char *path, uint64_t limit_bytes, struct cache **ret_cache);
void cache_close(struct cache *cache);	/* NULL is fine */

/* The table of this name, to be freed; -ENOENT: there is none, or it does not pass the check. */
int cache_get(struct cache *cache, const uint8_t key[static KEY_BYTES], uint16_t machine,
	      void **ret_data, size_t *ret_size);
/* Best effort: a table that cannot be kept is made again some day. */
void cache_put(struct cache *cache, const uint8_t key[static KEY_BYTES], const void *data,
	       size_t size);

const struct cache_stats *cache_stats(const struct cache *cache);

#endif /* STACKTAP_RESOLVE_CACHE_H */
