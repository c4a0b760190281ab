// SPDX-License-Identifier: Apache-2.0
#include "symbol/htlhash.h"

#include <endian.h>

#include "base/file.h"
#include "base/sha256.h"

enum { END_BYTES = 4096, HASH_BYTES = 16 };

static void hash_ends(const uint8_t *head, const uint8_t *tail, size_t bytes, uint64_t size,
		      char ret_hex[static 33])
{
	uint8_t digest[SHA256_BYTES];
	uint64_t length = htobe64(size);

	sha256_of((const struct sha256_part[]){
		{ head, bytes }, { tail, bytes }, { &length, sizeof(length) },
	}, 3, digest);
	for (size_t i = 0; i < HASH_BYTES; i++)
		snprintf(ret_hex + 2 * i, 3, "%02x", digest[i]);
}

int htlhash_file(int fd, uint64_t size, char ret_hex[static 33])
{
	size_t bytes = (size_t)min_of(size, (uint64_t)END_BYTES);
	uint8_t head[END_BYTES], tail[END_BYTES];
	int r;

	ret_hex[0] = '\0';
	r = file_pread(fd, head, bytes, 0);
	if (r == 0)
		r = file_pread(fd, tail, bytes, size - bytes);
	if (r < 0)
		return r;
	hash_ends(head, tail, bytes, size, ret_hex);
	return 0;
}

void htlhash_memory(const void *memory, uint64_t size, char ret_hex[static 33])
{
	size_t bytes = (size_t)min_of(size, (uint64_t)END_BYTES);
	const uint8_t *head = memory;

	hash_ends(head, head + size - bytes, bytes, size, ret_hex);
}
