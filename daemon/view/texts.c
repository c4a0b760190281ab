// SPDX-License-Identifier: Apache-2.0
#include "view/texts.h"

#include <string.h>

#include "base/hash.h"
#include "base/utf8.h"

void texts_init(struct texts *texts)
{
	arena_init(&texts->arena, POOL_REPORT);
	rows_init(&texts->rows);
}

void texts_free(struct texts *texts)
{
	arena_free(&texts->arena);
	rows_free(&texts->rows);
}

static uint64_t hash_of(const void *ctx, uint32_t position)
{
	return hash_string(((const char *const *)ctx)[position]);
}

static uint32_t find(const struct texts *texts, const char *text, uint64_t hash)
{
	struct index_probe probe = index_first(&texts->rows.index, hash);
	uint32_t i;

	while ((i = index_next(&texts->rows.index, &probe)) != INDEX_NONE)
		if (!strcmp(texts_at(texts, i), text))
			break;
	return i;
}

const char *texts_intern(struct texts *texts, const char *text)
{
	char clean[TEXTS_BYTES];
	size_t length = utf8_copy(clean, sizeof(clean), text);
	uint64_t hash = hash_bytes(clean, length);
	uint32_t i = find(texts, clean, hash);
	const char *copy;

	if (i != INDEX_NONE)
		return texts_at(texts, i);
	copy = arena_strdup(&texts->arena, clean, length);
	if (!copy || rows_add(&texts->rows, hash, hash_of, &copy, sizeof(copy), &i))
		return NULL;
	return copy;
}

uint32_t texts_position(const struct texts *texts, const char *text)
{
	return find(texts, text, hash_string(text));
}
