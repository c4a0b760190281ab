// SPDX-License-Identifier: Apache-2.0
/* All formats of a recording: something comes out, and a lack of memory is told and leaves nothing behind. */
#include "fixture.h"
#include "recorded.h"

#include <stdlib.h>

#include "view/convert.h"

static struct model *load(const struct convert_format *format)
{
	struct model *model;

	assert_int_equal(model_load(fixture_path("convert.otlp"), &format->model, &model, NULL, 0), 0);
	return model;
}

static int write_to(const struct convert_format *format, struct model *model, bool by_weight,
		    char **ret_text, size_t *ret_size)
{
	FILE *file = open_memstream(ret_text, ret_size);
	int err;

	assert_non_null(file);
	err = format->write(model, &(struct convert_options){
		.event = model_main_event(model), .by_weight = by_weight, .name = "a \"name\"",
	}, file);
	assert_int_equal(fclose(file), 0);
	return err;
}

static uint64_t sum_of_lines(const char *text)
{
	uint64_t sum = 0;

	for (const char *end; (end = strchr(text, '\n')); text = end + 1) {
		const char *number = memrchr(text, ' ', (size_t)(end - text));

		assert_non_null(number);
		sum += strtoull(number, NULL, 10);
	}
	return sum;
}

static void each_format_has_it_all(void **state)
{
	size_t size;
	char *text;

	(void)state;
	for (const struct convert_format *format = convert_formats; format->name; format++) {
		struct model *model = load(format);

		assert_int_equal(write_to(format, model, false, &text, &size), 0);
		assert_true(size > 1000);
		if (!strcmp(format->name, "folded"))
			assert_int_equal(sum_of_lines(text), 2 * 2020);
		assert_non_null(format->loss);
		free(text);
		model_free(model);
		/* as often as one likes, and by weight */
		model = load(format);
		assert_int_equal(write_to(format, model, true, &text, &size), 0);
		if (!strcmp(format->name, "folded"))
			assert_int_equal(sum_of_lines(text), 2 * 2020 * UINT64_C(10000000));
		free(text);
		model_free(model);
		synthetic_check_pools();
	}
}

static void formats_are_found(void **state)
{
	static const struct { const char *path, *name; } cases[] = {
		{ "a.pb.gz", "pprof" }, { "/x/y.pprof", "pprof" }, { "a.folded", "folded" },
		{ "a.txt", "folded" }, { "a.speedscope.json", "speedscope" },
		{ "a.firefox.json", "firefox" }, { "a.perf", "perf-script" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_non_null(convert_by_path(cases[i].path));
		assert_string_equal(convert_by_path(cases[i].path)->name, cases[i].name);
		assert_ptr_equal(convert_by_name(cases[i].name), convert_by_path(cases[i].path));
	}
	assert_null(convert_by_path("a.json"));
	assert_null(convert_by_path(".folded"));
	assert_null(convert_by_path(""));
	assert_null(convert_by_name("svg"));
}

/* As much memory as loading took, and a bit more each time, until it is enough. */
static void a_lack_of_memory_is_told(void **state)
{
	struct pool *pool = pool_get(POOL_REPORT);
	const size_t limit = pool->limit;
	unsigned int refused = 0;
	size_t size;
	char *text;

	(void)state;
	for (const struct convert_format *format = convert_formats; format->name; format++)
		for (size_t more = 0;; more = more * 3 / 2 + 100) {
			struct model *model = load(format);
			int err;

			pool->limit = pool->used + more;
			err = write_to(format, model, false, &text, &size);
			pool->limit = limit;
			free(text);
			model_free(model);
			synthetic_check_pools();
			if (!err)
				break;
			assert_int_equal(err, -E2BIG);
			refused++;
		}
	assert_true(refused > 20);
}

static int setup(void **state)
{
	(void)state;
	recorded_file(fixture_path("convert.otlp"), 65536);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_format_has_it_all), cmocka_unit_test(formats_are_found),
		cmocka_unit_test(a_lack_of_memory_is_told),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
