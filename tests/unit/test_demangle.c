// SPDX-License-Identifier: Apache-2.0
#include "fixture.h"

#include "base/clock.h"
#include "base/pool.h"
#include "base/utf8.h"
#include "symbol/demangle.h"
#include "resolve/names.h"

static const char *demangled(const char *mangled)
{
	static char name[DEMANGLE_MAX];

	return demangle(mangled, name) ? name : "";
}

static void names_are_demangled(void **state)
{
	(void)state;
	assert_string_equal(demangled("_ZNSt6vectorIiSaIiEE9push_backERKi"),
			    "std::vector<int, std::allocator<int> >::push_back");
	assert_string_equal(demangled("_ZN3foo3barEv"), "foo::bar");
	/* Rust, the older way: C++ with a hash at the end */
	assert_string_equal(demangled("_ZN4core3fmt9Formatter3pad17h05af221e174051e9E"),
			    "core::fmt::Formatter::pad");
	/* and the newer one */
	assert_string_equal(demangled("_RNvCs15kBYyAo9fc_7mycrate7example"), "mycrate::example");
	/* what compilers add behind */
	assert_string_equal(demangled("_ZN3foo3barEv.constprop.0.isra.1"), "foo::bar");
	assert_string_equal(demangled("_ZN4core3fmt9Formatter3pad17h05af221e174051e9E.llvm.12"),
			    "core::fmt::Formatter::pad");
	assert_string_equal(demangled("_RINvNtC3std3mem8align_ofjE.llvm.99"),
			    "std::mem::align_of::<usize>");
	assert_string_equal(demangled("_ZZ4mainENKUlvE_clEv"), "main::{lambda()#1}::operator()");
	assert_string_equal(demangled("main"), "");
	assert_string_equal(demangled("_Zebra"), "");
	assert_string_equal(demangled("_Z"), "");
	assert_string_equal(demangled("_R"), "");
	assert_string_equal(demangled(""), "");
}

static void names_of_d_are_demangled(void **state)
{
	(void)state;
	assert_string_equal(demangled("_Dmain"), "D main");
	assert_string_equal(demangled("_D4test3fooFiZv"), "test.foo");
	assert_string_equal(demangled("_D4test3fooMxFZv"), "test.foo");
	assert_string_equal(demangled("_D8demangle4testFaZv"), "demangle.test");
	assert_string_equal(demangled("_D8demangle14__T2fnVAiA4i1Z2fnFZv"), "");
	assert_string_equal(demangled("_D8demangle9__T2fnTaZ2fnFiZv"), "demangle.fn!(char).fn");
	assert_string_equal(demangled("_D4core4stdc5errnoQgFZi"), "core.stdc.errno.errno");
	assert_string_equal(demangled("_D"), "");
	assert_string_equal(demangled("_D9"), "");
	assert_string_equal(demangled("_Data_end"), "");
}

