// SPDX-License-Identifier: Apache-2.0
/* Profiles of others: what is in them comes out again, and no damage does more than be refused. */
#include "fixture.h"
#include "recorded.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "export/otlp.h"
#include "pprof.pb-c.h"
#include "view/convert.h"
#include "view/diff.h"
#include "view/import.h"
#include "view/pprof_names.h"
#include "view/report_load.h"

/* What `stacktap convert' makes of the recorded fixture. */
static void written(const char *name, char **ret_text, size_t *ret_size)
{
	const struct convert_format *format = convert_by_name(name);
	struct model *model;
	FILE *file = open_memstream(ret_text, ret_size);

	assert_int_equal(model_load(fixture_path("convert.otlp"), &format->model, &model, NULL, 0), 0);
	assert_int_equal(format->write(model, &(struct convert_options){
		.event = model_main_event(model), .name = "x",
	}, file), 0);
	fclose(file);
	model_free(model);
}

/* 0, with the message in a file that a report is made of, or what import said. */
static int import(const char *name, const char *data, size_t size, struct report **ret_report)
{
	struct import import;
	FILE *file;
	int err;

	assert_int_equal(import_init(&import), 0);
	if (!strcmp(name, "pprof")) {
		err = import_pprof(&import, (const uint8_t *)data, size);
	} else {
		file = fmemopen((void *)(uintptr_t)data, size, "r");
		err = import_perf_script(&import, file);
		fclose(file);
	}
	if (!err)
		err = import_finish(&import);
	if (!err && ret_report) {
		file = fopen(fixture_path("imported.otlp"), "w");
		fwrite(import.out.data, 1, import.out.size, file);
		fclose(file);
		assert_int_equal(report_load(fixture_path("imported.otlp"), NULL, false, ret_report, NULL, 0), 0);
	}
	import_done(&import);
	return err;
}

static void round_trip(const char *name)
{
	struct report *before, *after;
	char *text;
	size_t size;

	written(name, &text, &size);
	assert_int_equal(report_load(fixture_path("convert.otlp"), NULL, false, &before, NULL, 0), 0);
	assert_int_equal(import(name, text, size, &after), 0);
	assert_int_equal(after->event_count, 1);
	assert_string_equal(after->events[0].source, before->events[0].source);
	/* perf script has one line for samples of one thread and moment, with their weight */
	if (!strcmp(name, "pprof"))
		assert_int_equal(after->events[0].samples, before->events[0].samples);
	assert_int_equal(after->events[0].weight, before->events[0].weight);
	assert_int_equal(after->events[0].process_count, before->events[0].process_count);
	for (size_t i = 0; i < before->events[0].process_count; i++) {
		const struct report_process *old = &before->events[0].processes[i];
		const struct report_process *new = &after->events[0].processes[i];

		assert_int_equal(new->weight, old->weight);
		assert_int_equal(new->functions[0].self, old->functions[0].self);
	}
	report_free(before);
	report_free(after);
	free(text);
	synthetic_check_pools();
}

static void pprof_comes_back(void **state _unused_)
{
	round_trip("pprof");
}

/* Texts of a profile by their place. */
static char *const strings[] = {
	(char *)(uintptr_t)"", (char *)(uintptr_t)"alloc_space", (char *)(uintptr_t)"bytes", (char *)(uintptr_t)"space",
	(char *)(uintptr_t)"/opt/shop", (char *)(uintptr_t)"abc123", (char *)(uintptr_t)"cart::add(int)",
	(char *)(uintptr_t)"_ZN4cart3addEi", (char *)(uintptr_t)"/src/cart.cc", (char *)(uintptr_t)"size",
	(char *)(uintptr_t)"request", (char *)(uintptr_t)"GET /", (char *)(uintptr_t)"^skip$", (char *)(uintptr_t)"^keep$",
	(char *)(uintptr_t)"https://example.com/", (char *)(uintptr_t)"it was slow", (char *)(uintptr_t)"twice",
	(char *)(uintptr_t)"\"quoted\" \xc3\xa9",
};

