// SPDX-License-Identifier: Apache-2.0
/* Who is remembered of all that the parser died of. */
#include "unit.h"

#include "helper/suspects.h"

static struct suspects suspects;

static int setup(void **state)
{
	(void)state;
	suspects = (struct suspects){ 0 };
	return 0;
}

static struct object object_of(uint64_t inode)
{
	static char path[] = "/usr/bin/program";

	return (struct object){ .dev = 1, .inode = inode, .size = 4096, .path = path };
}

static void accuse(uint64_t inode, unsigned int times)
{
	const struct object object = object_of(inode);

	for (unsigned int i = 0; i < times; i++)
		suspects_accuse(&suspects, &object, -EPIPE, 100);
}

static bool is_set_apart(uint64_t inode)
{
	const struct object object = object_of(inode);

	return suspects_has(&suspects, &object);
}

/* However many others it dies of once. */
static void who_is_set_apart_stays_so(void **state)
{
	(void)state;
	accuse(1, PARSER_DEATHS_MAX);
	for (uint64_t i = 0; i < 3 * SUSPECTS_MAX; i++)
		accuse(1000 + i, PARSER_DEATHS_MAX - 1);
	assert_true(is_set_apart(1));
	assert_int_equal(suspects_set_apart(&suspects), 1);
}

/* However many are set apart, some that take turns are, too, in the end. */
static void others_can_still_be_set_apart(void **state)
{
	enum { TURNS = 8 };

	(void)state;
	for (uint64_t i = 0; i < 3 * SUSPECTS_MAX; i++)
		accuse(1000 + i, PARSER_DEATHS_MAX);
	for (unsigned int death = 0; death < PARSER_DEATHS_MAX; death++)
		for (uint64_t i = 1; i <= TURNS; i++)
			accuse(i, 1);
	for (uint64_t i = 1; i <= TURNS; i++)
		assert_true(is_set_apart(i));
	assert_true(suspects_set_apart(&suspects) < SUSPECTS_MAX);
}

static void a_part_of_the_blame_is_not_all_of_it(void **state)
{
	const struct object object = object_of(1);

	(void)state;
	for (unsigned int i = 1; i < 10 * PARSER_DEATHS_MAX; i++) {
		suspects_accuse(&suspects, &object, -ETIMEDOUT, 10);
		assert_false(is_set_apart(1));
	}
	suspects_accuse(&suspects, &object, -ETIMEDOUT, 10);
	assert_true(is_set_apart(1));
	assert_string_equal(suspects.last_set_apart, "/usr/bin/program: the parser did not finish");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(who_is_set_apart_stays_so, setup),
		cmocka_unit_test_setup(others_can_still_be_set_apart, setup),
		cmocka_unit_test_setup(a_part_of_the_blame_is_not_all_of_it, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
