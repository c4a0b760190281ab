// SPDX-License-Identifier: Apache-2.0
/* Recordings with so many call paths that the errors of all would not fit into what a view may have. */
#include "fixture.h"
#include "synthetic.h"

#include <stdio.h>
#include <stdlib.h>

#include "export/otlp.h"
#include "view/callers.h"
#include "view/diff.h"
#include "view/recording.h"
#include "view/tree_errors.h"

enum {
	CALLERS = 400,
	CALLED = 500,
	PATHS = CALLERS * CALLED,
	MESSAGES = 10,
	STACKS = PATHS / MESSAGES,
	TEXTS = 3,		/* "", and the types of samples and periods */
	MEMORY = 52 << 20,	/* 200,000 nodes and what is of 65,536 of them, twice each; not of all of them */
	TREES = 72 << 20,	/* the same, and as many callers */
};

/* From 10 on, which is what a test takes; ten paths of each number. */
static int64_t samples_of(unsigned int path)
{
	return 10 + path / 10;
}

static char names[TEXTS + CALLERS + CALLED][16];
static char *texts[ARRAY_SIZE(names)];
static OtlpFunction functions[CALLERS + CALLED + 1], *function_table[ARRAY_SIZE(functions)];
static OtlpLine lines[ARRAY_SIZE(functions)], *line_tables[ARRAY_SIZE(functions)];
static OtlpLocation locations[ARRAY_SIZE(functions)], *location_table[ARRAY_SIZE(functions)];
static OtlpStack stacks[STACKS + 1], *stack_table[ARRAY_SIZE(stacks)];
static OtlpSample samples[STACKS], *sample_table[STACKS];
static int32_t frames[STACKS][2];
static int64_t values[STACKS];

static void make_dictionary(OtlpDictionary *dictionary, OtlpMapping **mapping)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(names); i++) {
		texts[i] = names[i];
		if (i >= TEXTS)
			snprintf(names[i], sizeof(names[i]), "function_%u", i);
	}
	snprintf(names[1], sizeof(names[1]), "samples");
	snprintf(names[2], sizeof(names[2]), "count");
	for (unsigned int i = 0; i < ARRAY_SIZE(functions); i++) {
		otlp_init(function, &functions[i]);
		otlp_init(line, &lines[i]);
		otlp_init(location, &locations[i]);
		functions[i].name_strindex = i ? TEXTS + (int32_t)i - 1 : 0;
		lines[i].function_index = (int32_t)i;
		line_tables[i] = &lines[i];
		locations[i].address = i;
		locations[i].lines = &line_tables[i];
		locations[i].n_lines = !!i;
		function_table[i] = &functions[i];
		location_table[i] = &locations[i];
	}
	otlp_init(profiles_dictionary, dictionary);
	dictionary->mapping_table = mapping;
	dictionary->n_mapping_table = 1;
	dictionary->string_table = texts;
	dictionary->n_string_table = ARRAY_SIZE(texts);
	dictionary->function_table = function_table;
	dictionary->n_function_table = ARRAY_SIZE(functions);
	dictionary->location_table = location_table;
	dictionary->n_location_table = ARRAY_SIZE(locations);
	dictionary->stack_table = stack_table;
	dictionary->n_stack_table = ARRAY_SIZE(stacks);
}

static void make_samples(unsigned int message)
{
	otlp_init(stack, &stacks[0]);
	stack_table[0] = &stacks[0];
	for (unsigned int i = 0; i < STACKS; i++) {
		const unsigned int path = message * STACKS + i;

		frames[i][0] = 1 + CALLERS + (int32_t)(path % CALLED);
		frames[i][1] = 1 + (int32_t)(path / CALLED);
		values[i] = samples_of(path);
		otlp_init(stack, &stacks[i + 1]);
		stacks[i + 1].location_indices = frames[i];
		stacks[i + 1].n_location_indices = 2;
		stack_table[i + 1] = &stacks[i + 1];
		otlp_init(sample, &samples[i]);
		samples[i].stack_index = (int32_t)i + 1;
		samples[i].values = &values[i];
		samples[i].n_values = 1;
		sample_table[i] = &samples[i];
	}
}

static void write_message(const OtlpProfilesData *data, FILE *file)
{
	const size_t size = protobuf_c_message_get_packed_size(&data->base);
	const uint8_t length[] = { (uint8_t)(size >> 24), (uint8_t)(size >> 16),
				   (uint8_t)(size >> 8), (uint8_t)size };
	uint8_t *bytes = malloc(size);

	assert_non_null(bytes);
	protobuf_c_message_pack(&data->base, bytes);
	assert_int_equal(fwrite(length, 1, sizeof(length), file), sizeof(length));
	assert_int_equal(fwrite(bytes, 1, size, file), size);
	free(bytes);
}