/* Swift has no demangler here, and others that begin alike are nobody's. */
static void other_names_are_left(void **state)
{
	static const char *const names[] = {
		"$s4main3fooyyF", "_$s4main3fooyyF", "_T04main3fooyyF", "__Z3foov", "main.main",
		"camlStdlib__List__map_272", "_GLOBAL__sub_I_x", "?foo@@YAXXZ", "Java_java_lang_Object",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		assert_string_equal(demangled(names[i]), "");
}

/* A table of tables, each of the one before twice: @levels of them are 2^levels ints. */
static const char *bomb_of_d(int levels)
{
	static char text[1024];
	char *end = text + sprintf(text, "_D1aFi"), *before = end - 1;

	for (int i = 0; i < levels; i++) {
		char *start = end;

		*end++ = 'H';
		for (int k = 0; k < 2; k++) {
			*end = 'Q';
			end[1] = (char)('a' + (end - before));
			end += 2;
		}
		before = start;
	}
	sprintf(end, "Zv");
	return text;
}

static void names_of_d_that_expand_are_left(void **state)
{
	uint64_t started = clock_read(CLOCK_PROCESS_CPUTIME_ID);

	(void)state;
	assert_string_equal(demangled(bomb_of_d(4)), "a");
	assert_string_equal(demangled(bomb_of_d(10)), "");
	for (int i = 0; i < 1000; i++)
		assert_string_equal(demangled(bomb_of_d(100)), "");
	assert_true(clock_read(CLOCK_PROCESS_CPUTIME_ID) - started < 5 * NSEC_PER_SEC);
}

/* A pack of pairs, each of the pair before, which is read, and the same by reference: 2^levels of them. */
static const char *riddle(int levels)
{
	static char text[1024];
	char *end = text + sprintf(text, "_Z1fIDp");

	for (int i = 0; i < levels; i++)
		end += sprintf(end, "St4pairI");
	end += sprintf(end, "iiE");
	/* S_ is f, then come as many of pair itself */
	for (int n = levels; n < 2 * levels - 1; n++) {
		static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";

		*end++ = 'S';
		if (n >= 36)
			*end++ = digits[n / 36];
		end += sprintf(end, "%c_E", digits[n % 36]);
	}
	sprintf(end, "Evv");
	return text;
}

static void names_that_take_years_are_left(void **state)
{
	const char *name = "_ZNSt6vectorINSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEESaIS5_EE5clearEv";
	uint64_t started = clock_read(CLOCK_PROCESS_CPUTIME_ID);

	(void)state;
	assert_non_null(strstr(demangled(riddle(4)), "pair"));
	for (int i = 0; i < 10; i++)
		assert_string_equal(demangled(riddle(60)), "");
	assert_non_null(strstr(demangled(name), "::clear"));
	/* which adds up, and is given up for a while then */
	for (int i = 0; i < 3000; i++)
		assert_string_equal(demangled(riddle(60)), "");
	assert_string_equal(demangled(name), "");
	assert_string_equal(demangled("_Z3fooi"), "foo");
	assert_true(clock_read(CLOCK_PROCESS_CPUTIME_ID) - started < 30 * NSEC_PER_SEC);
}

/* Each of @part doubles the time, or more, that finding out takes that it is no name. */
static const char *riddle_of_d(const char *begin, const char *part, unsigned int parts)
{
	static char text[1024];
	char *end = text + sprintf(text, "%s", begin);

	while (parts--)
		end += sprintf(end, "%s", part);
	return text;
}

static void names_of_d_that_take_years_are_left(void **state)
{
	uint64_t started = clock_read(CLOCK_PROCESS_CPUTIME_ID);

	(void)state;
	assert_string_equal(demangled("_D1aFC1bFZvZv"), "a");
	assert_string_equal(demangled("_D3std8datetime9__T3fooS3barZ3fooFS1aS1bE1cZv"), "");
	assert_string_equal(demangled("_D1aFS1bS1cC1dE1eZv"), "a");
	for (int i = 0; i < 100; i++) {
		assert_string_equal(demangled(riddle_of_d("_D1a", "FC1a", 200)), "");
		assert_string_equal(demangled(riddle_of_d("_D9", "__T1aS99", 100)), "");
		assert_string_equal(demangled(riddle_of_d("_D1a", "FC1aQe", 100)), "");
		assert_string_equal(demangled(riddle_of_d("_D1a", "FE1a", 12)), "");
	}
	assert_true(clock_read(CLOCK_PROCESS_CPUTIME_ID) - started < 5 * NSEC_PER_SEC);
}

/*
 * Nested pairs, each of the pair before twice: @levels of them are 2^levels ints. A pair adds two
 * substitutions, its template and itself; f is the first of all.
 */
static const char *bomb(int levels)
{
	static char text[512];
	char *end = text + sprintf(text, "_Z1fISt4pairIiiE");

	for (int i = 0; i < levels; i++) {
		int n = 2 * i + 1;
		char reference = (char)(n < 10 ? '0' + n : 'A' + n - 10);

		end += sprintf(end, "St4pairIS%c_S%c_E", reference, reference);
	}
	sprintf(end, "Evv");
	return text;
}

static void names_that_expand_are_left(void **state)
{
	uint64_t started = clock_read(CLOCK_PROCESS_CPUTIME_ID);

	(void)state;
	assert_string_equal(demangled(bomb(1)),
			    "f<std::pair<int, int>, "
			    "std::pair<std::pair<int, int>, std::pair<int, int> > >");
	assert_true(demangled(bomb(4))[0]);
	/* beyond the cap, and far beyond */
	assert_string_equal(demangled(bomb(10)), "");
	for (int i = 0; i < 1000; i++)
		assert_string_equal(demangled(bomb(17)), "");
	assert_true(clock_read(CLOCK_PROCESS_CPUTIME_ID) - started < 5 * NSEC_PER_SEC);
}

static void random_names_do_no_harm(void **state)
{
	static const char alphabet[] = "_ZNSRIECTtvibpPKLJXDFAUMYuh0123456789aQs.$";
	uint64_t seed = 7;
	char name[300];

	(void)state;
	for (int i = 0; i < 50000; i++) {
		size_t length = 2 + (size_t)(i % 290);

		name[0] = '_';
		name[1] = "ZRD"[i % 3];
		for (size_t j = 2; j < length; j++) {
			seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
			name[j] = alphabet[(seed >> 33) % (sizeof(alphabet) - 1)];
		}
		if (name[1] == 'D')
			name[2] = '3';
		name[length] = '\0';
		demangled(name);
	}
}

static void text_becomes_utf8(void **state)
{
	static const struct {
		const char *from, *to;
	} cases[] = {
		{ "plain", "plain" },
		{ "gr\xc3\xbc\xc3\x9f", "gr\xc3\xbc\xc3\x9f" },
		{ "\xe2\x82\xac \xf0\x9f\x98\x80", "\xe2\x82\xac \xf0\x9f\x98\x80" },
		{ "a\xff" "b", "a?b" },
		{ "cut \xe2\x82", "cut ??" },
		{ "overlong \xc0\xaf", "overlong ??" },
		{ "overlong \xe0\x80\xaf", "overlong ???" },
		{ "surrogate \xed\xa0\x80", "surrogate ???" },
		{ "beyond \xf4\x90\x80\x80", "beyond ????" },
		{ "tab\tnewline\n", "tab?newline?" },
		{ "", "" },
	};
	char text[64];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char *copy = utf8_dup(cases[i].from, 63);

		assert_int_equal(utf8_copy(text, sizeof(text), cases[i].from),
				 strlen(cases[i].to));
		assert_string_equal(text, cases[i].to);
		assert_string_equal(copy, cases[i].to);
		free(copy);
	}
	/* never half a character */
	assert_int_equal(utf8_copy(text, 4, "ab\xe2\x82\xac"), 2);
	assert_string_equal(text, "ab");
	assert_int_equal(utf8_copy(text, 6, "ab\xe2\x82\xac"), 5);
}

