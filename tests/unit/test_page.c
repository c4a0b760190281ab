// SPDX-License-Identifier: Apache-2.0
/* What is written for people to open: the page, the picture, and that names in them are text. */
#include "fixture.h"
#include "recorded.h"

#include <stdlib.h>

#include "base/base64.h"
#include "base/sha256.h"
#include "view/escape.h"
#include "view/page.h"

static char *text;
static size_t text_size;

static FILE *text_open(void)
{
	FILE *file = open_memstream(&text, &text_size);

	assert_non_null(file);
	return file;
}

static struct model *load(bool with_times)
{
	const char *path = fixture_path("page.otlp");
	struct model *model;

	recorded_file(path, 1 << 24);
	assert_int_equal(model_load(path, &(struct model_options){ .with_times = with_times }, &model,
				    NULL, 0), 0);
	return model;
}

static void expect(void (*escape)(FILE *file, const char *text), const char *from, const char *to)
{
	FILE *file = text_open();

	escape(file, from);
	assert_int_equal(fclose(file), 0);
	assert_string_equal(text, to);
	free(text);
}

static void names_stay_text(void **state)
{
	(void)state;
	expect(escape_json, "plain", "\"plain\"");
	expect(escape_json, "</script><!--", "\"\\u003c/script\\u003e\\u003c!--\"");
	expect(escape_json, "a\"b\\c&d", "\"a\\\"b\\\\c\\u0026d\"");
	expect(escape_json, "x\xe2\x80\xa8y\xe2\x80\xa9z\xe2\x80\xaa", "\"x\\u2028y\\u2029z\xe2\x80\xaa\"");
	expect(escape_json, "\x01\n\x7f", "\"\\u0001\\u000a\\u007f\"");
	/* cut inside a character */
	expect(escape_json, "\xe2\x80", "\"\xe2\x80\"");
	expect(escape_json, "\xe2", "\"\xe2\"");
	expect(escape_json, "", "\"\"");
	expect(escape_xml, "<a href=\"x\" b='y'>&amp;", "&lt;a href=&quot;x&quot; b=&#39;y&#39;&gt;&amp;amp;");
	expect(escape_xml, "\x01\x7f\xe2\x80\xa8", "\?\?\xe2\x80\xa8");
}

/* Not by strstr(), of which ASan looks at the whole text each time. */
static size_t count(const char *what)
{
	size_t found = 0;

	for (const char *at = text; *at; at++)
		found += *at == *what && !strncmp(at, what, strlen(what));
	return found;
}

/* The policy names the only script and the only style, by what they are. */
static void the_policy_lets_its_own_run(void **state)
{
	static const struct { const char *begin, *end, *directive; } parts[] = {
		{ "<script>", "</script>", "script-src 'sha256-" },
		{ "<style>", "</style>", "style-src 'sha256-" },
	};
	struct model *model = load(true);
	FILE *file = text_open();

	(void)state;
	assert_int_equal(page_write(model, "</title><script>bad()</script>", file), 0);
	assert_int_equal(fclose(file), 0);
	assert_non_null(strstr(text, "default-src 'none'; "));
	assert_non_null(strstr(text, "<title>&lt;/title&gt;&lt;script&gt;bad()&lt;/script&gt;</title>"));
	assert_int_equal(count("<script>"), 1);
	assert_int_equal(count("<script "), 1);
	assert_int_equal(count("</script>"), 2);
	assert_int_equal(count("unsafe-inline"), 0);
	assert_int_equal(count("http:") + count("https:"), 0);
	/* no mark is left */
	assert_int_equal(count("@TITLE@") + count("@SHA_") + count("@DATA_@") + count("@CODE_@"), 0);
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		const char *begin = strstr(text, parts[i].begin) + strlen(parts[i].begin);
		const char *end = strstr(begin, parts[i].end);
		char hash[BASE64_CHARACTERS(SHA256_BYTES) + 1];
		uint8_t digest[SHA256_BYTES];

		sha256_of(&(struct sha256_part){ begin, (size_t)(end - begin) }, 1, digest);
		base64_encode(digest, sizeof(digest), hash);
		assert_memory_equal(strstr(text, parts[i].directive) + strlen(parts[i].directive), hash,
				    strlen(hash));
	}
	free(text);
	model_free(model);
}

static void a_picture_has_what_can_be_seen(void **state)
{
	struct model *model = load(false);
	FILE *file = text_open();

	(void)state;
	assert_int_equal(svg_write(model, model_main_event(model), "a & b", file), 0);
	assert_int_equal(fclose(file), 0);
	assert_non_null(strstr(text, "<title>a &amp; b</title>"));
	assert_non_null(strstr(text, "4040 samples of cycles"));
	assert_non_null(strstr(text, "\n4040 samples, 100.00 %</title>"));
	assert_int_equal(count("<g>"), count("</g>"));
	assert_true(count("<g>") > 100);
	assert_int_equal(count("<script"), 0);
	free(text);
	model_free(model);
}

static int teardown(void **state)
{
	(void)state;
	synthetic_check_pools();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_stay_text), cmocka_unit_test(the_policy_lets_its_own_run),
		cmocka_unit_test(a_picture_has_what_can_be_seen),
	};

	return cmocka_run_group_tests(tests, NULL, teardown);
}