/* PATHS paths of two calls each, in messages of their own. Returns how many samples they have. */
static uint64_t write_paths(const char *path)
{
	OtlpMapping mapping, *mappings = &mapping;
	OtlpValueType type;
	OtlpProfile profile, *profiles = &profile;
	OtlpScopeProfiles scope, *scopes = &scope;
	OtlpResourceProfiles resource, *resources = &resource;
	OtlpDictionary dictionary;
	OtlpProfilesData data;
	FILE *file = fopen(path, "w");
	uint64_t sum = 0;

	assert_non_null(file);
	otlp_init(mapping, &mapping);
	otlp_init(value_type, &type);
	type.type_strindex = 1;
	type.unit_strindex = 2;
	make_dictionary(&dictionary, &mappings);
	otlp_init(profile, &profile);
	profile.sample_type = &type;
	profile.period = 1;	/* values are counts of samples */
	profile.samples = sample_table;
	profile.n_samples = STACKS;
	otlp_init(scope_profiles, &scope);
	scope.profiles = &profiles;
	scope.n_profiles = 1;
	otlp_init(resource_profiles, &resource);
	resource.scope_profiles = &scopes;
	resource.n_scope_profiles = 1;
	otlp_init(profiles_data, &data);
	data.resource_profiles = &resources;
	data.n_resource_profiles = 1;
	data.dictionary = &dictionary;
	for (unsigned int i = 0; i < MESSAGES; i++) {
		make_samples(i);
		profile.time_unix_nano = (i + 1) * UINT64_C(1000000000);
		profile.duration_nano = 1000000000;
		write_message(&data, file);
	}
	assert_int_equal(fclose(file), 0);
	for (unsigned int i = 0; i < PATHS; i++)
		sum += (uint64_t)samples_of(i);
	return sum;
}

/* The largest are tested, none of them is missing, and what all of them add up to is the recording. */
static void assert_largest(const struct diff *diff, struct model *model, uint64_t all)
{
	const size_t count = diff_path_count(diff);
	size_t most = 0;

	assert_int_equal(model_sum(model, diff->events[DIFF_AFTER]), 0);
	assert_int_equal(count, DIFF_PATHS_MAX);
	assert_true(diff->path_least > DIFF_EXPECTED_MIN);
	for (size_t i = 0; i < count; i++)
		assert_true(diff_path(diff, i)->total.parts[DIFF_AFTER] >= diff->path_least - 1e-6);
	for (uint32_t i = 1; i < tree_count(&model->tree); i++)
		most += (double)tree_sum(&model->tree, i)->total >= diff->path_least;
	/* but for an eighth of an octave, of which the first are */
	assert_true(most >= count && most < count + count / 4);
	assert_int_equal(tree_sum(&model->tree, TREE_ROOT)->samples, all);
	assert_float_equal(diff->sides[DIFF_AFTER].weight, (double)all, 1e-3);
}

/* As many nodes as may have errors do, and the others are counted. */
static void assert_tree(const struct tree_errors *errors)
{
	size_t known = 0, least = SIZE_MAX, most = 0;

	for (uint32_t i = 1; i < tree_count(errors->tree); i++) {
		const size_t have = tree_sum(errors->tree, i)->total;

		if (tree_error(errors, i, TREE_TOTAL) >= 0) {
			known++;
			least = min_of(least, have);
		} else {
			most = max_of(most, have);
		}
	}
	assert_int_equal(known, DIFF_PATHS_MAX);
	assert_int_equal(errors->beyond, tree_count(errors->tree) - 1 - known);
	/* but for an eighth of an octave */
	assert_true((double)least * 1.0906 >= (double)most);
}

static void assert_trees(struct model *model)
{
	struct tree_errors errors;
	struct callers callers;

	assert_int_equal(model_sum(model, 0), 0);
	assert_int_equal(tree_errors_make(model, 0, &model->tree, NULL, 0, &errors), 0);
	assert_tree(&errors);
	tree_errors_free(&errors);
	assert_int_equal(callers_make(&model->tree, 0, &callers), 0);
	assert_int_equal(tree_count(&callers.tree), 1 + CALLED + PATHS);
	assert_int_equal(tree_errors_make(model, 0, &callers.tree, callers.place, 0, &errors), 0);
	assert_tree(&errors);
	tree_errors_free(&errors);
	callers_free(&callers);
}

static void the_largest_paths_of_many_have_errors(void **state _unused_)
{
	const char *path = fixture_path("paths.otlp");
	const uint64_t count = write_paths(path);
	const size_t limit = pool_get(POOL_REPORT)->limit;
	uint32_t events[DIFF_SIDES];
	char error[512] = "";
	struct model *model;
	struct diff diff;

	pool_get(POOL_REPORT)->limit = MEMORY;
	if (model_load(path, &(struct model_options){ .with_times = true }, &model, error, sizeof(error)))
		fail_msg("%s", error);
	assert_int_equal(tree_count(&model->tree), 1 + CALLERS + PATHS);
	assert_int_equal(diff_make_one(model, 0, BY_FUNCTION, true, &diff), 0);
	assert_largest(&diff, model, count);
	diff_free(&diff);
	pool_get(POOL_REPORT)->limit = TREES;
	assert_trees(model);
	pool_get(POOL_REPORT)->limit = MEMORY;
	model_free(model);

	if (model_load_pair(path, path, &(struct model_options){ .with_times = true }, &model, error,
			    sizeof(error)))
		fail_msg("%s", error);
	assert_true(diff_events(model, events, error, sizeof(error)));
	assert_int_equal(diff_make(model, events, BY_FUNCTION, &diff), 0);
	assert_largest(&diff, model, count);
	assert_int_equal(diff.path.tested, diff_path_count(&diff));
	assert_int_equal(diff.path.few, 0);
	assert_int_equal(diff.path.tested + diff.path.beyond, CALLERS + PATHS);
	diff_free(&diff);
	model_free(model);
	pool_get(POOL_REPORT)->limit = limit;
	synthetic_check_pools();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_largest_paths_of_many_have_errors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
