// SPDX-License-Identifier: Apache-2.0
#include "base/hash.h"

#include <endian.h>
#include <sys/auxv.h>
#include <sys/random.h>

static uint64_t hash_key[2];

__attribute__((constructor)) static void hash_setup(void)
{
	if (getrandom(hash_key, sizeof(hash_key), GRND_NONBLOCK) == (ssize_t)sizeof(hash_key))
		return;
	/* early in boot: the 16 random bytes that the kernel gives each program */
	memcpy(hash_key, (const void *)getauxval(AT_RANDOM), sizeof(hash_key));
}

void hash_set_key(uint64_t low, uint64_t high)
{
	hash_key[0] = low;
	hash_key[1] = high;
}

static uint64_t rotate(uint64_t word, unsigned int bits)
{
	return word << bits | word >> (64 - bits);
}

static inline void sip_round(uint64_t v[4])
{
	v[0] += v[1];
	v[2] += v[3];
	v[1] = rotate(v[1], 13) ^ v[0];
	v[3] = rotate(v[3], 16) ^ v[2];
	v[0] = rotate(v[0], 32) + v[3];
	v[2] += v[1];
	v[1] = rotate(v[1], 17) ^ v[2];
	v[3] = rotate(v[3], 21) ^ v[0];
	v[2] = rotate(v[2], 32);
}

/*
 * SipHash-1-3: Aumasson and Bernstein, "SipHash: a fast short-input PRF", 2012, with the rounds that tables of Rust,
 * Python and Ruby have: nobody sees a hash, so a collision under an unknown key is all there is to guard against.
 */
uint64_t hash_bytes(const void *data, size_t size)
{
	uint64_t v[4] = { hash_key[0] ^ 0x736f6d6570736575, hash_key[1] ^ 0x646f72616e646f6d,
			  hash_key[0] ^ 0x6c7967656e657261, hash_key[1] ^ 0x7465646279746573 };
	const unsigned char *bytes = data;
	uint64_t word, rest = (uint64_t)size << 56;

	for (; size >= sizeof(word); bytes += sizeof(word), size -= sizeof(word)) {
		memcpy(&word, bytes, sizeof(word));
		word = le64toh(word);
		v[3] ^= word;
		sip_round(v);
		v[0] ^= word;
	}
	for (size_t i = 0; i < size; i++)
		rest |= (uint64_t)bytes[i] << 8 * i;
	v[3] ^= rest;
	sip_round(v);
	v[0] ^= rest;
	v[2] ^= 0xff;
	for (int i = 0; i < 3; i++)
		sip_round(v);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}