static void functions_are_shared_and_swept(void **state)
{
	size_t used = atomic_load(&pool_get(POOL_SYMBOLS)->used);
	struct function *one, *same, *other;
	struct parser *parser;
	struct names *names;
	char name[5000];

	(void)state;
	assert_int_equal(parser_new(&parser), 0);
	assert_int_equal(names_new(parser, &names), 0);
	assert_int_equal(names_get(names, "_ZN3foo3barEv", NULL, &one), 0);
	assert_int_equal(names_get(names, "_ZN3foo3barEv", NULL, &same), 0);
	assert_ptr_equal(one, same);
	assert_string_equal(one->name, "foo::bar");
	assert_string_equal(one->system_name, "_ZN3foo3barEv");
	function_unref(same);
	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	assert_int_equal(names_get(names, name, NULL, &other), 0);
	assert_int_equal(strlen(other->name), 4095);
	assert_ptr_equal(other->name, other->system_name);
	function_unref(other);
	for (int i = 0; i < 5000; i++) {
		snprintf(name, sizeof(name), "function_%d", i);
		assert_int_equal(names_get(names, name, NULL, &other), 0);
		function_unref(other);
	}
	/* what is held stays the same through growing and sweeping */
	names_sweep(names);
	assert_int_equal(names_get(names, "_ZN3foo3barEv", NULL, &same), 0);
	assert_ptr_equal(one, same);
	assert_int_equal(names_sweep(names), 0);
	function_unref(same);
	function_unref(one);
	assert_int_equal(names_sweep(names), 1);
	names_free(names);
	parser_free(parser);
	assert_int_equal(atomic_load(&pool_get(POOL_SYMBOLS)->used), used);
}

static void a_function_outlives_the_table(void **state)
{
	size_t used = atomic_load(&pool_get(POOL_SYMBOLS)->used);
	struct function *function;
	struct location *location;
	struct names *names;

	(void)state;
	assert_int_equal(names_new(NULL, &names), 0);
	assert_int_equal(names_get(names, "kept", NULL, &function), 0);
	location = location_new(NULL, 1, FRAME_NATIVE, false);
	assert_int_equal(location_set_function(location, function), 0);
	names_free(names);
	assert_string_equal(location->lines[0].function->name, "kept");
	location_unref(location_ref(location));
	location_unref(location);
	assert_int_equal(atomic_load(&pool_get(POOL_SYMBOLS)->used), used);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_demangled),
		cmocka_unit_test(names_of_d_are_demangled),
		cmocka_unit_test(other_names_are_left),
		cmocka_unit_test(names_of_d_that_expand_are_left),
		cmocka_unit_test(names_of_d_that_take_years_are_left),
		cmocka_unit_test(names_that_expand_are_left),
		cmocka_unit_test(random_names_do_no_harm),
		cmocka_unit_test(text_becomes_utf8),
		cmocka_unit_test(functions_are_shared_and_swept),
		cmocka_unit_test(a_function_outlives_the_table),
		/* the last: it leaves no credit */
		cmocka_unit_test(names_that_take_years_are_left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
