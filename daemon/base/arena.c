// SPDX-License-Identifier: Apache-2.0
#include "base/arena.h"

#include <string.h>

#define ARENA_CHUNK ((size_t)32 << 10)

struct arena_chunk {
	struct arena_chunk *next;
	size_t bytes;
	_Alignas(8) char data[];
};

void *arena_alloc(struct arena *arena, size_t size)
{
	struct arena_chunk *chunk;
	size_t bytes;
	void *data;

	if (size > SIZE_MAX / 2)
		return NULL;
	size = (size + 7) & ~(size_t)7;
	if (size > (size_t)(arena->end - arena->next)) {
		bytes = max_of(size + sizeof(*chunk), ARENA_CHUNK);
		if (!pool_charge(arena->pool, bytes))
			return NULL;
		chunk = calloc(1, bytes);
		if (!chunk) {
			pool_uncharge(arena->pool, bytes);
			return NULL;
		}
		chunk->bytes = bytes;
		chunk->next = arena->chunks;
		arena->chunks = chunk;
		arena->bytes += bytes;
		arena->next = chunk->data;
		arena->end = (char *)chunk + bytes;
	}
	data = arena->next;
	arena->next += size;
	return data;
}

char *arena_strdup(struct arena *arena, const char *text, size_t length)
{
	char *copy = length < SIZE_MAX ? arena_alloc(arena, length + 1) : NULL;

	if (copy && length)
		memcpy(copy, text, length);
	return copy;
}

void arena_free(struct arena *arena)
{
	struct arena_chunk *chunk;

	while ((chunk = arena->chunks)) {
		arena->chunks = chunk->next;
		free(chunk);
	}
	pool_uncharge(arena->pool, arena->bytes);
	arena_init(arena, arena->pool);
}