/* Everything that a profile can have, once. */
static uint8_t *make_whole(size_t *ret_size)
{
	Pprof__ValueType type = PPROF__VALUE_TYPE__INIT, period_type = type, *types = &type;
	Pprof__Mapping mapping = PPROF__MAPPING__INIT, *mappings = &mapping;
	Pprof__Function function = PPROF__FUNCTION__INIT, *functions = &function;
	Pprof__Line line = PPROF__LINE__INIT, *lines = &line;
	Pprof__Location location = PPROF__LOCATION__INIT, *locations = &location;
	Pprof__Label sized = PPROF__LABEL__INIT, named = sized, *labels[] = { &sized, &named };
	Pprof__Sample sample = PPROF__SAMPLE__INIT, *samples = &sample;
	Pprof__Profile profile = PPROF__PROFILE__INIT;
	int64_t comments[] = { 15, 17, 16, 15 }, value = 4096;
	uint64_t id = 7;
	uint8_t *bytes;

	type.type = 1;
	type.unit = period_type.unit = 2;
	period_type.type = 3;
	mapping.id = function.id = location.id = location.mapping_id = line.function_id = id;
	mapping.memory_start = 0x1000;
	mapping.memory_limit = 0x9000;
	mapping.file_offset = 0x2000;
	mapping.filename = 4;
	mapping.build_id = 5;
	mapping.has_filenames = true;
	function.name = 6;
	function.system_name = 7;
	function.filename = 8;
	function.start_line = 40;
	line.line = 42;
	line.column = 9;
	location.address = 0x1234;
	location.is_folded = true;
	location.line = &lines;
	location.n_line = 1;
	sized.key = 9;
	sized.num = 512;
	sized.num_unit = 2;
	named.key = 10;
	named.str = 11;
	sample.location_id = &id;
	sample.n_location_id = 1;
	sample.value = &value;
	sample.n_value = 1;
	sample.label = labels;
	sample.n_label = ARRAY_SIZE(labels);
	profile.sample_type = &types;
	profile.sample = &samples;
	profile.mapping = &mappings;
	profile.function = &functions;
	profile.location = &locations;
	profile.n_sample_type = profile.n_sample = profile.n_mapping = profile.n_function = profile.n_location = 1;
	profile.string_table = (char **)(uintptr_t)strings;
	profile.n_string_table = ARRAY_SIZE(strings);
	profile.drop_frames = 12;
	profile.keep_frames = 13;
	profile.doc_url = 14;
	profile.time_nanos = 1790000000000000000;
	profile.duration_nanos = 10000000000;
	profile.period_type = &period_type;
	profile.period = 524288;
	profile.comment = comments;
	profile.n_comment = ARRAY_SIZE(comments);
	*ret_size = pprof__profile__get_packed_size(&profile);
	bytes = malloc(*ret_size);
	assert_non_null(bytes);
	pprof__profile__pack(&profile, bytes);
	return bytes;
}

static void assert_text(const Pprof__Profile *profile, int64_t place, const char *text)
{
	assert_in_range(place, 0, profile->n_string_table - 1);
	assert_string_equal(profile->string_table[place], text);
}

static void assert_whole(const Pprof__Profile *profile)
{
	static const char *const comments[] = { "it was slow", "\"quoted\" \xc3\xa9", "twice" };
	const Pprof__Location *location = profile->location[0];
	const Pprof__Mapping *mapping = profile->mapping[0];
	const Pprof__Function *function = profile->function[0];
	const Pprof__Sample *sample = profile->sample[0];

	/* a comment that is there twice is one */
	assert_int_equal(profile->n_comment, ARRAY_SIZE(comments));
	for (size_t i = 0; i < ARRAY_SIZE(comments); i++)
		assert_text(profile, profile->comment[i], comments[i]);
	assert_text(profile, profile->drop_frames, "^skip$");
	assert_text(profile, profile->keep_frames, "^keep$");
	assert_text(profile, profile->doc_url, "https://example.com/");
	assert_int_equal(profile->time_nanos, 1790000000000000000);
	assert_int_equal(profile->duration_nanos, 10000000000);
	assert_text(profile, profile->period_type->type, "space");
	assert_text(profile, profile->period_type->unit, "bytes");
	assert_int_equal(profile->period, 524288);
	assert_int_equal(profile->n_sample_type, 2);
	assert_text(profile, profile->sample_type[1]->type, "alloc_space");
	assert_text(profile, profile->sample_type[1]->unit, "bytes");
	assert_int_equal(profile->n_sample, 1);
	assert_int_equal(sample->value[1], 4096);
	/* and the process, which is the first mapping's program */
	assert_int_equal(sample->n_label, 3);
	assert_text(profile, sample->label[1]->key, "size");
	assert_int_equal(sample->label[1]->num, 512);
	assert_text(profile, sample->label[1]->num_unit, "bytes");
	assert_text(profile, sample->label[2]->key, "request");
	assert_text(profile, sample->label[2]->str, "GET /");
	assert_int_equal(mapping->memory_start, 0x1000);
	assert_int_equal(mapping->memory_limit, 0x9000);
	assert_int_equal(mapping->file_offset, 0x2000);
	assert_text(profile, mapping->filename, "/opt/shop");
	assert_text(profile, mapping->build_id, "abc123");
	/* its frame has these, whatever was said of it */
	assert_true(mapping->has_functions && mapping->has_filenames && mapping->has_line_numbers);
	assert_false(mapping->has_inline_frames);
	assert_int_equal(location->address, 0x1234);
	assert_true(location->is_folded);
	assert_int_equal(location->line[0]->line, 42);
	assert_int_equal(location->line[0]->column, 9);
	assert_text(profile, function->name, "cart::add(int)");
	assert_text(profile, function->system_name, "_ZN4cart3addEi");
	assert_text(profile, function->filename, "/src/cart.cc");
	assert_int_equal(function->start_line, 40);
}

/* It is freed. */
static Pprof__Profile *pprof_of(struct model *model)
{
	const struct convert_options options = { .name = "x", .event = model_main_event(model) };
	uint8_t plain[65536];
	Pprof__Profile *profile;
	gzFile packed;
	size_t count;
	char *text;
	FILE *file = open_memstream(&text, &count);

	assert_int_equal(convert_by_name("pprof")->write(model, &options, file), 0);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(model->remarks.losses, 0);
	model_free(model);
	recorded_bytes(fixture_path("back.pb.gz"), text, count);
	free(text);
	packed = gzopen(fixture_path("back.pb.gz"), "r");
	profile = pprof__profile__unpack(NULL, (size_t)gzread(packed, plain, sizeof(plain)), plain);
	gzclose(packed);
	assert_non_null(profile);
	return profile;
}

