// SPDX-License-Identifier: Apache-2.0
/* By the examples of RFC 4648. */
#include "fixture.h"

#include <string.h>

#include "base/base64.h"

static const struct {
	const char *text, *encoded;
} examples[] = {
	{ "", "" }, { "f", "Zg==" }, { "fo", "Zm8=" }, { "foo", "Zm9v" },
	{ "foob", "Zm9vYg==" }, { "fooba", "Zm9vYmE=" }, { "foobar", "Zm9vYmFy" },
	{ "\xfb\xff\xbf\x3e", "+/+/Pg==" },
};

static void texts_are_encoded(void **state _unused_)
{
	char text[BASE64_CHARACTERS(6) + 1];

	for (size_t i = 0; i < ARRAY_SIZE(examples); i++) {
		base64_encode((const uint8_t *)examples[i].text, strlen(examples[i].text), text);
		assert_string_equal(text, examples[i].encoded);
		assert_int_equal(strlen(text), BASE64_CHARACTERS(strlen(examples[i].text)));
	}
}

/* Into exactly the room that it says. */
static void texts_are_decoded(void **state _unused_)
{
	for (size_t i = 0; i < ARRAY_SIZE(examples); i++) {
		const size_t length = strcspn(examples[i].encoded, "="), size = strlen(examples[i].text);
		_cleanup_free_ uint8_t *bytes = malloc(length / 4 * 3 + length % 4);
		ssize_t r;

		assert_non_null(bytes);
		r = base64_decode(examples[i].encoded, length, bytes);
		assert_int_equal(r, size);
		assert_memory_equal(bytes, examples[i].text, size);
	}
}

static void what_is_no_digit_is_refused(void **state _unused_)
{
	static const char others[] = "=-_ \n\x80@[`{:.,";
	uint8_t bytes[3];

	for (size_t i = 0; i < sizeof(others); i++) {
		const char text[] = { 'Z', 'm', others[i], 'v' };

		assert_int_equal(base64_decode(text, sizeof(text), bytes), -EBADMSG);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(texts_are_encoded),
		cmocka_unit_test(texts_are_decoded),
		cmocka_unit_test(what_is_no_digit_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
