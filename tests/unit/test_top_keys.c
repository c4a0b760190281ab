// SPDX-License-Identifier: Apache-2.0
#include "fixture.h"

#include <locale.h>

#include "cli/title.c"
#include "view/browse.h"

static void type(struct browse *browse, const char *text)
{
	for (; *text; text++)
		assert_int_equal(browse_key(browse, (unsigned char)*text, 9, 3), BROWSE_DRAW);
}

static void keys_move(void **state)
{
	struct browse browse = { 0 };

	(void)state;
	browse_key(&browse, BROWSE_UP, 9, 3);
	assert_int_equal(browse.selected, 0);
	for (int i = 0; i < 3; i++)
		browse_key(&browse, BROWSE_DOWN, 9, 3);
	assert_int_equal(browse.selected, 3);
	assert_int_equal(browse.first, 1);
	browse_key(&browse, BROWSE_END, 9, 3);
	assert_int_equal(browse.selected, 8);
	assert_int_equal(browse.first, 6);
	browse_key(&browse, BROWSE_PAGE_DOWN, 9, 3);
	assert_int_equal(browse.selected, 8);
	browse_key(&browse, BROWSE_PAGE_UP, 9, 3);
	assert_int_equal(browse.selected, 5);
	assert_int_equal(browse.first, 5);
	browse_fit(&browse, 2, 3);
	assert_int_equal(browse.selected, 1);
	assert_int_equal(browse.first, 1);
	browse_key(&browse, BROWSE_HOME, 9, 3);
	assert_int_equal(browse.selected, 0);
	browse_key(&browse, BROWSE_END, 0, 0);
	assert_int_equal(browse.selected, 0);
}

static void keys_choose(void **state)
{
	struct browse browse = { .selected = 4, .is_frozen = true };

	(void)state;
	assert_int_equal(browse_key(&browse, 'g', 9, 3), BROWSE_BUILD);
	assert_int_equal(browse.group, LIVE_PROCESS);
	assert_int_equal(browse.selected, 0);
	assert_false(browse.is_frozen);
	for (int i = 1; i < LIVE_GROUP_COUNT; i++)
		browse_key(&browse, 'g', 9, 3);
	assert_int_equal(browse.group, LIVE_FUNCTION);
	assert_int_equal(browse_key(&browse, 's', 9, 3), BROWSE_BUILD);
	assert_true(browse.by_total);
	assert_int_equal(browse_key(&browse, ' ', 9, 3), BROWSE_DRAW);
	assert_true(browse.is_frozen);
	assert_int_equal(browse_key(&browse, 'p', 9, 3), BROWSE_BUILD);
	assert_false(browse.is_frozen);
	assert_int_equal(browse_key(&browse, 'z', 9, 3), BROWSE_ZERO);
	browse_key(&browse, '?', 9, 3);
	assert_true(browse.has_help);
	browse_key(&browse, BROWSE_ESCAPE, 9, 3);
	assert_false(browse.has_help);
	assert_int_equal(browse_key(&browse, 'q', 9, 3), BROWSE_QUIT);
	assert_int_equal(browse_key(&browse, BROWSE_F10, 9, 3), BROWSE_QUIT);
	browse_key(&browse, BROWSE_F1, 9, 3);
	assert_true(browse.has_help);
	assert_int_equal(browse_key(&browse, BROWSE_F10, 9, 3), BROWSE_QUIT);
	assert_int_equal(browse_key(&browse, BROWSE_F6, 9, 3), BROWSE_BUILD);
	assert_false(browse.by_total);
	browse_key(&browse, BROWSE_F4, 9, 3);
	assert_int_equal(browse.ask, BROWSE_FILTER);
	/* no key of an answer */
	browse_key(&browse, BROWSE_F10, 9, 3);
	assert_string_equal(browse.text, "");
}

static void keys_ask(void **state)
{
	struct browse browse = { 0 };

	(void)state;
	browse_key(&browse, '/', 9, 3);
	type(&browse, "qg\xc3\xa4");
	browse_key(&browse, BROWSE_BACKSPACE, 9, 3);
	assert_string_equal(browse.text, "qg");
	browse_key(&browse, BROWSE_UP, 9, 3);
	assert_int_equal(browse_key(&browse, BROWSE_ENTER, 9, 3), BROWSE_SET_FILTER);
	assert_string_equal(browse.text, "qg");
	browse_key(&browse, 'd', 9, 3);
	assert_string_equal(browse.text, "");
	browse_key(&browse, BROWSE_BACKSPACE, 9, 3);
	type(&browse, "5");
	assert_int_equal(browse_key(&browse, BROWSE_ENTER, 9, 3), BROWSE_SET_DELAY);
	browse_key(&browse, 'f', 9, 3);
	for (int i = 0; i < 2 * BROWSE_TEXT; i++)
		type(&browse, "x");
	assert_int_equal(strlen(browse.text), BROWSE_TEXT - 1);
	assert_int_equal(browse_key(&browse, BROWSE_ESCAPE, 9, 3), BROWSE_DRAW);
	assert_int_equal(browse.ask, BROWSE_NOTHING);
}

static void lines_are_cut(void **state)
{
	char cut[16];

	(void)state;
	assert_non_null(setlocale(LC_CTYPE, "C.UTF-8"));
	assert_int_equal(browse_cut("abcdef", 4, cut, sizeof(cut)), 4);
	assert_string_equal(cut, "abcd");
	assert_int_equal(browse_cut("a\033[2J\n\x7f", 9, cut, sizeof(cut)), 7);
	assert_string_equal(cut, "a?[2J??");
	/* two columns each: half of one is not shown */
	assert_int_equal(browse_cut("\xe4\xb8\xad\xe4\xb8\xad", 3, cut, sizeof(cut)), 2);
	assert_string_equal(cut, "\xe4\xb8\xad");
	assert_int_equal(browse_cut("a\xff\xe4\xb8", 9, cut, sizeof(cut)), 4);
	assert_string_equal(cut, "a???");
	assert_int_equal(browse_cut("abcdef", 9, cut, 4), 3);
	assert_int_equal(browse_cut("abc", 0, cut, sizeof(cut)), 0);
	assert_string_equal(cut, "");
}

/* Behind all of a name, and of one that is too long, in characters of three bytes. */
static void titles_end_with_the_process(void **state)
{
	char title[TITLE_BYTES], name[3 * TITLE_BYTES + 1] = "";

	(void)state;
	title_of("main", 7, title);
	assert_string_equal(title, "main, 7");
	for (size_t i = 0; i < TITLE_BYTES; i++)
		strcat(name, "\xe4\xb8\xad");
	for (size_t skipped = 0; skipped < 9; skipped += 3)
		for (uint32_t id = 1; id < 1000000000; id *= 10) {
			size_t at = 0;

			name[skipped] = 'x';
			title_of(name + skipped, id, title);
			assert_in_range(strlen(title), TITLE_BYTES - 4, TITLE_BYTES - 1);
			assert_int_equal(strtoul(strstr(title, ", ") + 2, NULL, 10), id);
			while (title[at] == 'x' || title[at] == '?' || utf8_length(title + at) == 3)
				at += title[at] == 'x' || title[at] == '?' ? 1 : 3;
			assert_int_equal(title[at], ',');
		}
	title_of("main", UINT32_MAX, title);
	assert_string_equal(title, "main, 4294967295");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keys_move),
		cmocka_unit_test(keys_choose),
		cmocka_unit_test(keys_ask),
		cmocka_unit_test(lines_are_cut),
		cmocka_unit_test(titles_end_with_the_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