/* The pprof of the OTLP of a pprof. */
static Pprof__Profile *there_and_back(const uint8_t *bytes, size_t size)
{
	struct report *report;
	struct model *model;

	assert_int_equal(import("pprof", (const char *)bytes, size, &report), 0);
	report_free(report);
	assert_int_equal(model_load(fixture_path("imported.otlp"), &convert_by_name("pprof")->model, &model, NULL, 0), 0);
	return pprof_of(model);
}

static Pprof__Profile *packed_and_back(const Pprof__Profile *profile)
{
	size_t size = pprof__profile__get_packed_size(profile);
	uint8_t *bytes = malloc(size);
	Pprof__Profile *back;

	assert_non_null(bytes);
	pprof__profile__pack(profile, bytes);
	back = there_and_back(bytes, size);
	free(bytes);
	return back;
}

static void all_that_pprof_has_comes_back(void **state _unused_)
{
	size_t size;
	uint8_t *bytes = make_whole(&size);
	Pprof__Profile *profile = there_and_back(bytes, size);

	assert_whole(profile);
	pprof__profile__free_unpacked(profile, NULL);
	free(bytes);
	synthetic_check_pools();
}

/* string_table "", samples, count, cpu, nanoseconds; sample_type 1/2; a Sample of 1000 of location 7 */
#define COUNTS "\x32\0\x32\7samples\x32\5count\x32\3cpu\x32\x0bnanoseconds" \
	"\x0a\4\x08\1\x10\2\x12\7\x0a\1\7\x12\2\xe8\7"
#define LOCATION "\x22\2\x08\7"

/* By which readers know the program. */
static void the_first_mapping_comes_back_first(void **state _unused_)
{
	/* files "cpu", "count" (texts 3, 2), of which the first Sample is in the second; another Sample of the first */
	static const char bytes[] = COUNTS "\x1a\4\x08\3\x28\3\x1a\4\x08\4\x28\2"
		"\x22\4\x08\7\x10\4\x22\4\x08\x08\x10\3\x12\7\x0a\1\x08\x12\2\xe8\7";
	Pprof__Profile *profile = there_and_back((const uint8_t *)bytes, sizeof(bytes) - 1);

	assert_int_equal(profile->n_mapping, 2);
	assert_text(profile, profile->mapping[0]->filename, "cpu");
	assert_text(profile, profile->mapping[1]->filename, "count");
	assert_int_equal(profile->location[0]->mapping_id, profile->mapping[1]->id);
	assert_int_equal(profile->location[1]->mapping_id, profile->mapping[0]->id);
	pprof__profile__free_unpacked(profile, NULL);
	synthetic_check_pools();
}

/* Go has no file's name where there is no /proc/self/maps. */
static void a_mapping_without_a_file_comes_back(void **state _unused_)
{
	/* at 0x1000, with build-id "count" (text 2); of location 7 */
	static const char bytes[] = COUNTS "\x1a\7\x08\3\x10\x80\x20\x30\2\x22\4\x08\7\x10\3";
	static const char nothing[] = COUNTS LOCATION;
	Pprof__Profile *profile = there_and_back((const uint8_t *)bytes, sizeof(bytes) - 1);

	assert_int_equal(profile->n_mapping, 1);
	assert_int_equal(profile->location[0]->mapping_id, profile->mapping[0]->id);
	assert_int_equal(profile->mapping[0]->memory_start, 0x1000);
	assert_text(profile, profile->mapping[0]->build_id, "count");
	/* nothing has a name in it, and it is not said that one was looked for */
	assert_false(profile->mapping[0]->has_functions || profile->mapping[0]->has_filenames ||
		     profile->mapping[0]->has_line_numbers || profile->mapping[0]->has_inline_frames);
	pprof__profile__free_unpacked(profile, NULL);
	profile = there_and_back((const uint8_t *)nothing, sizeof(nothing) - 1);
	assert_int_equal(profile->n_mapping, 0);
	assert_int_equal(profile->location[0]->mapping_id, 0);
	pprof__profile__free_unpacked(profile, NULL);
	synthetic_check_pools();
}

/* Of the OTLP of make_whole(): its only Profile, which is copied to be there twice, Sample and mapping. */
struct whole {
	OtlpProfilesData *data;
	OtlpScopeProfiles *scope;
	OtlpProfile *profile, second, *both[2];
	OtlpSample *sample;
	OtlpMapping *mapping;
};

static void replace(char **text, const char *other)
{
	free(*text);
	*text = strdup(other);
	assert_non_null(*text);
}

static void rename_key(const struct whole *whole, const char *key, const char *other)
{
	OtlpDictionary *dictionary = whole->data->dictionary;

	for (size_t i = 0; i < dictionary->n_string_table; i++)
		if (!strcmp(dictionary->string_table[i], key))
			replace(&dictionary->string_table[i], other);
}

static void with_nothing_more(struct whole *whole _unused_)
{
}

static void with_a_negative_value(struct whole *whole)
{
	whole->sample->values[0] = -1;
}

