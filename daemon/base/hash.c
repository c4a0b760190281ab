// SPDX-License-Identifier: Apache-2.0
#include "base/hash.h"

#include <endian.h>
#include <sys/auxv.h>
#include <sys/random.h>

enum {
	HASH_TABLE_MIN = 64,
};

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

static int hash_table_resize(struct hash_table *table, size_t size)
{
	struct hash_link **buckets;

	if (!pool_charge(table->pool, size * sizeof(*buckets)))
		return -ENOBUFS;
	buckets = calloc(size, sizeof(*buckets));
	if (!buckets) {
		pool_uncharge(table->pool, size * sizeof(*buckets));
		return -ENOMEM;
	}
	for (size_t i = 0; i < table->size; i++) {
		struct hash_link *link = table->buckets[i];

		while (link) {
			struct hash_link *next = link->next;
			struct hash_link **bucket = &buckets[link->hash & (size - 1)];

			link->next = *bucket;
			*bucket = link;
			link = next;
		}
	}
	pool_uncharge(table->pool, table->size * sizeof(*buckets));
	free(table->buckets);
	table->buckets = buckets;
	table->size = size;
	return 0;
}

int hash_table_add(struct hash_table *table, struct hash_link *link, uint64_t hash)
{
	struct hash_link **bucket;

	if (table->count >= table->size) {
		int r = hash_table_resize(table, table->size ? 2 * table->size : HASH_TABLE_MIN);

		/* longer chains are slower, not wrong: only the first allocation must succeed */
		if (r < 0 && !table->size)
			return r;
	}
	bucket = &table->buckets[hash & (table->size - 1)];
	link->hash = hash;
	link->next = *bucket;
	*bucket = link;
	table->count++;
	return 0;
}

void hash_table_remove(struct hash_table *table, struct hash_link *link)
{
	struct hash_link **p = &table->buckets[link->hash & (table->size - 1)];

	while (*p != link)
		p = &(*p)->next;
	*p = link->next;
	link->next = NULL;
	table->count--;
}

void hash_table_done(struct hash_table *table)
{
	pool_uncharge(table->pool, table->size * sizeof(*table->buckets));
	free(table->buckets);
	table->buckets = NULL;
	table->size = 0;
	table->count = 0;
}
