/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hashing for tables in memory (base/index.h). The hash is SipHash-1-3 with a key that is random in
 * each process, so that who chooses keys of a table cannot choose where they go. Never store it,
 * never let a result depend on it or on its being free of collisions.
 */
#ifndef STACKTAP_BASE_HASH_H
#define STACKTAP_BASE_HASH_H

#include <string.h>

#include "base/macro.h"

/* Of a table's keys. */
uint64_t hash_bytes(const void *data, size_t size);

static inline uint64_t hash_words(const uint64_t *words, size_t count)
{
	return hash_bytes(words, count * sizeof(*words));
}

static inline uint64_t hash_string(const char *text)
{
	return hash_bytes(text, strlen(text));
}

/*
 * A key that is known instead of the random one, for who wants the same tables in each run. Before
 * the first table is made: what tables hold is not found by another key.
 */
void hash_set_key(uint64_t low, uint64_t high);

#endif /* STACKTAP_BASE_HASH_H */