static void with_a_link(struct whole *whole)
{
	whole->sample->link_index = 1;
}

static void with_a_bool(struct whole *whole)
{
	whole->sample->attribute_indices[0] = whole->mapping->attribute_indices[1];
}

static void with_an_own_attribute(struct whole *whole)
{
	rename_key(whole, "request", "stacktap.request");
}

static void with_an_attribute_of_the_profile(struct whole *whole)
{
	whole->profile->attribute_indices[0] = whole->sample->attribute_indices[0];
}

static void with_a_host(struct whole *whole)
{
	OtlpKeyValue *pair = whole->data->resource_profiles[0]->resource->attributes[0];

	assert_string_equal(pair->key, "process.executable.name");
	replace(&pair->key, "host.name");
}

static void with_another_build_id(struct whole *whole)
{
	rename_key(whole, "process.executable.build_id.gnu", "process.executable.build_id.go");
}

static void with_two_periods(struct whole *whole)
{
	whole->second = *whole->profile;
	whole->second.period++;
	whole->both[0] = whole->profile;
	whole->both[1] = &whole->second;
	whole->scope->profiles = whole->both;
	whole->scope->n_profiles = 2;
}

static void load_changed(struct import *import, void (*change)(struct whole *whole), struct model **ret_model)
{
	struct whole whole = { 0 };
	OtlpProfile **profiles;
	uint8_t bytes[65536];

	whole.data = (OtlpProfilesData *)protobuf_c_message_unpack(OTLP_DATA_DESCRIPTOR, NULL,
								   import->out.size, import->out.data);
	assert_non_null(whole.data);
	whole.scope = whole.data->resource_profiles[0]->scope_profiles[0];
	profiles = whole.scope->profiles;
	whole.profile = profiles[0];
	whole.sample = whole.profile->samples[0];
	whole.mapping = whole.data->dictionary->mapping_table[1];
	change(&whole);
	assert_in_range(protobuf_c_message_get_packed_size(&whole.data->base), 1, sizeof(bytes));
	recorded_bytes(fixture_path("changed.otlp"), bytes, protobuf_c_message_pack(&whole.data->base, bytes));
	whole.scope->profiles = profiles;
	whole.scope->n_profiles = 1;
	protobuf_c_message_free_unpacked(&whole.data->base, NULL);
	assert_int_equal(model_load(fixture_path("changed.otlp"), &convert_by_name("pprof")->model, ret_model, NULL, 0), 0);
}

static void what_pprof_has_no_place_for_is_known(void **state _unused_)
{
	static const struct {
		void (*change)(struct whole *whole);
		uint32_t losses;
	} cases[] = {
		{ with_nothing_more, 0 },
		{ with_a_negative_value, 1 << VIEW_LOSS_NEGATIVE },
		{ with_a_link, 1 << VIEW_LOSS_LINKS },
		{ with_a_bool, 1 << VIEW_LOSS_VALUES },
		{ with_an_own_attribute, 1 << VIEW_LOSS_OWN },
		{ with_an_attribute_of_the_profile, 1 << VIEW_LOSS_PROFILE },
		{ with_a_host, 1 << VIEW_LOSS_RESOURCE },
		{ with_another_build_id, 1 << VIEW_LOSS_BUILD_IDS },
		{ with_two_periods, 1 << VIEW_LOSS_PERIODS },
	};
	size_t size;
	uint8_t *bytes = make_whole(&size);
	struct import import;
	struct model *model;

	assert_int_equal(import_init(&import), 0);
	assert_int_equal(import_pprof(&import, bytes, size), 0);
	assert_int_equal(import_finish(&import), 0);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		load_changed(&import, cases[i].change, &model);
		if (model->remarks.losses != cases[i].losses)
			fail_msg("case %zu: %#x is not %#x", i, model->remarks.losses, cases[i].losses);
		model_free(model);
	}
	import_done(&import);
	free(bytes);
	synthetic_check_pools();
}

static void with_an_empty_text(struct whole *whole)
{
	const OtlpDictionary *dictionary = whole->data->dictionary;

	for (size_t i = 0; i < dictionary->n_attribute_table; i++) {
		OtlpAnyValue *value = dictionary->attribute_table[i]->value;

		if (value && value->value_case == OTLP_VALUE_STRING && !strcmp(value->string_value, "GET /"))
			replace(&value->string_value, "");
	}
}

/* pprof would take it for the number 0. */
static void an_empty_text_is_no_label(void **state _unused_)
{
	size_t size, count;
	uint8_t *bytes = make_whole(&size);
	struct import import;
	struct model *model;

	assert_int_equal(import_init(&import), 0);
	assert_int_equal(import_pprof(&import, bytes, size), 0);
	assert_int_equal(import_finish(&import), 0);
	load_changed(&import, with_nothing_more, &model);
	labels_of(&model->labels, model_group(model, 0)->labels, &count);
	assert_int_equal(count, 2);
	model_free(model);
	load_changed(&import, with_an_empty_text, &model);
	labels_of(&model->labels, model_group(model, 0)->labels, &count);
	assert_int_equal(count, 1);
	model_free(model);
	import_done(&import);
	free(bytes);
	synthetic_check_pools();
}

