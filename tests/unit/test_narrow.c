// SPDX-License-Identifier: Apache-2.0
#include "fixture.h"
#include "synthetic.h"

#include <stdlib.h>

#include "base/hash.h"
#include "export/unpack.h"
#include "view/narrow.h"
#include "export/otlp.h"

static struct payload message;	/* a window, whole */

static int keep(void *ctx _unused_, struct payload *payload)
{
	assert_null(message.data);
	message = *payload;
	return 0;
}

static int setup(void **state _unused_)
{
	const struct encode_options options = { .max_bytes = 1 << 24, .service_name = "shop" };
	struct aggregator *aggregator;
	struct window *window;

	assert_int_equal(aggregator_new(&aggregator), 0);
	window = synthetic_window(aggregator);
	assert_int_equal(encode_window(&options, window, keep, NULL), 0);
	window_free(window);
	aggregator_free(aggregator);
	return 0;
}

static int teardown(void **state _unused_)
{
	free(message.data);
	synthetic_check_pools();
	return 0;
}

/* What a reader finds. */
struct found {
	uint64_t profiles, samples, weight, frames, with_quality;
	uint64_t names;			/* a hash of the frames' */
	char process[64], thread[64];	/* of the last Sample */
};

static int count_profile(void *ctx, const struct view_profile *profile)
{
	struct found *found = ctx;

	found->profiles++;
	found->with_quality += profile->has_quality;
	return 0;
}

static int count_sample(void *ctx, const struct view_profile *profile,
			const struct view_sample *sample)
{
	struct found *found = ctx;

	found->samples += sample->samples;
	found->weight += sample->weight;
	found->frames += sample->frame_count;
	for (size_t i = 0; i < sample->frame_count; i++) {
		found->names = found->names * 31 + hash_bytes(sample->frames[i]->name, strlen(sample->frames[i]->name));
		found->names = found->names * 31 + hash_bytes(sample->frames[i]->mapping->file,
							      strlen(sample->frames[i]->mapping->file));
	}
	snprintf(found->process, sizeof(found->process), "%s", profile->process.name);
	snprintf(found->thread, sizeof(found->thread), "%s", sample->thread);
	return 0;
}

static struct found read_all(const uint8_t *data, size_t size, const struct selection *selection)
{
	struct found found = { 0 };
	const struct reader_sink sink = { .ctx = &found, .profile = count_profile,
					  .sample = count_sample };
	struct texts texts;
	struct reader *reader;

	texts_init(&texts);
	assert_int_equal(reader_new(&texts, selection, false, &sink, &reader), 0);
	assert_int_equal(reader_add(reader, data, size), 0);
	reader_free(reader);
	texts_free(&texts);
	return found;
}

static int narrow(const struct selection *selection, const uint8_t *data, size_t size,
		  struct buffer *ret_message)
{
	struct texts texts;
	struct reader *reader;
	int ret;

	texts_init(&texts);
	assert_int_equal(reader_new(&texts, selection, false, &(struct reader_sink){ 0 }, &reader), 0);
	ret = narrow_message(reader, data, size, ret_message);
	reader_free(reader);
	texts_free(&texts);
	return ret;
}

/* The rest of a message is what a reader with the selection finds in the whole one. */
static struct found assert_narrowed(const struct selection *selection)
{
	const struct found all = read_all(message.data, message.size, NULL);
	struct found want = read_all(message.data, message.size, selection), have;
	struct buffer rest = { .pool = POOL_REPORT };

	assert_int_equal(narrow(selection, message.data, message.size, &rest), 0);
	have = read_all(rest.data, rest.size, NULL);
	assert_int_equal(have.profiles, want.profiles);
	assert_int_equal(have.samples, want.samples);
	assert_int_equal(have.weight, want.weight);
	assert_int_equal(have.frames, want.frames);
	assert_int_equal(have.names, want.names);
	assert_true(have.samples && have.samples < all.samples && rest.size < message.size);
	buffer_free(&rest);
	return have;
}

/* Is the string a type or a unit of values, or a resource's? */
static bool is_type(const ProtobufCMessage *part, int32_t i)
{
	const OtlpProfilesData *data = (const OtlpProfilesData *)part;

	for (size_t g = 0; g < data->n_resource_profiles; g++) {
		const OtlpResourceProfiles *group = data->resource_profiles[g];

		for (size_t k = 0; k < group->resource->n_attributes; k++)
			if (group->resource->attributes[k]->key_strindex == i ||
			    (group->resource->attributes[k]->value->value_case == OTLP_VALUE_STRINDEX &&
			     group->resource->attributes[k]->value->string_value_strindex == i))
				return true;
		for (size_t k = 0; k < group->scope_profiles[0]->n_profiles; k++) {
			const OtlpProfile *profile = group->scope_profiles[0]->profiles[k];

			if (profile->sample_type->type_strindex == i || profile->sample_type->unit_strindex == i ||
			    profile->period_type->type_strindex == i || profile->period_type->unit_strindex == i)
				return true;
		}
	}
	return false;
}

