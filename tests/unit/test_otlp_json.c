// SPDX-License-Identifier: Apache-2.0
/* OTLP's JSON out, and the answers to it in; what a parser that is not ours makes of it see exporter_cases.py. */
#include <string.h>

#include "export/json_answer.h"
#include "export/otlp.h"
#include "export/otlp_json.h"
#include "unit.h"

static void assert_json(const char *data, size_t size, const char *want)
{
	struct buffer buffer = { .pool = POOL_ENCODE };

	assert_int_equal(otlp_json_append(&buffer, OTLP_DATA_DESCRIPTOR, (const uint8_t *)data, size), 0);
	assert_int_equal(buffer.size, strlen(want));
	assert_memory_equal(buffer.data, want, buffer.size);
	buffer_free(&buffer);
	assert_int_equal(pool_get(POOL_ENCODE)->used, 0);
}

#define assert_json_of(literal, want) assert_json(literal, sizeof(literal) - 1, want)

static void values_are_as_the_mapping_has_them(void **state _unused_)
{
	assert_json_of("", "{}");
	/* a dictionary with strings: the empty one, and one with what JSON escapes */
	assert_json_of("\x12\x0a\x2a\x00\x2a\x06\"\\\n\x01\xc3\xa4",
		       "{\"dictionary\":{\"stringTable\":[\"\",\"\\u0022\\u005c\\u000a\\u0001\xc3\xa4\"]}}");
	/* int32 as a number, uint64 as text */
	assert_json_of("\x12\x0f\x0a\x0d\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x20\x07",
		       "{\"dictionary\":{\"mappingTable\":[{\"memoryStart\":\"18446744073709551615\","
		       "\"filenameStrindex\":7}]}}");
	/* profile_id in hex; a fixed64 */
	assert_json_of("\x0a\x12\x12\x10\x12\x0e\x19\x01\x00\x00\x00\x00\x00\x00\x80\x3a\x03\x0a\xb0\xff",
		       "{\"resourceProfiles\":[{\"scopeProfiles\":[{\"profiles\":[{\"timeUnixNano\":"
		       "\"9223372036854775809\",\"profileId\":\"0ab0ff\"}]}]}]}");
	/* timestamps packed, values not; a field that nobody knows */
	assert_json_of("\x0a\x22\x12\x20\x12\x1e\x12\x1c\x08\x02\x20\x05\x20\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"
		       "\x2a\x08\x09\x00\x00\x00\x00\x00\x00\x00\xf8\x07\x01",
		       "{\"resourceProfiles\":[{\"scopeProfiles\":[{\"profiles\":[{\"samples\":[{\"stackIndex\":2,"
		       "\"values\":[\"5\",\"-1\"],\"timestampsUnixNano\":[\"9\"]}]}]}]}]}");
}

/* As parts of a window that were appended to each other. */
static void what_came_in_pieces_is_one(void **state _unused_)
{
	assert_json_of("\x12\x03\x2a\x01\x61\x0a\x00\x12\x05\x2a\x01\x62\x3a\x00",
		       "{\"resourceProfiles\":[{}],\"dictionary\":{\"stringTable\":[\"a\",\"b\"],\"stackTable\":[{}]}}");
}

static void what_is_no_message_is_refused(void **state _unused_)
{
	static const char *const bad[] = {
		"\x12",				/* no length */
		"\x12\x05\x2a",			/* cut */
		"\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
		"\x10\x01",			/* a number for a message */
		"\x13\x14",			/* groups are none of ours */
		"\x12\x02\x28\x01",		/* a number for a string */
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct buffer buffer = { .pool = POOL_ENCODE };

		assert_int_equal(otlp_json_append(&buffer, OTLP_DATA_DESCRIPTOR, (const uint8_t *)bad[i], strlen(bad[i])), -EBADMSG);
		buffer_free(&buffer);
	}
}

static int answer(const char *text, struct json_answer *ret_answer)
{
	return json_answer_read((const uint8_t *)text, strlen(text), ret_answer);
}

static void answers_are_read(void **state _unused_)
{
	struct json_answer said;

	assert_int_equal(answer(" {} \n", &said), 0);
	assert_true(!said.text[0] && !said.rejected);
	assert_int_equal(answer("{\"partialSuccess\":{\"rejectedProfiles\":\"12\",\"errorMessage\":\"a \\\"b\\\"\\u00e4\"}}",
				&said), 0);
	assert_int_equal(said.rejected, 12);
	assert_string_equal(said.text, "a \"b\"?");
	assert_int_equal(answer("{\"code\": 3, \"details\": [1.5e-3, null, {\"x\": []}], \"message\": \"no\"}", &said), 0);
	assert_string_equal(said.text, "no");
	assert_int_equal(answer("{\"partialSuccess\":{\"rejectedProfiles\":7}}", &said), 0);
	assert_int_equal(said.rejected, 7);
}

static void what_is_no_answer_is_refused(void **state _unused_)
{
	static const char *const bad[] = {
		"", "[]", "1", "{", "{}x", "{\"a\"}", "{\"a\":}", "{\"a\":1,}", "{\"a\":\"b}", "{\"a\":\"\\x\"}", "{\"a\":\"\\u12",
		"{1:2}", "{\"a\":[1,]}", "{\"a\":<html>}",
	};
	char deep[4096], long_text[2048];
	struct json_answer said;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(answer(bad[i], &said), -EBADMSG);
	memset(deep, '[', sizeof(deep));
	memcpy(deep, "{\"a\":", 5);
	deep[sizeof(deep) - 1] = '\0';
	assert_int_equal(answer(deep, &said), -EBADMSG);
	/* what is longer than its room is cut */
	memset(long_text, 'y', sizeof(long_text));
	memcpy(long_text, "{\"message\":\"", 12);
	strcpy(long_text + sizeof(long_text) - 3, "\"}");
	assert_int_equal(answer(long_text, &said), 0);
	assert_int_equal(strlen(said.text), sizeof(said.text) - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_are_as_the_mapping_has_them), cmocka_unit_test(what_came_in_pieces_is_one),
		cmocka_unit_test(what_is_no_message_is_refused), cmocka_unit_test(answers_are_read),
		cmocka_unit_test(what_is_no_answer_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
