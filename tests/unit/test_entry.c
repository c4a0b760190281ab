// SPDX-License-Identifier: Apache-2.0
/* Entries have the bytes that protobuf-c makes of them. */
#include "unit.h"

#include <string.h>

#include "export/entry.h"

#define ROUNDS 20000

static uint64_t random_state = 88172645463325252;

static uint64_t random_next(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

/* As often of each length, as zero, and as large as can be. */
static uint64_t number(uint64_t max)
{
	const uint64_t choice = random_next() % 70;

	return choice > 64 ? max : choice ? (random_next() >> (choice - 1)) & max : 0;
}

static int32_t index_number(void)
{
	return (int32_t)number(INT32_MAX);
}

static void check(const ProtobufCMessage *message, const uint8_t *bytes, size_t size)
{
	uint8_t want[8192];

	assert_true(protobuf_c_message_get_packed_size(message) <= sizeof(want));
	assert_int_equal(size, protobuf_c_message_pack(message, want));
	assert_memory_equal(bytes, want, size);
}

static void stacks(void **state _unused_)
{
	int32_t indices[1000];
	uint8_t *bytes;
	OtlpStack stack;

	otlp_init(stack, &stack);
	stack.location_indices = indices;
	for (int round = 0; round < ROUNDS; round++) {
		stack.n_location_indices = random_next() % (round % 100 ? 40 : ARRAY_SIZE(indices));
		for (size_t i = 0; i < stack.n_location_indices; i++)
			indices[i] = round % 10 ? index_number() : INT32_MAX;
		/* of its own, that nothing is written behind its end */
		bytes = malloc(entry_stack_room(stack.n_location_indices));
		assert_non_null(bytes);
		check(&stack.base, bytes, entry_stack(&stack, bytes));
		free(bytes);
	}
}

static void locations(void **state _unused_)
{
	OtlpLine lines[ENTRY_LINES], *pointers[ENTRY_LINES];
	int32_t attributes[ENTRY_ATTRIBUTES];
	uint8_t bytes[ENTRY_LOCATION_MAX];
	OtlpLocation location;

	otlp_init(location, &location);
	location.lines = pointers;
	location.attribute_indices = attributes;
	for (int round = 0; round < ROUNDS; round++) {
		const bool is_full = round % 100 == 0;

		location.mapping_index = is_full ? INT32_MAX : index_number();
		location.address = is_full ? UINT64_MAX : number(UINT64_MAX);
		location.n_lines = is_full ? ENTRY_LINES : random_next() % 4;
		for (size_t i = 0; i < location.n_lines; i++) {
			otlp_init(line, &lines[i]);
			lines[i].function_index = is_full ? INT32_MAX : index_number();
			lines[i].line = (int64_t)(is_full ? INT64_MAX : number(INT64_MAX));
			lines[i].column = (int64_t)(is_full ? INT64_MAX : number(INT64_MAX));
			pointers[i] = &lines[i];
		}
		location.n_attribute_indices = is_full ? ENTRY_ATTRIBUTES : random_next() % 4;
		for (size_t i = 0; i < location.n_attribute_indices; i++)
			attributes[i] = is_full ? INT32_MAX : index_number();
		check(&location.base, bytes, entry_location(&location, bytes));
	}
}

static void functions(void **state _unused_)
{
	uint8_t bytes[ENTRY_FUNCTION_MAX];
	OtlpFunction function;

	otlp_init(function, &function);
	for (int round = 0; round < ROUNDS; round++) {
		const bool is_full = round % 100 == 0;

		function.name_strindex = is_full ? INT32_MAX : index_number();
		function.system_name_strindex = is_full ? INT32_MAX : index_number();
		function.filename_strindex = is_full ? INT32_MAX : index_number();
		function.start_line = (int64_t)(is_full ? INT64_MAX : number(INT64_MAX));
		check(&function.base, bytes, entry_function(&function, bytes));
	}
}

static void samples(void **state _unused_)
{
	int32_t attributes[ENTRY_ATTRIBUTES];
	uint64_t times[300];
	int64_t values[300];
	OtlpSample sample;
	uint8_t *bytes;

	otlp_init(sample, &sample);
	sample.attribute_indices = attributes;
	sample.timestamps_unix_nano = times;
	sample.values = values;
	for (int round = 0; round < ROUNDS; round++) {
		const bool is_full = round % 100 == 0;

		sample.stack_index = is_full ? INT32_MAX : index_number();
		sample.link_index = is_full ? INT32_MAX : index_number();
		sample.n_attribute_indices = is_full ? ENTRY_ATTRIBUTES : random_next() % 4;
		for (size_t i = 0; i < sample.n_attribute_indices; i++)
			attributes[i] = is_full ? INT32_MAX : index_number();
		sample.n_timestamps_unix_nano = is_full ? ARRAY_SIZE(times) : random_next() % 5;
		for (size_t i = 0; i < sample.n_timestamps_unix_nano; i++)
			times[i] = number(UINT64_MAX);
		sample.n_values = is_full ? ARRAY_SIZE(values) : random_next() % 3;
		for (size_t i = 0; i < sample.n_values; i++)
			values[i] = is_full ? INT64_MAX : (int64_t)number(INT64_MAX);
		bytes = malloc(max_of(entry_sample_size(&sample), (size_t)1));
		assert_non_null(bytes);
		check(&sample.base, bytes, entry_sample(&sample, bytes));
		assert_int_equal(entry_sample_size(&sample), protobuf_c_message_get_packed_size(&sample.base));
		free(bytes);
	}
}

static void attributes(void **state _unused_)
{
	char text[300] = "";
	OtlpAttribute attribute;
	OtlpAnyValue value;
	uint8_t *bytes;

	otlp_init(key_value_and_unit, &attribute);
	otlp_common_init(any_value, &value);
	attribute.value = &value;
	value.string_value = text;
	for (int round = 0; round < ROUNDS; round++) {
		const size_t length = random_next() % sizeof(text);

		attribute.key_strindex = index_number();
		attribute.unit_strindex = round % 100 ? index_number() : INT32_MAX;
		switch (round % 3) {
		case 0:
			value.value_case = OTLP_VALUE_STRING;
			memset(text, 'a', length);
			text[length] = '\0';
			value.string_value = text;
			break;
		case 1:
			value.value_case = OTLP_VALUE_INT;
			value.int_value = round % 5 ? (int64_t)number(INT64_MAX) : -(int64_t)number(INT64_MAX);
			break;
		default:
			value.value_case = OTLP_VALUE_BOOL;
			value.bool_value = round % 2;
			break;
		}
		bytes = malloc(entry_attribute_room(round % 3 ? 0 : length));
		assert_non_null(bytes);
		check(&attribute.base, bytes, entry_attribute(&attribute, bytes));
		free(bytes);
	}
}

static void resources(void **state _unused_)
{
	enum { PAIRS = 4, TEXT = 300 };
	OtlpKeyValue pairs[PAIRS], *pointers[PAIRS];
	char keys[PAIRS][TEXT + 1], texts[PAIRS][TEXT + 1];
	OtlpAnyValue values[PAIRS];
	OtlpResource resource;
	uint8_t *bytes;

	opentelemetry__proto__resource__v1__resource__init(&resource);
	resource.attributes = pointers;
	for (int round = 0; round < ROUNDS; round++) {
		resource.n_attributes = random_next() % (PAIRS + 1);
		for (size_t i = 0; i < resource.n_attributes; i++) {
			const size_t length = 1 + random_next() % TEXT;

			otlp_common_init(key_value, &pairs[i]);
			otlp_common_init(any_value, &values[i]);
			pointers[i] = &pairs[i];
			pairs[i].value = &values[i];
			pairs[i].key = memset(keys[i], 'k', sizeof(keys[i]));
			keys[i][length] = '\0';
			if (round % 3) {
				values[i].value_case = OTLP_VALUE_STRING;
				values[i].string_value = memset(texts[i], 'v', sizeof(texts[i]));
				texts[i][TEXT - length] = '\0';
			} else {
				values[i].value_case = OTLP_VALUE_INT;
				values[i].int_value = (int64_t)number(UINT64_MAX);
			}
		}
		bytes = malloc(entry_resource_size(&resource) ?: 1);
		assert_non_null(bytes);
		assert_int_equal(entry_resource_size(&resource), entry_resource(&resource, bytes));
		check(&resource.base, bytes, entry_resource(&resource, bytes));
		free(bytes);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stacks),
		cmocka_unit_test(locations),
		cmocka_unit_test(functions),
		cmocka_unit_test(samples),
		cmocka_unit_test(attributes),
		cmocka_unit_test(resources),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