static void assert_type(const Pprof__Profile *profile, const Pprof__ValueType *type, const char *name, const char *unit)
{
	assert_non_null(type);
	assert_text(profile, type->type, name);
	assert_text(profile, type->unit, unit);
}

/* Their number is what they are; nothing is said of what they stand for. */
static void counts_alone_come_back(void **state _unused_)
{
	static const char bytes[] = COUNTS LOCATION;
	Pprof__Profile *first = there_and_back((const uint8_t *)bytes, sizeof(bytes) - 1);
	Pprof__Profile *again = packed_and_back(first), *profiles[] = { first, again };
	struct report *report;

	for (size_t i = 0; i < ARRAY_SIZE(profiles); i++) {
		assert_int_equal(profiles[i]->n_sample_type, 1);
		assert_type(profiles[i], profiles[i]->sample_type[0], "samples", "count");
		assert_int_equal(profiles[i]->n_sample, 1);
		assert_int_equal(profiles[i]->sample[0]->n_value, 1);
		assert_int_equal(profiles[i]->sample[0]->value[0], 1000);
		assert_null(profiles[i]->period_type);
		assert_int_equal(profiles[i]->period, 0);
		pprof__profile__free_unpacked(profiles[i], NULL);
	}
	/* nor is there a period of nothing: 10 */
	assert_int_equal(import("pprof", COUNTS LOCATION "\x60\x0a", sizeof(COUNTS LOCATION) - 1 + 2, &report), 0);
	assert_string_equal(report->events[0].source, "samples");
	assert_int_equal(report->events[0].samples, 1000);
	assert_int_equal(report->events[0].weight, 1000);
	report_free(report);
	synthetic_check_pools();
}

static void with_a_time(struct whole *whole)
{
	whole->sample->timestamps_unix_nano = malloc(sizeof(uint64_t));
	assert_non_null(whole->sample->timestamps_unix_nano);
	*whole->sample->timestamps_unix_nano = whole->profile->time_unix_nano;
	whole->sample->n_timestamps_unix_nano = 1;
}

/* Others may write one time for many; the only type of values has their number. */
static void counts_of_one_time_are_as_many(void **state _unused_)
{
	static const char bytes[] = COUNTS "\x1a\4\x08\3\x28\3\x22\4\x08\7\x10\3";
	struct import import;
	struct model *model;
	Pprof__Profile *profile;

	assert_int_equal(import_init(&import), 0);
	assert_int_equal(import_pprof(&import, (const uint8_t *)bytes, sizeof(bytes) - 1), 0);
	assert_int_equal(import_finish(&import), 0);
	load_changed(&import, with_a_time, &model);
	assert_int_equal(model_event(model, 0)->samples, 1);
	profile = pprof_of(model);
	assert_int_equal(profile->n_sample_type, 1);
	assert_int_equal(profile->sample[0]->value[0], 1000);
	pprof__profile__free_unpacked(profile, NULL);
	import_done(&import);
	synthetic_check_pools();
}

/* As Parca gives them out: period_type cpu/nanoseconds, period 10000000. */
static void counts_of_a_period_come_back(void **state _unused_)
{
	static const char bytes[] = COUNTS LOCATION "\x5a\4\x08\3\x10\4\x60\x80\xad\xe2\x04";
	Pprof__Profile *first = there_and_back((const uint8_t *)bytes, sizeof(bytes) - 1);
	Pprof__Profile *again = packed_and_back(first), *profiles[] = { first, again };

	for (size_t i = 0; i < ARRAY_SIZE(profiles); i++) {
		assert_int_equal(profiles[i]->n_sample_type, 2);
		assert_type(profiles[i], profiles[i]->sample_type[0], "samples", "count");
		assert_type(profiles[i], profiles[i]->sample_type[1], "cpu", "nanoseconds");
		assert_int_equal(profiles[i]->n_sample, 1);
		assert_int_equal(profiles[i]->sample[0]->value[0], 1000);
		assert_int_equal(profiles[i]->sample[0]->value[1], 10000000000);
		assert_type(profiles[i], profiles[i]->period_type, "cpu", "nanoseconds");
		assert_int_equal(profiles[i]->period, 10000000);
		pprof__profile__free_unpacked(profiles[i], NULL);
	}
	synthetic_check_pools();
}

/* string_table "", a, b; sample_type a, b; a Sample of 5 and 1, one of 5 and 0 */
#define TWO_TYPES "\x32\0\x32\1a\x32\1b\x0a\2\x08\1\x0a\2\x08\2" \
	"\x12\7\x0a\1\7\x12\2\5\1\x12\7\x0a\1\x08\x12\2\5\0" LOCATION "\x22\2\x08\x08"

