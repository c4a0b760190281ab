// SPDX-License-Identifier: Apache-2.0
#include "unit.h"

#include "view/browse.h"

enum { ROWS = 100, PAGE = 20 };

static enum browse_effect press(struct browse *browse, int key)
{
	return browse_key(browse, key, ROWS, PAGE);
}

static void a_view_is_entered_and_left(void **state)
{
	struct browse browse = { .selected = 7, .is_frozen = true };

	(void)state;
	/* the caller enters, for it knows whether the row is a function */
	for (const char *key = "e+"; *key; key++)
		assert_int_equal(press(&browse, *key), BROWSE_SHOW_CALLS);
	assert_int_equal(press(&browse, BROWSE_ENTER), BROWSE_SHOW_CALLS);
	assert_int_equal(press(&browse, BROWSE_RIGHT), BROWSE_SHOW_CALLS);
	assert_int_equal(browse.view, BROWSE_TABLE);
	assert_int_equal(browse.selected, 7);
	browse_enter(&browse, BROWSE_CALLS);
	assert_int_equal(browse.selected, 0);
	assert_false(browse.is_frozen);
	/* of a caller, too */
	assert_int_equal(press(&browse, BROWSE_ENTER), BROWSE_SHOW_CALLS);
	assert_int_equal(press(&browse, 'a'), BROWSE_SHOW_CODE);
	browse_enter(&browse, BROWSE_CODE);
	assert_int_equal(press(&browse, BROWSE_ENTER), BROWSE_DRAW);
	assert_int_equal(browse.view, BROWSE_CODE);
	assert_int_equal(press(&browse, BROWSE_ESCAPE), BROWSE_BUILD);
	assert_int_equal(browse.view, BROWSE_CALLS);
	assert_int_equal(press(&browse, 'q'), BROWSE_BUILD);
	assert_int_equal(browse.view, BROWSE_TABLE);
	/* where it was left */
	assert_int_equal(browse.selected, 7);
	assert_int_equal(press(&browse, BROWSE_LEFT), BROWSE_DRAW);
	assert_int_equal(press(&browse, BROWSE_ESCAPE), BROWSE_DRAW);
	assert_int_equal(press(&browse, 'q'), BROWSE_QUIT);
}

static void the_code_of_a_row_leads_back_to_the_table(void **state)
{
	struct browse browse = { 0 };

	(void)state;
	press(&browse, BROWSE_END);
	press(&browse, BROWSE_UP);
	assert_int_equal(press(&browse, 'a'), BROWSE_SHOW_CODE);
	browse_enter(&browse, BROWSE_CODE);
	press(&browse, BROWSE_PAGE_DOWN);
	assert_int_equal(browse.selected, PAGE);
	assert_int_equal(press(&browse, 'a'), BROWSE_BUILD);
	assert_int_equal(browse.view, BROWSE_TABLE);
	assert_int_equal(browse.selected, ROWS - 2);
	assert_int_equal(browse.first, ROWS - PAGE);
}

static void each_view_has_its_place(void **state)
{
	struct browse browse = { .selected = 7 };

	(void)state;
	browse_enter(&browse, BROWSE_CALLS);
	press(&browse, BROWSE_DOWN);
	/* of a caller of it, from its first row on */
	browse_enter(&browse, BROWSE_CALLS);
	assert_int_equal(browse.selected, 0);
	press(&browse, BROWSE_PAGE_DOWN);
	browse_enter(&browse, BROWSE_CODE);
	press(&browse, BROWSE_LEFT);
	assert_int_equal(browse.selected, PAGE);
	press(&browse, BROWSE_LEFT);
	assert_int_equal(browse.selected, 7);
	/* rows of another order are others */
	press(&browse, 's');
	assert_int_equal(browse.selected, 0);
}

static void another_group_or_order_is_the_tables(void **state)
{
	struct browse browse = { 0 };

	(void)state;
	browse_enter(&browse, BROWSE_CALLS);
	assert_int_equal(press(&browse, 's'), BROWSE_BUILD);
	assert_int_equal(browse.view, BROWSE_TABLE);
	assert_true(browse.by_total);
	for (int group = 1; group <= LIVE_GROUP_COUNT; group++) {
		assert_int_equal(press(&browse, 'g'), BROWSE_BUILD);
		assert_int_equal(browse.group, group % LIVE_GROUP_COUNT);
	}
}

static void what_is_asked_for_takes_all_keys(void **state)
{
	struct browse browse = { 0 };

	(void)state;
	assert_int_equal(press(&browse, '/'), BROWSE_DRAW);
	assert_int_equal(press(&browse, 'q'), BROWSE_DRAW);
	assert_int_equal(press(&browse, 'e'), BROWSE_DRAW);
	assert_string_equal(browse.text, "qe");
	assert_int_equal(press(&browse, BROWSE_BACKSPACE), BROWSE_DRAW);
	assert_int_equal(press(&browse, BROWSE_ENTER), BROWSE_SET_FILTER);
	assert_string_equal(browse.text, "q");
	assert_int_equal(press(&browse, 'h'), BROWSE_DRAW);
	assert_true(browse.has_help);
	assert_int_equal(press(&browse, 'e'), BROWSE_DRAW);
	assert_false(browse.has_help);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_view_is_entered_and_left),
		cmocka_unit_test(the_code_of_a_row_leads_back_to_the_table),
		cmocka_unit_test(each_view_has_its_place),
		cmocka_unit_test(another_group_or_order_is_the_tables),
		cmocka_unit_test(what_is_asked_for_takes_all_keys),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
