/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that is freed all at once. Chunks are charged to a pool; what one holds is aligned to 8.
 */
#ifndef STACKTAP_BASE_ARENA_H
#define STACKTAP_BASE_ARENA_H

#include "base/macro.h"
#include "base/pool.h"

struct arena_chunk;

struct arena {
	struct arena_chunk *chunks;
	char *next, *end;
	size_t bytes;		/* charged */
	enum pool_id pool;
};

static inline void arena_init(struct arena *arena, enum pool_id pool)
{
	*arena = (struct arena){ .pool = pool };
}

/* Zeroed; NULL when the pool is used up or memory is out. */
void *arena_alloc(struct arena *arena, size_t size) _must_check_;
char *arena_strdup(struct arena *arena, const char *text, size_t length) _must_check_;
void arena_free(struct arena *arena);

#endif /* STACKTAP_BASE_ARENA_H */