/* What is not named is the last, as pprof has it; which has most samples does not matter. */
static void of_several_types_the_default_is_shown(void **state _unused_)
{
	static const struct {
		const char *bytes, *shown;
		size_t size;
	} cases[] = {
		{ TWO_TYPES, "b", sizeof(TWO_TYPES) - 1 },
		{ TWO_TYPES "\x70\1", "a", sizeof(TWO_TYPES) + 1 },
		{ TWO_TYPES "\x70\2", "b", sizeof(TWO_TYPES) + 1 },
	};
	struct report *report;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		Pprof__Profile *profile = there_and_back((const uint8_t *)cases[i].bytes, cases[i].size);
		const struct model_options exact = { .is_exact = true };
		struct model *pair;
		uint32_t events[DIFF_SIDES];
		char error[256];

		assert_int_equal(import("pprof", cases[i].bytes, cases[i].size, &report), 0);
		assert_string_equal(report->events[0].source, cases[i].shown);
		report_free(report);
		assert_text(profile, profile->sample_type[1]->type, cases[i].shown);
		assert_text(profile, profile->default_sample_type, cases[i].shown);
		pprof__profile__free_unpacked(profile, NULL);
		assert_int_equal(model_load_pair(fixture_path("imported.otlp"), fixture_path("imported.otlp"), &exact, &pair,
						 error, sizeof(error)), 0);
		assert_true(diff_events(pair, events, error, sizeof(error)));
		for (size_t side = 0; side < DIFF_SIDES; side++)
			assert_string_equal(model_event(pair, events[side])->source, cases[i].shown);
		model_free(pair);
	}
	assert_int_equal(import("pprof", TWO_TYPES "\x70\3", sizeof(TWO_TYPES) + 1, &report), -EBADMSG);
	synthetic_check_pools();
}

/* samples and cpu, of which the second is ten times the first: one Profile says both, and which was named. */
static void a_default_of_samples_comes_back(void **state _unused_)
{
	static const char bytes[] = "\x32\0\x32\7samples\x32\5count\x32\3cpu\x32\x0bnanoseconds"
		"\x0a\4\x08\1\x10\2\x0a\4\x08\3\x10\4\x12\7\x0a\1\7\x12\2\1\x0a" LOCATION "\x5a\4\x08\3\x10\4\x60\x0a\x70\1";
	Pprof__Profile *profile = there_and_back((const uint8_t *)bytes, sizeof(bytes) - 1);

	assert_type(profile, profile->sample_type[1], "cpu", "nanoseconds");
	assert_text(profile, profile->default_sample_type, "samples");
	pprof__profile__free_unpacked(profile, NULL);
	synthetic_check_pools();
}

struct told {
	const char *key, *text, *unit;	/* without a text it is the number */
	int64_t number;
};

static int64_t place_of(char **texts, size_t *count, const char *text)
{
	texts[*count] = (char *)(uintptr_t)(text ?: "");
	return text ? (int64_t)(*count)++ : 0;
}

static Pprof__Profile *labels_and_back(const struct told *told, size_t count)
{
	Pprof__ValueType type = PPROF__VALUE_TYPE__INIT, *types = &type;
	Pprof__Location location = PPROF__LOCATION__INIT, *locations = &location;
	Pprof__Sample sample = PPROF__SAMPLE__INIT, *samples = &sample;
	Pprof__Profile profile = PPROF__PROFILE__INIT;
	Pprof__Label labels[16], *pointers[16];
	char *texts[64] = { (char *)(uintptr_t)"" };
	uint64_t id = 7;
	int64_t value = 1;

	profile.n_string_table = 1;
	for (size_t i = 0; i < count; i++) {
		pprof__label__init(&labels[i]);
		labels[i].key = place_of(texts, &profile.n_string_table, told[i].key);
		labels[i].str = place_of(texts, &profile.n_string_table, told[i].text);
		labels[i].num = told[i].number;
		labels[i].num_unit = place_of(texts, &profile.n_string_table, told[i].unit);
		pointers[i] = &labels[i];
	}
	type.type = place_of(texts, &profile.n_string_table, "space");
	location.id = id;
	sample.location_id = &id;
	sample.value = &value;
	sample.label = pointers;
	sample.n_label = count;
	profile.string_table = texts;
	profile.sample_type = &types;
	profile.sample = &samples;
	profile.location = &locations;
	sample.n_location_id = sample.n_value = profile.n_sample_type = profile.n_sample = profile.n_location = 1;
	return packed_and_back(&profile);
}

static bool has_label(const Pprof__Profile *profile, const struct told *told)
{
	const Pprof__Sample *sample = profile->sample[0];

	for (size_t i = 0; i < sample->n_label; i++) {
		const Pprof__Label *label = sample->label[i];

		if (!strcmp(profile->string_table[label->key], told->key) && label->num == told->number &&
		    !strcmp(profile->string_table[label->str], told->text ?: "") &&
		    !strcmp(profile->string_table[label->num_unit], told->unit ?: ""))
			return true;
	}
	return false;
}

