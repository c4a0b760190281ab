// SPDX-License-Identifier: Apache-2.0
/* What zstd made comes out again; the sizes that the pool is charged with are those that libzstd takes. */
#include <string.h>
#include <zstd.h>

#include "export/body.h"
#include "export/gzip.h"
#include "export/zstd.h"
#include "unit.h"

#define BYTES ((size_t)4 << 20)
#define SMALL ((size_t)256 << 10)

static uint8_t data[BYTES];

static int fill(void **state _unused_)
{
	uint32_t x = 2463534242;

	/* a quarter is noise */
	for (size_t i = 0; i < BYTES; i++) {
		x ^= x << 13;
		x ^= x >> 17;
		x ^= x << 5;
		data[i] = (uint8_t)(i % 4 ? i / 100 : x >> 24);
	}
	return 0;
}

static void what_was_compressed_comes_out_again(void **state _unused_)
{
	static const size_t sizes[] = { 0, 1, 63, 65, 1000, 100000, SMALL, SMALL + 1, BYTES / 4 };
	struct buffer packed, plain;

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		buffer_init(&packed, POOL_ENCODE);
		buffer_init(&plain, POOL_ENCODE);
		assert_int_equal(buffer_append(&packed, "before", 6), 0);
		assert_int_equal(zstd_compress(&packed, data, sizes[i]), 0);
		assert_memory_equal(packed.data, "before", 6);
		assert_int_equal(zstd_decompress(&plain, packed.data + 6, packed.size - 6, sizes[i] ?: 1), 0);
		assert_int_equal(plain.size, sizes[i]);
		if (sizes[i]) {
			assert_memory_equal(plain.data, data, sizes[i]);
			assert_int_equal(zstd_decompress(&plain, packed.data + 6, packed.size - 7, sizes[i]),
					 -EBADMSG);
			assert_int_equal(zstd_decompress(&plain, packed.data + 6, packed.size - 6, sizes[i] - 1),
					 -EBADMSG);
		}
		buffer_free(&packed);
		buffer_free(&plain);
	}
	assert_int_equal(pool_get(POOL_ENCODE)->used, 0);
}

/* What a context takes for @size bytes at that level, with tables of 2^@log entries, 0: the level's own. */
static size_t context_bytes(int level, int log, size_t size, size_t *ret_packed)
{
	static uint8_t room[BYTES + 65536];
	ZSTD_CCtx *context = ZSTD_createCCtx();
	size_t bytes;

	ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, level);
	ZSTD_CCtx_setParameter(context, ZSTD_c_windowLog, 19);
	ZSTD_CCtx_setParameter(context, ZSTD_c_hashLog, log);
	ZSTD_CCtx_setParameter(context, ZSTD_c_chainLog, log);
	*ret_packed = ZSTD_compress2(context, room, sizeof(room), data, size);
	assert_false(ZSTD_isError(*ret_packed));
	bytes = ZSTD_sizeof_CCtx(context);
	ZSTD_freeCCtx(context);
	return bytes;
}

/* A context of these parameters takes what is charged for it, and hardly less. */
static void its_memory_is_charged(void **state _unused_)
{
	const size_t charged = (size_t)1280 << 10;
	struct buffer packed;
	size_t limit, size;

	assert_in_range(context_bytes(3, 0, BYTES, &size), charged * 9 / 10, charged);
	assert_in_range(context_bytes(8, 16, SMALL, &size), charged / 2, charged);
	limit = pool_get(POOL_ENCODE)->limit;
	pool_get(POOL_ENCODE)->limit = charged - 1;
	buffer_init(&packed, POOL_ENCODE);
	assert_int_equal(zstd_compress(&packed, data, 10), -ENOBUFS);
	pool_get(POOL_ENCODE)->limit = limit;
	assert_int_equal(pool_get(POOL_ENCODE)->used, 0);
}

/* Up to there payloads are compressed harder. */
static void small_ones_are_worth_more_time(void **state _unused_)
{
	struct buffer packed;
	size_t size;

	for (size_t more = 0; more < 2; more++) {
		buffer_init(&packed, POOL_ENCODE);
		assert_int_equal(zstd_compress(&packed, data, SMALL + more), 0);
		context_bytes(more ? 3 : 8, more ? 0 : 16, SMALL + more, &size);
		assert_int_equal(packed.size, size);
		buffer_free(&packed);
	}
}

/* One of each for all who want it; what zstd made is gzip's for a receiver that takes no zstd. */
static void bodies_are_made_once_and_again(void **state _unused_)
{
	struct payload payload = { .data = malloc(1000), .size = 1000, .samples = 7 };
	struct buffer plain = { .pool = POOL_ENCODE };
	struct body *small, *other;
	struct cargo cargo;

	memcpy(payload.data, data, 1000);
	assert_int_equal(cargo_init(&cargo, &payload, 3), 0);
	assert_null(payload.data);
	small = cargo_body(&cargo, false, COMPRESSION_ZSTD);
	assert_int_equal(small->compression, COMPRESSION_ZSTD);
	assert_ptr_equal(cargo_body(&cargo, false, COMPRESSION_ZSTD), small);
	assert_int_equal(cargo_body(&cargo, false, COMPRESSION_NONE)->size, 1000);
	other = body_again(small, COMPRESSION_GZIP);
	assert_non_null(other);
	assert_int_equal(other->compression, COMPRESSION_GZIP);
	assert_true(other->samples == 7 && other->plain_size == 1000 && other->payload_size == 1000 && other->number == 3);
	assert_int_equal(gzip_decompress(&plain, other->data, other->size, 1000), 0);
	assert_memory_equal(plain.data, data, 1000);
	buffer_free(&plain);
	body_unref(other);
	cargo_done(&cargo);
	assert_int_equal(pool_get(POOL_ENCODE)->used, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_compressed_comes_out_again),
		cmocka_unit_test(its_memory_is_charged),
		cmocka_unit_test(small_ones_are_worth_more_time),
		cmocka_unit_test(bodies_are_made_once_and_again),
	};

	return cmocka_run_group_tests(tests, fill, NULL);
}
