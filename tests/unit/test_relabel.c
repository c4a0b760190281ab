// SPDX-License-Identifier: Apache-2.0
#include "unit.h"

#include <regex.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/pattern.h"
#include "export/attributes.h"
#include "export/relabel.h"
#include "synthetic.h"

static struct pattern *pattern_of(const char *text)
{
	struct pattern *pattern = NULL;
	const char *error = "";
	int ret = pattern_new(text, &pattern, &error);

	if (ret < 0)
		fail_msg("%s: %s", text, error);
	return pattern;
}

static void patterns_match_whole_texts(void **state _unused_)
{
	static const struct {
		const char *pattern, *text;
		bool matches;
	} cases[] = {
		{ "", "", true }, { "", "a", false }, { "a", "a", true }, { "a", "ab", false },
		{ "a", "ba", false }, { ".", "\n", true }, { ".*", "", true }, { "a|b|c", "c", true },
		{ "a|", "", true }, { "(a|b)c", "bc", true }, { "(a|b)c", "b", false },
		{ "a*", "aaaa", true }, { "a+", "", false }, { "a+", "aaa", true },
		{ "ab?c", "ac", true }, { "ab?c", "abbc", false }, { "a{3}", "aaa", true },
		{ "a{3}", "aa", false }, { "a{2,}", "aaaaa", true }, { "a{2,}", "a", false },
		{ "a{0,2}", "", true }, { "a{0,2}b", "aab", true }, { "a{0,2}", "aaa", false },
		{ "a{1,3}", "aaa", true }, { "a{1,3}", "aaaa", false }, { "(ab){2,3}", "ababab", true },
		{ "(ab){2,3}", "ab", false }, { "a{0,}", "aa", true }, { "(a|bc){2}d", "bcad", true },
		{ "[a-c]+", "abc", true }, { "[^a-c]", "d", true }, { "[^a-c]", "b", false },
		{ "[]a]+", "]a", true }, { "[a-]", "-", true }, { "[[:digit:]x]+", "1x2", true },
		{ "[[:digit:]]", "a", false }, { "\\.\\*\\\\", ".*\\", true }, { "a\\.b", "axb", false },
		{ "(a*)*", "aaa", true }, { "(a*)+b", "b", true }, { "(|a)+", "aa", true },
		{ "((a|b)*c)*", "abcbc", true }, { "nginx.*", "nginx-1.25", true },
		{ "\xc3\xa4+", "\xc3\xa4\xa4", true },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct pattern *pattern = pattern_of(cases[i].pattern);

		/* twice, as what is left of the first time must not count */
		for (int times = 0; times < 2; times++)
			if (pattern_match(pattern, cases[i].text, NULL) != cases[i].matches)
				fail_msg("`%s' and `%s', time %d", cases[i].pattern, cases[i].text, times);
		pattern_free(pattern);
	}
}

