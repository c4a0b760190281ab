/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A fast keyed hash for tables: two lanes of folded 64-bit multiplications. Not cryptographic, but
 * keyed at random per process, so that who controls the input cannot aim for collisions. Tables
 * that compare nothing but the hash use all 128 bits.
 */
#ifndef STACKTAP_BASE_HASH_H
#define STACKTAP_BASE_HASH_H

#include <string.h>

#include "base/macro.h"

struct hash {
	uint64_t lo, hi;
};

extern uint64_t hash_key[4];	/* random from program start on */

static inline uint64_t hash_fold(uint64_t a, uint64_t b)
{
	unsigned __int128 product = (unsigned __int128)a * b;

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static inline void hash_mix(struct hash *hash, uint64_t a, uint64_t b)
{
	hash->lo = hash_fold(hash->lo ^ a ^ hash_key[0], b ^ hash_key[1]) + hash->hi;
	hash->hi = hash_fold(hash->hi ^ b ^ hash_key[2], a ^ hash_key[3]) ^ a;
}

static inline struct hash hash_start(uint64_t seed)
{
	struct hash hash = { .lo = seed ^ hash_key[3], .hi = seed + hash_key[0] };

	return hash;
}

static inline void hash_words(struct hash *hash, const uint64_t *words, size_t count)
{
	size_t i;

	for (i = 0; i + 2 <= count; i += 2)
		hash_mix(hash, words[i], words[i + 1]);
	/* the count separates an odd last word from a pair with zero, and one list from the next */
	hash_mix(hash, i < count ? words[i] : 0, count);
}

static inline struct hash hash_end(struct hash hash)
{
	hash_mix(&hash, hash_key[1], hash_key[2]);
	return hash;
}

static inline uint64_t hash_bytes(const void *data, size_t size)
{
	struct hash hash = hash_start(size);
	const unsigned char *bytes = data;
	uint64_t pair[2];

	for (; size >= sizeof(pair); bytes += sizeof(pair), size -= sizeof(pair)) {
		memcpy(pair, bytes, sizeof(pair));
		hash_mix(&hash, pair[0], pair[1]);
	}
	if (size) {
		pair[0] = pair[1] = 0;
		memcpy(pair, bytes, size);
		hash_mix(&hash, pair[0], pair[1]);
	}
	return hash_end(hash).lo;
}

#endif /* STACKTAP_BASE_HASH_H */
