/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A fast keyed 128-bit hash of stacks and of pointers: two lanes of folded 64-bit multiplications.
 * Not cryptographic, but keyed at random per process, so that who controls the input cannot aim for
 * collisions. Tables that compare nothing but the hash use all 128 bits. Text and what files say of
 * themselves are base/hash.h's.
 */
#ifndef STACKTAP_BASE_FINGERPRINT_H
#define STACKTAP_BASE_FINGERPRINT_H

#include "base/macro.h"

struct fingerprint {
	uint64_t lo, hi;
};

extern uint64_t fingerprint_key[4];	/* random from program start on */

static inline uint64_t fingerprint_fold(uint64_t a, uint64_t b)
{
	__extension__ unsigned __int128 product = (unsigned __int128)a * b;

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static inline void fingerprint_mix(struct fingerprint *print, uint64_t a, uint64_t b)
{
	const uint64_t *key = fingerprint_key;

	print->lo = fingerprint_fold(print->lo ^ a ^ key[0], b ^ key[1]) + print->hi;
	print->hi = fingerprint_fold(print->hi ^ b ^ key[2], a ^ key[3]) ^ a;
}

static inline struct fingerprint fingerprint_start(uint64_t seed)
{
	return (struct fingerprint){ .lo = seed ^ fingerprint_key[3],
				     .hi = seed + fingerprint_key[0] };
}

static inline void fingerprint_words(struct fingerprint *print, const uint64_t *words,
				     size_t count)
{
	size_t i;

	for (i = 0; i + 2 <= count; i += 2)
		fingerprint_mix(print, words[i], words[i + 1]);
	/* the count separates an odd last word from a pair with zero, and one list from the next */
	fingerprint_mix(print, i < count ? words[i] : 0, count);
}

static inline struct fingerprint fingerprint_end(struct fingerprint print)
{
	fingerprint_mix(&print, fingerprint_key[1], fingerprint_key[2]);
	return print;
}

#endif /* STACKTAP_BASE_FINGERPRINT_H */
