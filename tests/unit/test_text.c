// SPDX-License-Identifier: Apache-2.0
/* Bytes of text that somebody else wrote: which are characters, and which stand for others. */
#include "unit.h"

#include <string.h>

#include "base/hex.h"
#include "base/utf8.h"

static void characters_are_well_formed(void **state)
{
	static const struct {
		const char *text;
		size_t length;
		const char *copy;
	} cases[] = {
		{ "a", 1, "a" }, { "\n", 1, "?" }, { "\x7f", 1, "?" }, { "\xc2\xa0", 2, "\xc2\xa0" },
		{ "\xc2\x80", 2, "??" }, { "\xc3\xa4", 2, "\xc3\xa4" }, { "\xe2\x82\xac", 3, "\xe2\x82\xac" },
		{ "\xf0\x9f\x98\x80", 4, "\xf0\x9f\x98\x80" }, { "\xf4\x8f\xbf\xbf", 4, "\xf4\x8f\xbf\xbf" },
		/* cut off, overlong, a surrogate, beyond the last one, none at all */
		{ "\xe2\x82", 0, "??" }, { "\xc0\x80", 0, "??" }, { "\xc1\xbf", 0, "??" }, { "\xe0\x9f\xbf", 0, "???" },
		{ "\xf0\x8f\xbf\xbf", 0, "????" }, { "\xed\xa0\x80", 0, "???" }, { "\xf4\x90\x80\x80", 0, "????" },
		{ "\xf5\x80\x80\x80", 0, "????" }, { "\x80", 0, "?" }, { "\xff", 0, "?" },
	};
	char copy[16];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		/* of its size, so that nothing is read behind its NUL */
		char *text = strdup(cases[i].text);

		assert_int_equal(utf8_length(text), cases[i].length);
		utf8_copy(copy, sizeof(copy), text);
		assert_string_equal(copy, cases[i].copy);
		free(text);
	}
}

static void what_is_cut_off_is_marked(void **state)
{
	static const struct {
		const char *text;
		size_t size;
		const char *shortened;
	} cases[] = {
		{ "whole", 6, "whole" }, { "whole", 5, "w\u2026" }, { "whole", 4, "\u2026" }, { "whole", 3, "wh" }, { "whole", 1, "" },
		/* no character is cut, nor is there more than has room */
		{ "a\u00e9\u00e9\u00e9", 8, "a\u00e9\u00e9\u00e9" }, { "a\u00e9\u00e9\u00e9", 7, "a\u00e9\u2026" },
		{ "\u20ac\u20ac\u20ac", 9, "\u20ac\u2026" }, { "\u20ac\u20ac\u20ac", 10, "\u20ac\u20ac\u20ac" },
		{ "\xff\xff\xff\xff\xff", 5, "?\u2026" }, { "", 1, "" },
	};
	char shortened[16];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_int_equal(utf8_shorten(shortened, cases[i].size, cases[i].text), strlen(cases[i].shortened));
		assert_string_equal(shortened, cases[i].shortened);
	}
}

static void percent_signs_stand_for_bytes(void **state)
{
	static const struct {
		const char *text;
		int byte;
	} cases[] = {
		{ "%41", 0x41 }, { "%fF", 0xff }, { "%00", 0 }, { "%20x", 0x20 },
		{ "%4", -1 }, { "%", -1 }, { "", -1 }, { "%4g", -1 }, { "%g4", -1 }, { "41%", -1 }, { "%%41", -1 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char *text = strdup(cases[i].text);

		assert_int_equal(hex_percent(text, text + strlen(text)), cases[i].byte);
		/* it ends before */
		if (cases[i].byte >= 0)
			assert_int_equal(hex_percent(text, text + 2), -1);
		free(text);
	}
	assert_int_equal(hex_digit('9'), 9);
	assert_int_equal(hex_digit('a'), 10);
	assert_int_equal(hex_digit('F'), 15);
	assert_int_equal(hex_digit('g'), -1);
	assert_int_equal(hex_digit('\x01'), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(characters_are_well_formed),
		cmocka_unit_test(what_is_cut_off_is_marked),
		cmocka_unit_test(percent_signs_stand_for_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
