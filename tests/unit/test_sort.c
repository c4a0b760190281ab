// SPDX-License-Identifier: Apache-2.0
#include "fixture.h"

#include "base/sort.h"

enum { ITEMS = 5000 };

struct item {
	uint64_t number;
	uint32_t second, place;
};

static uint64_t number_of(const void *item)
{
	return ((const struct item *)item)->number;
}

static int compare(const void *a, const void *b)
{
	const struct item *x = a, *y = b;

	if (x->number != y->number)
		return x->number < y->number ? -1 : 1;
	if (x->second != y->second)
		return x->second < y->second ? -1 : 1;
	return (x->place > y->place) - (x->place < y->place);
}

static uint64_t state = 88172645463325252ULL;

static uint64_t next_random(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	return state ^= state << 17;
}

/* Numbers of @mask's bits beyond @base. */
static void check(size_t count, uint64_t base, uint64_t mask)
{
	static struct item items[ITEMS], expected[ITEMS];

	for (size_t i = 0; i < count; i++)
		items[i] = (struct item){ base + (next_random() & mask), (uint32_t)next_random() % 4, (uint32_t)i };
	memcpy(expected, items, sizeof(items));
	qsort(expected, count, sizeof(*expected), compare);
	sort_items(items, count, sizeof(*items), number_of, compare);
	assert_memory_equal(items, expected, count * sizeof(*items));
	/* what is sorted stays so */
	sort_items(items, count, sizeof(*items), number_of, compare);
	assert_memory_equal(items, expected, count * sizeof(*items));
}

static void the_order_is_that_of_qsort(void **unused)
{
	(void)unused;
	sort_items(NULL, 0, sizeof(struct item), number_of, compare);
	for (size_t count = 1; count < 200; count += 7)
		check(count, 0, 0xff);
	check(ITEMS, 0, 0);
	check(ITEMS, 0x400000, 0x3ff);
	check(ITEMS, 0x7ffff00000, 0x3fffff);
	check(ITEMS, UINT64_MAX - 0xffff, 0xffff);
	check(ITEMS, 0, UINT64_MAX);
}

static void few_numbers_lie_far_apart(void **unused)
{
	struct item items[] = { { UINT64_MAX, 0, 0 }, { 0, 1, 1 }, { 0, 0, 2 } }, many[300];

	(void)unused;
	sort_items(items, ARRAY_SIZE(items), sizeof(*items), number_of, compare);
	assert_int_equal(items[0].place, 2);
	assert_int_equal(items[1].place, 1);
	assert_int_equal(items[2].place, 0);
	for (uint32_t i = 0; i < ARRAY_SIZE(many); i++)
		many[i] = (struct item){ i % 2 ? UINT64_MAX : 0, 0, i };
	sort_items(many, ARRAY_SIZE(many), sizeof(*many), number_of, compare);
	for (uint32_t i = 0; i < ARRAY_SIZE(many); i++)
		assert_int_equal(many[i].place, i < 150 ? 2 * i : 2 * (i - 150) + 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_order_is_that_of_qsort),
		cmocka_unit_test(few_numbers_lie_far_apart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
