// SPDX-License-Identifier: Apache-2.0
#include "fixture.h"

#include "base/buffer.h"

static void nothing_is_reserved_in_what_has_no_memory(void **state _unused_)
{
	struct buffer buffer;

	buffer_init(&buffer, POOL_ENCODE);
	assert_non_null(buffer_reserve(&buffer, 0));
	assert_int_equal(buffer.size, 0);
	assert_int_equal(buffer_append(&buffer, "ab", 2), 0);
	assert_memory_equal(buffer.data, "ab", 2);
	assert_ptr_equal(buffer_reserve(&buffer, 0), buffer.data + 2);
	buffer_free(&buffer);
	assert_int_equal(atomic_load(&pool_get(POOL_ENCODE)->used), 0);
}

static void a_full_pool_refuses_memory(void **state _unused_)
{
	struct buffer buffer;

	buffer_init(&buffer, POOL_ENCODE);
	assert_null(buffer_reserve(&buffer, pool_get(POOL_ENCODE)->limit + 1));
	assert_null(buffer_reserve(&buffer, SIZE_MAX));
	assert_int_equal(atomic_load(&pool_get(POOL_ENCODE)->used), 0);
	assert_null(buffer.data);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_reserved_in_what_has_no_memory),
		cmocka_unit_test(a_full_pool_refuses_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