/* Others may mean something else by the keys that stacktap has. */
static void labels_come_back(void **state _unused_)
{
	static const struct told own[] = {
		{ "process", .text = "shop" }, { "pid", .number = 12 }, { "thread", .text = "worker" }, { "tid", .number = 13 },
		{ "container", .text = "abc" }, { "service", .text = "cart" }, { "cgroup", .text = "/a" },
	}, others[] = {
		{ "process", .number = 3 }, { "pid", .text = "four" }, { "thread", .number = 5, .unit = "count" },
		{ "tid", .text = "main" }, { "container", .number = 6 }, { "service", .number = 7, .unit = "bytes" },
		{ "cgroup", .number = -8 }, { "tid", .number = INT64_C(1) << 40 },
	}, twice[] = {
		{ "process", .text = "a" }, { "process", .text = "b" }, { "pid", .number = 1 }, { "pid", .number = 2 },
		{ "tid", .number = 3 }, { "tid", .number = 4 }, { "thread", .text = "c" }, { "thread", .text = "d" },
		{ "pid", .number = 0 }, { "tid", .number = 0 }, { "pid", .number = -1 }, { "tid", .number = 9, .unit = "x" },
	};
	static const struct { const struct told *told; size_t count; } cases[] = {
		{ own, ARRAY_SIZE(own) }, { others, ARRAY_SIZE(others) }, { twice, ARRAY_SIZE(twice) },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		Pprof__Profile *profile = labels_and_back(cases[i].told, cases[i].count);

		assert_int_equal(profile->sample[0]->n_label, cases[i].count);
		for (size_t k = 0; k < cases[i].count; k++)
			if (!has_label(profile, &cases[i].told[k]))
				fail_msg("label %zu of %zu, %s, is not there", k, i, cases[i].told[k].key);
		pprof__profile__free_unpacked(profile, NULL);
	}
	synthetic_check_pools();
}

static void perf_script_comes_back(void **state _unused_)
{
	round_trip("perf-script");
}

static void perf_prints_it_so(void **state _unused_)
{
	static const char text[] =
		"# a comment\n"
		"web worker 1 4711/4712 [003] 12345.000678901:   250000 cpu-clock:pppH: \n"
		"\tffffffff81000010 native_write+0x10 ([kernel.kallsyms])\n"
		"\t           401136 inner(int, char (*)[2])+0x6 (inlined)\n"
		"\t           401136 outer+0x6 (/opt/a b (1)/prog)\n"
		"\t           401200 [unknown] (/opt/a b (1)/prog)\n\n"
		":9 9 12345.5: cycles: 401300 lone+0x1 (/bin/x)\n"
		/* of a thread that has ended */
		"             :-1    -1/-1    [000] 12345.6: 250000 instructions: 401300 last+0x1 (/bin/x)\n"
		"nonsense\n\n";
	struct report *report;
	const struct report_process *process;

	assert_int_equal(import("perf-script", text, strlen(text), &report), 0);
	assert_int_equal(report->event_count, 3);
	for (size_t i = 0; i < report->event_count; i++) {
		process = &report->events[i].processes[0];
		assert_int_equal(report->events[i].samples, 1);
		if (!strcmp(report->events[i].source, "instructions")) {
			assert_string_equal(process->name, ":-1");
			assert_int_equal(process->pid, 0);
			assert_string_equal(process->functions[0].name, "last");
			continue;
		}
		if (process->pid == 9) {
			assert_string_equal(process->name, ":9");
			assert_string_equal(report->events[i].source, "cycles");
			assert_string_equal(process->functions[0].name, "lone");
			continue;
		}
		assert_int_equal(process->pid, 4711);
		assert_string_equal(process->name, "web worker 1");
		assert_string_equal(report->events[i].unit, "nanoseconds");
		assert_int_equal(report->events[i].weight, 250000);
		assert_int_equal(process->function_count, 4);
		assert_string_equal(process->functions[0].name, "native_write");
		assert_true(process->functions[0].is_kernel);
		assert_int_equal(report->start, UINT64_C(12345000678901));
	}
	report_free(report);
}

static void damage_is_refused(void **state _unused_)
{
	static const char *const names[] = { "pprof", "perf-script" };
	static const char bomb[] = "\x1f\x8b\x08\0\0\0\0\0\0\3";
	unsigned int refused = 0;

	srandom(19);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		char *text, *copy;
		size_t size;

		written(names[i], &text, &size);
		copy = malloc(size);
		for (unsigned int round = 0; round < 30; round++) {
			size_t kept = round % 3 ? size : (size_t)random() % size;

			memcpy(copy, text, size);
			for (long k = random() % 8; k >= 0; k--)
				copy[(size_t)random() % size] = (char)random();
			refused += import(names[i], copy, kept + !kept, NULL) != 0;
		}
		free(copy);
		free(text);
	}
	assert_true(refused > 10);
	assert_int_equal(import("pprof", bomb, sizeof(bomb) - 1, NULL), -EBADMSG);
	assert_int_equal(import("pprof", "", 0, NULL), -EBADMSG);
	assert_int_equal(import("perf-script", "\n\n", 2, NULL), -ENODATA);
	synthetic_check_pools();
}

