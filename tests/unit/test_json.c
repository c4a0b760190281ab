// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "base/cpulist.h"
#include "base/json.h"

static void test_structure(void **state _unused_)
{
	struct json json;
	char *text = NULL;
	size_t size;
	FILE *stream = open_memstream(&text, &size);

	json_init(&json, stream);
	json_object(&json, NULL);
	json_array(&json, "empty");
	json_end(&json);
	json_array(&json, "list");
	json_u64(&json, NULL, UINT64_MAX);
	json_i64(&json, NULL, INT64_MIN);
	json_double(&json, NULL, 0.5);
	json_double(&json, NULL, NAN);
	json_bool(&json, NULL, true);
	json_string(&json, NULL, NULL);
	json_object(&json, NULL);
	json_end(&json);
	json_end(&json);
	json_raw(&json, "raw", "{\"a\":1}xx", 7);
	json_string(&json, "last", "x");
	json_end(&json);
	fclose(stream);
	assert_string_equal(text, "{\"empty\":[],\"list\":[18446744073709551615,"
				  "-9223372036854775808,0.5,null,true,null,{}],"
				  "\"raw\":{\"a\":1},\"last\":\"x\"}\n");
	free(text);
}

static void assert_quoted(const char *value, const char *wanted)
{
	struct json json;
	char *text = NULL;
	size_t size;
	FILE *stream = open_memstream(&text, &size);

	json_init(&json, stream);
	json_array(&json, NULL);
	json_string(&json, NULL, value);
	json_end(&json);
	fclose(stream);
	assert_string_equal(text, wanted);
	free(text);
}

static void test_strings(void **state _unused_)
{
	assert_quoted("a\"b\\c", "[\"a\\\"b\\\\c\"]\n");
	assert_quoted("a\nb\x1b\x7f", "[\"a\\u000ab\\u001b\\u007f\"]\n");
	assert_quoted("\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80",
		      "[\"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\"]\n");
	/* bare continuation, cut sequence, overlong, surrogate, beyond Unicode */
	assert_quoted("\x80z", "[\"\\ufffdz\"]\n");
	assert_quoted("\xe2\x82", "[\"\\ufffd\\ufffd\"]\n");
	assert_quoted("\xc0\xaf", "[\"\\ufffd\\ufffd\"]\n");
	assert_quoted("\xe0\x80\x80", "[\"\\ufffd\\ufffd\\ufffd\"]\n");
	assert_quoted("\xed\xa0\x80", "[\"\\ufffd\\ufffd\\ufffd\"]\n");
	assert_quoted("\xf4\x90\x80\x80", "[\"\\ufffd\\ufffd\\ufffd\\ufffd\"]\n");
}

static void assert_list(const char *text, size_t size, const char *wanted)
{
	struct cpulist list;
	char buffer[64];

	assert_int_equal(cpulist_parse(text, &list), 0);
	cpulist_format(&list, buffer, size);
	assert_string_equal(buffer, wanted);
	cpulist_done(&list);
}

static void test_cpu_lists(void **state _unused_)
{
	assert_list("0", 64, "0");
	assert_list("0-3,7", 64, "0-3,7");
	assert_list("7,0,1,2,3", 64, "0-3,7");
	assert_list("62-65,127-128", 64, "62-65,127-128");
	assert_list("", 64, "");
	assert_list("0,2,4,6,8", 10, "0,2,4,...");
	assert_list("0,2,4,6,8", 14, "0,2,4,6,8");
	assert_list("0-63", 4, "...");
	assert_list("0", 1, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_structure),
		cmocka_unit_test(test_strings),
		cmocka_unit_test(test_cpu_lists),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