static void a_part_is_what_a_reader_selects(void **state _unused_)
{
	const struct found all = read_all(message.data, message.size, NULL);
	struct found part;

	part = assert_narrowed(&(struct selection){ .process = all.process });
	assert_string_equal(part.process, all.process);
	assert_int_equal(part.with_quality, part.profiles);
}

static void a_part_of_a_profile_has_no_counts_of_the_whole(void **state _unused_)
{
	const struct found all = read_all(message.data, message.size, NULL);
	struct selection selection = { .thread = all.thread };
	struct buffer rest = { .pool = POOL_REPORT };
	struct found part;

	part = assert_narrowed(&selection);
	assert_string_equal(part.thread, all.thread);
	assert_int_equal(narrow(&selection, message.data, message.size, &rest), 0);
	part = read_all(rest.data, rest.size, NULL);
	assert_true(part.with_quality < part.profiles);
	buffer_free(&rest);
}

/* Names of others are not in it, nor what only they name; what is left has the names that it had. */
static void a_part_has_no_names_of_others(void **state _unused_)
{
	const struct found all = read_all(message.data, message.size, NULL);
	struct buffer rest = { .pool = POOL_REPORT };
	struct unpacked whole, part;
	const OtlpDictionary *before, *after;

	assert_int_equal(narrow(&(struct selection){ .process = all.process }, message.data, message.size, &rest), 0);
	assert_true(unpack_profiles(&whole, message.data, message.size, SIZE_MAX));
	assert_true(unpack_profiles(&part, rest.data, rest.size, SIZE_MAX));
	before = ((const OtlpProfilesData *)whole.message)->dictionary;
	after = ((const OtlpProfilesData *)part.message)->dictionary;
	assert_true(after->n_stack_table < before->n_stack_table);
	assert_true(after->n_string_table < before->n_string_table);
	for (size_t i = 0; i < after->n_string_table; i++) {
		size_t uses = !i;

		for (size_t k = 0; k < after->n_function_table; k++)
			uses += after->function_table[k]->name_strindex == (int32_t)i ||
				after->function_table[k]->system_name_strindex == (int32_t)i ||
				after->function_table[k]->filename_strindex == (int32_t)i;
		for (size_t k = 0; k < after->n_mapping_table; k++)
			uses += after->mapping_table[k]->filename_strindex == (int32_t)i;
		for (size_t k = 0; k < after->n_attribute_table; k++)
			uses += after->attribute_table[k]->key_strindex == (int32_t)i ||
				after->attribute_table[k]->unit_strindex == (int32_t)i ||
				(after->attribute_table[k]->value &&
				 after->attribute_table[k]->value->value_case == OTLP_VALUE_STRINDEX &&
				 after->attribute_table[k]->value->string_value_strindex == (int32_t)i);
		if (!uses && !is_type(part.message, (int32_t)i))
			fail_msg("`%s' is named by nothing", after->string_table[i]);
	}
	unpack_free(&whole);
	unpack_free(&part);
	buffer_free(&rest);
}

static void what_selects_all_changes_nothing(void **state _unused_)
{
	struct found all = read_all(message.data, message.size, NULL), have;
	struct buffer rest = { .pool = POOL_REPORT };

	assert_int_equal(narrow(&(struct selection){ 0 }, message.data, message.size, &rest), 0);
	have = read_all(rest.data, rest.size, NULL);
	assert_memory_equal(&have, &all, sizeof(all));
	buffer_free(&rest);
}

static void nothing_is_left_of_what_has_none(void **state _unused_)
{
	struct buffer rest = { .pool = POOL_REPORT };

	assert_int_equal(narrow(&(struct selection){ .process = "none" }, message.data, message.size,
				&rest), 0);
	assert_int_equal(rest.size, 0);
	assert_int_equal(narrow(&(struct selection){ .thread = "none" }, message.data, message.size,
				&rest), 0);
	assert_int_equal(rest.size, 0);
	assert_int_equal(narrow(&(struct selection){ .event = "none" }, message.data, message.size,
				&rest), 0);
	assert_int_equal(rest.size, 0);
	buffer_free(&rest);
}

static void damage_is_told(void **state _unused_)
{
	struct selection selection = { .thread = "none" };
	struct buffer rest = { .pool = POOL_REPORT };
	uint8_t *bytes = malloc(message.size);

	assert_non_null(bytes);
	assert_int_equal(narrow(&selection, (const uint8_t *)"\xff\xff\xff", 3, &rest), -EBADMSG);
	/* no byte that is another one does more than fail */
	for (size_t i = 0; i < message.size; i += 251) {
		memcpy(bytes, message.data, message.size);
		bytes[i] ^= 0x55;
		narrow(&selection, bytes, message.size, &rest);
	}
	free(bytes);
	buffer_free(&rest);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_part_is_what_a_reader_selects),
		cmocka_unit_test(a_part_of_a_profile_has_no_counts_of_the_whole),
		cmocka_unit_test(a_part_has_no_names_of_others),
		cmocka_unit_test(what_selects_all_changes_nothing),
		cmocka_unit_test(nothing_is_left_of_what_has_none),
		cmocka_unit_test(damage_is_told),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