/* What is behind the compression, where its checksum does not keep damage out. */
static void bad_references_are_refused(void **state _unused_)
{
	/* string_table "", sample_type {}, sample { location 7, value 1 }: there is no such location */
	static const char lone[] = "\x32\0\x0a\0\x12\6\x0a\1\7\x12\1\1";
	/* the same, with location 7 of a function 9 that is not there */
	static const char line[] = "\x32\0\x0a\0\x12\6\x0a\1\7\x12\1\1\x22\6\x08\7\x22\2\x08\x09";
	/* with a name of string 5 */
	static const char name[] = "\x32\0\x0a\0\x12\6\x0a\1\7\x12\1\1\x22\6\x08\7\x22\2\x08\x09\x2a\4\x08\x09\x10\5";
	/* a value too many */
	static const char value[] = "\x32\0\x0a\0\x12\7\x0a\1\7\x12\2\1\1\x22\2\x08\7";
	/* with a comment, frames to drop of string 5 */
	static const char comment[] = "\x32\0\x0a\0\x12\6\x0a\1\7\x12\1\1\x22\2\x08\7\x6a\1\5";
	static const char drop[] = "\x32\0\x0a\0\x12\6\x0a\1\7\x12\1\1\x22\2\x08\7\x38\5";
	static const char whole[] = "\x32\0\x0a\0\x12\6\x0a\1\7\x12\1\1\x22\2\x08\7";

	assert_int_equal(import("pprof", lone, sizeof(lone) - 1, NULL), -EBADMSG);
	assert_int_equal(import("pprof", line, sizeof(line) - 1, NULL), -EBADMSG);
	assert_int_equal(import("pprof", name, sizeof(name) - 1, NULL), -EBADMSG);
	assert_int_equal(import("pprof", value, sizeof(value) - 1, NULL), -EBADMSG);
	assert_int_equal(import("pprof", comment, sizeof(comment) - 1, NULL), -EBADMSG);
	assert_int_equal(import("pprof", drop, sizeof(drop) - 1, NULL), -EBADMSG);
	assert_int_equal(import("pprof", whole, sizeof(whole) - 1, NULL), 0);
	synthetic_check_pools();
}

static int setup(void **state _unused_)
{
	recorded_file(fixture_path("convert.otlp"), 65536);
	/* as the command sets it: nobody else uses it there */
	pool_get(POOL_ENCODE)->limit = (size_t)256 << 20;
	return 0;
}

static void put(struct buffer *buffer, unsigned int field, const void *data, size_t size)
{
	assert_int_equal(buffer_field(buffer, field, size), 0);
	assert_int_equal(buffer_append(buffer, data, size), 0);
}

/* The fields of @from as one of @to. */
static void put_message(struct buffer *to, unsigned int field, struct buffer *from)
{
	put(to, field, from->data, from->size);
	buffer_free(from);
}

enum { COMMENTS = 20000 };

/* A Profile that refers as often to an attribute, an array of @item each, each of them a field 1. */
static int read_comments(const void *item, size_t size, struct model *model)
{
	struct buffer array, value, attribute, dictionary, sample, profile, scope, resource, data;
	struct buffer *all[] = { &array, &value, &attribute, &dictionary, &sample, &profile, &scope, &resource, &data };
	char indices[COMMENTS];
	int err;

	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		buffer_init(all[i], POOL_REPORT);
	for (unsigned int i = 0; i < COMMENTS; i++)
		put(&array, 1, item, size);
	put_message(&value, 5, &array);
	assert_int_equal(buffer_append(&attribute, "\x08\1", 2), 0);
	put_message(&attribute, 2, &value);
	put(&dictionary, 5, "", 0);
	put(&dictionary, 5, PPROF_COMMENT, strlen(PPROF_COMMENT));
	put(&dictionary, 6, "", 0);
	put_message(&dictionary, 6, &attribute);
	put(&sample, 4, "\1", 1);
	put_message(&profile, 2, &sample);
	memset(indices, 1, sizeof(indices));
	put(&profile, 11, indices, sizeof(indices));
	put_message(&scope, 2, &profile);
	put_message(&resource, 2, &scope);
	put_message(&data, 1, &resource);
	put_message(&data, 2, &dictionary);
	err = reader_add(model->reader, data.data, data.size);
	buffer_free(&data);
	return err;
}

/* What of a comment's array costs nothing in the message costs nobody the square of it. */
static void comments_cost_no_square(void **state _unused_)
{
	const struct model_options options = { .with_remarks = true };
	struct model *model;

	assert_int_equal(model_new(&options, &model), 0);
	assert_int_equal(read_comments("", 0, model), -EBADMSG);
	model_free(model);
	/* as many as are kept are soon there: the others are not looked at */
	assert_int_equal(model_new(&options, &model), 0);
	assert_int_equal(read_comments("\x0a\1x", 3, model), 0);
	assert_int_equal(model->remarks.comments.size, sizeof(const char *));
	assert_true(model->remarks.losses & 1U << VIEW_LOSS_COMMENTS);
	model_free(model);
	synthetic_check_pools();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pprof_comes_back),
		cmocka_unit_test(all_that_pprof_has_comes_back),
		cmocka_unit_test(counts_alone_come_back),
		cmocka_unit_test(counts_of_one_time_are_as_many),
		cmocka_unit_test(counts_of_a_period_come_back),
		cmocka_unit_test(of_several_types_the_default_is_shown),
		cmocka_unit_test(a_default_of_samples_comes_back),
		cmocka_unit_test(labels_come_back),
		cmocka_unit_test(what_pprof_has_no_place_for_is_known),
		cmocka_unit_test(an_empty_text_is_no_label),
		cmocka_unit_test(a_mapping_without_a_file_comes_back),
		cmocka_unit_test(the_first_mapping_comes_back_first),
		cmocka_unit_test(perf_script_comes_back),
		cmocka_unit_test(perf_prints_it_so),
		cmocka_unit_test(damage_is_refused),
		cmocka_unit_test(bad_references_are_refused),
		cmocka_unit_test(comments_cost_no_square),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