static void wrong_patterns_are_refused(void **state _unused_)
{
	static const char *const wrong[][2] = {
		{ "(", "a ( has no )" }, { "a)", "a ) has no (" }, { "[", "a [ has no ]" },
		{ "[]", "a [ has no ]" }, { "[z-a]", "goes backwards" }, { "[[:what:]]", "unknown character class" },
		{ "*", "nothing to repeat" }, { "a|+", "nothing to repeat" }, { "(?a)", "nothing to repeat" },
		{ "a**", "nothing to repeat" }, { "{1}", "nothing to repeat" },
		{ "a{", "invalid repeat count" }, { "a{x}", "invalid repeat count" },
		{ "a{256}", "invalid repeat count" }, { "a{2,1}", "goes backwards" }, { "a{0}", "repeats nothing" },
		{ "a{0,0}", "invalid repeat count" }, { "a{1", "a { has no }" }, { "a\\", "\\ before a letter" }, { "\\d", "\\ before a letter" },
		{ "(a)\\1", "\\ before a letter" }, { "^a", "^ and $" }, { "a$", "^ and $" },
		{ "((a{255}){2}){2}", "too long" },
		{ "((((((((((((((((((((((((((((((((((a", "nested too deeply" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		struct pattern *pattern;
		const char *error = "";

		if (pattern_new(wrong[i][0], &pattern, &error) != -EINVAL || !strstr(error, wrong[i][1]))
			fail_msg("%s: %s", wrong[i][0], error);
	}
}

static void groups_are_where_perl_has_them(void **state _unused_)
{
	static const struct {
		const char *pattern, *text;
		struct pattern_span spans[3];
	} cases[] = {
		{ "(a+)(a*)", "aaa", { { 0, 3 }, { 0, 3 }, { 3, 3 } } },
		{ "(.*)-([0-9]+)", "api-web-17", { { 0, 10 }, { 0, 7 }, { 8, 10 } } },
		{ "(a|ab)(c|bcd)", "abcd", { { 0, 4 }, { 0, 1 }, { 1, 4 } } },
		{ "(a)|(b)", "b", { { 0, 1 }, { 0, 0 }, { 0, 1 } } },
		{ "(ab){2}", "abab", { { 0, 4 }, { 2, 4 } } },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct pattern_span spans[PATTERN_MAX_GROUPS];
		struct pattern *pattern = pattern_of(cases[i].pattern);
		assert_true(pattern_match(pattern, cases[i].text, spans));
		assert_memory_equal(spans, cases[i].spans, sizeof(cases[i].spans));
		pattern_free(pattern);
	}
}

/* The C library's is another implementation of the same language. */
static void random_patterns_match_what_the_library_says(void **state _unused_)
{
	static const char *const pieces[] = { "a", "b", ".", "(a|b)", "[ab]", "[^a]", "(ab|a)", "(a|bb|)" };
	static const char *const counts[] = { "", "", "*", "+", "?", "{2}", "{0,2}", "{1,}" };
	unsigned int matched = 0;

	srandom(1);
	for (int i = 0; i < 3000; i++) {
		char text[128] = "", anchored[160], subject[16] = "";
		struct pattern *pattern;
		regex_t library;
		size_t length = (size_t)random() % 8;

		for (long n = 1 + random() % 4; n > 0; n--) {
			strcat(text, pieces[(size_t)random() % ARRAY_SIZE(pieces)]);
			strcat(text, counts[(size_t)random() % ARRAY_SIZE(counts)]);
			if (!(random() % 4) && n > 1)
				strcat(text, "|");
		}
		for (size_t k = 0; k < length; k++)
			subject[k] = "abc"[random() % 3];
		snprintf(anchored, sizeof(anchored), "^(%s)$", text);
		assert_int_equal(regcomp(&library, anchored, REG_EXTENDED | REG_NOSUB), 0);
		pattern = pattern_of(text);
		if (pattern_match(pattern, subject, NULL) != !regexec(&library, subject, 0, NULL, 0))
			fail_msg("`%s' and `%s'", text, subject);
		matched += pattern_match(pattern, subject, NULL);
		pattern_free(pattern);
		regfree(&library);
	}
	assert_in_range(matched, 300, 2700);
}

static uint64_t cpu_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return (uint64_t)time.tv_sec * NSEC_PER_SEC + (uint64_t)time.tv_nsec;
}

/* What takes others exponential time or memory takes this one bytes times steps. */
static void hostile_texts_cost_no_more_than_long_ones(void **state _unused_)
{
	static const char *const patterns[] = {
		"(a*)*b", "(a|aa)+b", "(a|b)*a(a|b){20}c", "(.*)(.*)(.*)(.*)(.*)(.*)(.*)(.*)x", "(a?){100}b",
	};
	char text[PATTERN_MAX_TEXT + 2] = "";

	memset(text, 'a', PATTERN_MAX_TEXT);
	for (size_t i = 0; i < ARRAY_SIZE(patterns); i++) {
		struct pattern *pattern = pattern_of(patterns[i]);
		uint64_t start = cpu_ns();

		assert_false(pattern_match(pattern, text, NULL));
		/* under the sanitizers, on a slow machine; exponential is years */
		assert_true(cpu_ns() - start < 3 * NSEC_PER_SEC);
		pattern_free(pattern);
	}
	text[PATTERN_MAX_TEXT] = 'a';
	struct pattern *all = pattern_of(".*");

	assert_false(pattern_match(all, text, NULL));
	text[PATTERN_MAX_TEXT] = '\0';
	assert_true(pattern_match(all, text, NULL));
	pattern_free(all);
}

