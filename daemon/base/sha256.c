// SPDX-License-Identifier: Apache-2.0
#include "base/sha256.h"

#include <assert.h>
#include <gcrypt.h>
#include <pthread.h>
#include <string.h>

static void prepare(void)
{
	gcry_check_version(NULL);
	/* nothing here is a secret, and no self-test of other algorithms is to be waited for */
	gcry_control(GCRYCTL_DISABLE_SECMEM, 0);
	gcry_control(GCRYCTL_NO_FIPS_MODE, 0);
	gcry_control(GCRYCTL_INITIALIZATION_FINISHED, 0);
}

void sha256_prepare(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, prepare);
}

void sha256_of(const struct sha256_part *parts, size_t count, uint8_t ret_digest[static SHA256_BYTES])
{
	gcry_buffer_t buffers[SHA256_PARTS_MAX] = { 0 };

	sha256_prepare();
	assert(count <= ARRAY_SIZE(buffers));
	for (size_t i = 0; i < count; i++) {
		buffers[i].data = (void *)(uintptr_t)parts[i].bytes;
		buffers[i].len = parts[i].size;
	}
	gcry_md_hash_buffers(GCRY_MD_SHA256, 0, ret_digest, buffers, (int)count);
}

int sha256_init(struct sha256 *sha)
{
	sha256_prepare();
	return gcry_md_open(&sha->state, GCRY_MD_SHA256, 0) ? -ENOMEM : 0;
}

void sha256_add(struct sha256 *sha, const void *bytes, size_t size)
{
	gcry_md_write(sha->state, bytes, size);
}

void sha256_get(struct sha256 *sha, uint8_t ret_digest[static SHA256_BYTES])
{
	memcpy(ret_digest, gcry_md_read(sha->state, GCRY_MD_SHA256), SHA256_BYTES);
}

void sha256_done(struct sha256 *sha)
{
	gcry_md_close(sha->state);
}
