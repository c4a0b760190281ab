// SPDX-License-Identifier: Apache-2.0
/* What is compressed comes out again, by another library. */
#include <string.h>
#include <zlib.h>

#include "export/gzip.h"
#include "unit.h"

#define BYTES ((size_t)100000)

static uint32_t random_state = 2463534242;

static uint8_t random_byte(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 17;
	random_state ^= random_state << 5;
	return (uint8_t)(random_state >> 24);
}

static void assert_gzip_of(const struct buffer *buffer, size_t from, const uint8_t *data, size_t size)
{
	uint8_t *plain = malloc(size + 1);
	z_stream stream = { .next_in = buffer->data + from, .avail_in = (uInt)(buffer->size - from),
			    .next_out = plain, .avail_out = (uInt)size + 1 };

	assert_non_null(plain);
	assert_int_equal(inflateInit2(&stream, 15 + 16), Z_OK);
	assert_int_equal(inflate(&stream, Z_FINISH), Z_STREAM_END);
	assert_int_equal(stream.total_out, size);
	assert_int_equal(stream.avail_in, 0);
	assert_memory_equal(plain, data, size);
	inflateEnd(&stream);
	free(plain);
}

static void test_round_trip(void **state _unused_)
{
	static uint8_t data[BYTES];
	struct buffer buffer;

	for (size_t i = 0; i < BYTES; i++)
		data[i] = (uint8_t)(i / 100);
	buffer_init(&buffer, POOL_QUEUES);
	assert_int_equal(buffer_append(&buffer, "before", 6), 0);
	assert_int_equal(gzip_compress(&buffer, data, BYTES), 0);
	assert_memory_equal(buffer.data, "before", 6);
	assert_true(buffer.size < BYTES / 10);
	assert_gzip_of(&buffer, 6, data, BYTES);
	buffer_free(&buffer);
	assert_int_equal(pool_get(POOL_QUEUES)->used, 0);
}

/* Noise does not shrink, and what hardly anything is in grows. */
static void test_what_does_not_shrink(void **state _unused_)
{
	static const size_t sizes[] = { 0, 1, 2, 63, 64, 65, 1000, BYTES };
	static uint8_t data[BYTES];

	for (size_t i = 0; i < BYTES; i++)
		data[i] = random_byte();
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct buffer buffer;

		buffer_init(&buffer, POOL_QUEUES);
		assert_int_equal(gzip_compress(&buffer, data, sizes[i]), 0);
		assert_gzip_of(&buffer, 0, data, sizes[i]);
		buffer_free(&buffer);
	}
	assert_int_equal(pool_get(POOL_QUEUES)->used, 0);
}

static void test_pool_is_full(void **state _unused_)
{
	static uint8_t data[BYTES];
	struct pool *pool = pool_get(POOL_QUEUES);
	struct buffer buffer;

	buffer_init(&buffer, POOL_QUEUES);
	for (pool->limit = 0; pool->limit < 800000; pool->limit += 50000) {
		int err = gzip_compress(&buffer, data, BYTES);

		assert_true(err == 0 || err == -ENOBUFS);
		assert_int_equal(err == 0, buffer.size > 0);
		buffer_free(&buffer);
		assert_int_equal(pool->used, 0);
		buffer_init(&buffer, POOL_QUEUES);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_what_does_not_shrink),
		cmocka_unit_test(test_pool_is_full),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