static struct attributes *some_attributes(void)
{
	struct attributes *attributes = attributes_new();

	assert_non_null(attributes);
	attributes_int(attributes, "process.pid", 4711);
	attributes_string(attributes, "service.name", "api-17");
	attributes_string(attributes, "host.name", "node");
	attributes_string(attributes, "k8s.a", "1");
	attributes_string(attributes, "k8s.b", "2");
	return attributes;
}

/* "key=value key=value" after @rule */
static char *after(const char *rule, int *ret_left_out)
{
	struct attributes *attributes = some_attributes();
	struct relabel_result sent;
	struct relabel *relabel;
	char error[256] = "", number[24], *text = NULL;
	size_t size;
	FILE *stream = open_memstream(&text, &size);

	assert_int_equal(relabel_new(&relabel), 0);
	if (relabel_add(relabel, rule, error, sizeof(error)) < 0)
		fail_msg("%s", error);
	sent = relabel_apply(relabel, attributes, true);
	*ret_left_out = sent.one_in ? -1 : sent.rule;
	assert_int_equal(attributes->error, 0);
	for (size_t i = 0; i < attributes->count; i++)
		fprintf(stream, "%s%s=%s", i ? " " : "", attributes->pairs[i].key,
			attributes_text(attributes, i, number));
	fclose(stream);
	attributes_free(attributes);
	relabel_free(relabel);
	return text;
}

