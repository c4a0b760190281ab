// SPDX-License-Identifier: Apache-2.0
#include "fixture.h"

#include "base/percent.h"

static void test_values(void **state _unused_)
{
	static const struct {
		const char *text;
		uint32_t permille;
	} good[] = {
		{ "0", 0 }, { "1", 10 }, { "1%", 10 }, { "0.5", 5 }, { "1.5%", 15 }, { "100", 1000 },
		{ "100.0%", 1000 }, { "007", 70 },
	};
	static const char *const bad[] = {
		"", "%", ".5", "-1", "1.", "1.25", "100.1", "101", "1000000000000", "1 %", "1%%", "one",
	};

	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		uint32_t permille = 7777;

		assert_true(percent_parse(good[i].text, &permille));
		assert_int_equal(permille, good[i].permille);
	}
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		uint32_t permille = 7777;

		assert_false(percent_parse(bad[i], &permille));
		assert_int_equal(permille, 7777);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_values) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
