// SPDX-License-Identifier: Apache-2.0
/* What brings hosts out of step: in range, each as likely, and another one on each of them. */
#include "unit.h"

#include <string.h>

#include "base/draw.h"

#define LIMIT 60000u	/* ms of the longest window */

static uint32_t word;
static size_t given;

static ssize_t a_word(void *bytes, size_t size)
{
	memcpy(bytes, &word, min_of(size, sizeof(word)));
	given = size;
	return (ssize_t)size;
}

static ssize_t nothing(void *bytes _unused_, size_t size _unused_)
{
	errno = EAGAIN;
	return -1;
}

static ssize_t half_a_word(void *bytes, size_t size)
{
	memset(bytes, 0xff, size / 2);
	return (ssize_t)size / 2;
}

static void each_is_in_range_and_as_likely(void **state _unused_)
{
	enum { PARTS = 60, DRAWS = 60000 };
	unsigned int parts[PARTS] = { 0 };

	word = 0;
	assert_int_equal(draw_from(a_word, LIMIT), 0);
	assert_int_equal(given, sizeof(word));
	word = UINT32_MAX;
	assert_int_equal(draw_from(a_word, LIMIT), LIMIT - 1);
	assert_int_equal(draw_from(a_word, 1), 0);
	for (uint32_t i = 0; i < DRAWS; i++) {
		word = i * (UINT32_MAX / DRAWS);
		assert_in_range(draw_from(a_word, LIMIT), 0, LIMIT - 1);
		parts[draw_from(a_word, LIMIT) / (LIMIT / PARTS)]++;
	}
	for (unsigned int i = 0; i < PARTS; i++)
		assert_in_range(parts[i], DRAWS / PARTS - 2, DRAWS / PARTS + 2);
}

/* Hosts with other randomness; that two have the same eight draws will not be seen. */
static void no_host_draws_like_another(void **state _unused_)
{
	enum { DRAWS = 8 };
	uint32_t host[2][DRAWS];

	word = 0x12345678;
	host[0][0] = draw_from(a_word, LIMIT);
	word = 0x87654321;
	assert_int_not_equal(draw_from(a_word, LIMIT), host[0][0]);
	for (unsigned int i = 0; i < 2; i++)
		for (unsigned int k = 0; k < DRAWS; k++) {
			host[i][k] = draw_below(LIMIT);
			assert_in_range(host[i][k], 0, LIMIT - 1);
		}
	assert_memory_not_equal(host[0], host[1], sizeof(host[0]));
}

/* Right after boot there may be none. */
static void without_randomness_moments_differ(void **state _unused_)
{
	static const draw_source sources[] = { nothing, half_a_word };
	uint32_t first, last;

	for (size_t i = 0; i < ARRAY_SIZE(sources); i++) {
		first = last = draw_from(sources[i], LIMIT);
		for (unsigned int k = 0; k < 1000 && last == first; k++)
			last = draw_from(sources[i], LIMIT);
		assert_in_range(first, 0, LIMIT - 1);
		assert_in_range(last, 0, LIMIT - 1);
		assert_int_not_equal(first, last);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_is_in_range_and_as_likely),
		cmocka_unit_test(no_host_draws_like_another),
		cmocka_unit_test(without_randomness_moments_differ),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