static void rules_change_what_they_match(void **state _unused_)
{
	static const char all[] = "process.pid=4711 service.name=api-17 host.name=node k8s.a=1 k8s.b=2";
	static const struct {
		const char *rule;
		int left_out;
		const char *text;
	} cases[] = {
		{ "keep service.name api-.*", -1, all },
		{ "keep service.name web-.*", 0, all },
		{ "keep absent x", 0, all },
		{ "keep absent \"\"", -1, all },
		{ "drop service.name api-[0-9]+", 0, all },
		{ "drop service.name api", -1, all },
		{ "drop process.pid 47.*", 0, all },
		{ "drop absent .+", -1, all },
		{ "downsample service.name api-.* 10", -1, all },
		{ "remove k8s\\..*", -1, "process.pid=4711 service.name=api-17 host.name=node" },
		{ "remove .*", -1, "" },
		{ "rename k8s\\.(.*) kube.\\1", -1,
		  "process.pid=4711 service.name=api-17 host.name=node kube.a=1 kube.b=2" },
		{ "rename k8s\\.a host.name", -1, "process.pid=4711 service.name=api-17 host.name=1 k8s.b=2" },
		{ "rename (.*) x.\\1", -1,
		  "x.process.pid=4711 x.service.name=api-17 x.host.name=node x.k8s.a=1 x.k8s.b=2" },
		{ "rename k8s.* one", -1, "process.pid=4711 service.name=api-17 host.name=node one=1" },
		{ "rename process\\.pid pid", -1, "pid=4711 service.name=api-17 host.name=node k8s.a=1 k8s.b=2" },
		{ "set k8s.a new", -1, "process.pid=4711 service.name=api-17 host.name=node k8s.b=2 k8s.a=new" },
		{ "set  k8s.a\t\"two words\" ", -1,
		  "process.pid=4711 service.name=api-17 host.name=node k8s.b=2 k8s.a=two words" },
		{ "set k8s.a \"\"", -1, "process.pid=4711 service.name=api-17 host.name=node k8s.b=2" },
		{ "set service.name \\1 if service.name (.*)-[0-9]+", -1,
		  "process.pid=4711 host.name=node k8s.a=1 k8s.b=2 service.name=api" },
		{ "set service.name \\1 if host.name x(.*)", -1, all },
		{ "set pid \\\\\\0 if process.pid .*", -1,
		  "process.pid=4711 service.name=api-17 host.name=node k8s.a=1 k8s.b=2 pid=\\4711" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		int left_out;
		char *text = after(cases[i].rule, &left_out);

		if (left_out != cases[i].left_out || strcmp(text, cases[i].text) != 0)
			fail_msg("%s: %d, %s", cases[i].rule, left_out, text);
		free(text);
	}
}

static void wrong_rules_are_refused(void **state _unused_)
{
	static const char *const wrong[][2] = {
		{ "", "must begin with" }, { "replace a b", "must begin with" }, { "keep", "keep KEY PATTERN" },
		{ "keep a", "keep KEY PATTERN" }, { "keep a b c", "keep KEY PATTERN" },
		{ "keep \"\" b", "keep KEY PATTERN" }, { "remove a b", "remove PATTERN" },
		{ "rename a", "rename PATTERN KEY" }, { "set a b if c", "set KEY VALUE" },
		{ "set a b on c d", "set KEY VALUE" }, { "set a \"b", "without its end" },
		{ "set a b if c d e", "than 6 words" }, { "drop a (", "`(': a ( has no )" },
		{ "downsample a b", "downsample KEY PATTERN N" }, { "downsample a b 0", "N must be a number" },
		{ "downsample a b 10001", "N must be a number" }, { "downsample a b 42949672960", "N must be a number" },
		{ "downsample a b \"\"", "N must be a number" }, { "downsample a b -1", "N must be a number" },
		{ "downsample a b 2x", "N must be a number" }, { "downsample a ( 2", "invalid pattern `('" },
	};
	struct relabel *relabel;
	char error[256], *text = calloc(1, RELABEL_MAX_TEXT + 16);

	assert_int_equal(relabel_new(&relabel), 0);
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		if (relabel_add(relabel, wrong[i][0], error, sizeof(error)) != -EINVAL ||
		    !strstr(error, wrong[i][1]))
			fail_msg("%s: %s", wrong[i][0], error);
	strcpy(text, "set a ");
	memset(text + 6, 'b', RELABEL_MAX_TEXT - 6);
	assert_int_equal(relabel_add(relabel, text, error, sizeof(error)), -EINVAL);
	assert_non_null(strstr(error, "511 bytes"));
	free(text);
	for (size_t i = 0; i < RELABEL_MAX_RULES; i++)
		assert_int_equal(relabel_add(relabel, "set a b", error, sizeof(error)), 0);
	assert_int_equal(relabel_add(relabel, "set a b", error, sizeof(error)), -E2BIG);
	assert_non_null(strstr(error, "more than 64"));
	relabel_free(relabel);
}

static int count_samples(void *ctx, struct payload *payload)
{
	*(uint64_t *)ctx += payload->samples;
	free(payload->data);
	return 0;
}

static void what_is_left_out_is_counted(void **state _unused_)
{
	struct encode_options options = { .max_bytes = 1 << 24 };
	struct aggregator *aggregator;
	struct window *window;
	char error[256];
	uint64_t whole = 0, part = 0;

	assert_int_equal(aggregator_new(&aggregator), 0);
	window = synthetic_window(aggregator);
	assert_int_equal(encode_window(&options, window, count_samples, &whole), 0);
	assert_int_equal(relabel_new(&options.relabel), 0);
	assert_int_equal(relabel_add(options.relabel, "set x y", error, sizeof(error)), 0);
	assert_int_equal(relabel_add(options.relabel, "drop process.pid .*[02468]", error, sizeof(error)), 0);
	assert_int_equal(encode_window(&options, window, count_samples, &part), 0);
	assert_in_range(part, 1, whole - 1);
	assert_int_equal(relabel_samples(options.relabel), whole - part);
	assert_int_equal(relabel_count(options.relabel, 0).samples, 0);
	assert_int_equal(relabel_count(options.relabel, 1).samples, whole - part);
	assert_true(relabel_count(options.relabel, 0).matched > relabel_count(options.relabel, 1).matched);
	assert_true(relabel_count(options.relabel, 1).matched > 0);
	relabel_free(options.relabel);
	window_free(window);
	aggregator_free(aggregator);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(patterns_match_whole_texts),
		cmocka_unit_test(wrong_patterns_are_refused),
		cmocka_unit_test(groups_are_where_perl_has_them),
		cmocka_unit_test(random_patterns_match_what_the_library_says),
		cmocka_unit_test(hostile_texts_cost_no_more_than_long_ones),
		cmocka_unit_test(rules_change_what_they_match),
		cmocka_unit_test(wrong_rules_are_refused),
		cmocka_unit_test(what_is_left_out_is_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
