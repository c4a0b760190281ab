// SPDX-License-Identifier: Apache-2.0
#include "export/entry.h"

#include <endian.h>
#include <string.h>

/* Wire types, and field numbers in the messages. */
enum {
	VARINT = 0,
	LEN = 2,

	STACK_LOCATIONS = 1,

	LOCATION_MAPPING = 1,
	LOCATION_ADDRESS,
	LOCATION_LINES,
	LOCATION_ATTRIBUTES,

	LINE_FUNCTION = 1,
	LINE_LINE,
	LINE_COLUMN,

	FUNCTION_NAME = 1,
	FUNCTION_SYSTEM_NAME,
	FUNCTION_FILENAME,
	FUNCTION_START_LINE,

	SAMPLE_STACK = 1,
	SAMPLE_ATTRIBUTES,
	SAMPLE_LINK,
	SAMPLE_VALUES,
	SAMPLE_TIMES,

	ATTRIBUTE_KEY = 1,
	ATTRIBUTE_VALUE,
	ATTRIBUTE_UNIT,

	RESOURCE_ATTRIBUTES = 1,

	PAIR_KEY = 1,
	PAIR_VALUE,

	VALUE_STRING = 1,
	VALUE_BOOL,
	VALUE_INT,
};

static uint8_t *put_varint(uint8_t *at, uint64_t value)
{
	for (; value >= 0x80; value >>= 7)
		*at++ = (uint8_t)value | 0x80;
	*at++ = (uint8_t)value;
	return at;
}

static size_t number_size(uint64_t number)
{
	size_t size = 1;

	for (; number >= 0x80; number >>= 7)
		size++;
	return size;
}

/* Zero is what a field without bytes says. */
static uint8_t *put_number(uint8_t *at, unsigned int field, int64_t number)
{
	if (!number)
		return at;
	*at++ = (uint8_t)(field << 3 | VARINT);
	return put_varint(at, (uint64_t)number);
}

static uint8_t *put_indices(uint8_t *at, unsigned int field, const int32_t *indices, size_t count)
{
	uint8_t *start;
	size_t size, more;

	if (!count)
		return at;
	*at++ = (uint8_t)(field << 3 | LEN);
	/* most have less than 128 bytes, whose number takes one */
	start = ++at;
	for (size_t i = 0; i < count; i++)
		at = put_varint(at, (uint64_t)indices[i]);
	size = (size_t)(at - start);
	more = number_size(size) - 1;
	if (more)
		memmove(start + more, start, size);
	put_varint(start - 1, size);
	return at + more;
}

static uint8_t *put_line(uint8_t *at, const OtlpLine *line)
{
	uint8_t *size;

	*at++ = LOCATION_LINES << 3 | LEN;
	/* three numbers take less than 128 bytes */
	size = at++;
	at = put_number(at, LINE_FUNCTION, line->function_index);
	at = put_number(at, LINE_LINE, line->line);
	at = put_number(at, LINE_COLUMN, line->column);
	*size = (uint8_t)(at - size - 1);
	return at;
}

size_t entry_stack(const OtlpStack *stack, uint8_t *at)
{
	return (size_t)(put_indices(at, STACK_LOCATIONS, stack->location_indices,
				    stack->n_location_indices) - at);
}

size_t entry_location(const OtlpLocation *location, uint8_t at[static ENTRY_LOCATION_MAX])
{
	uint8_t *end = put_number(at, LOCATION_MAPPING, location->mapping_index);

	end = put_number(end, LOCATION_ADDRESS, (int64_t)location->address);
	for (size_t i = 0; i < location->n_lines; i++)
		end = put_line(end, location->lines[i]);
	end = put_indices(end, LOCATION_ATTRIBUTES, location->attribute_indices,
			  location->n_attribute_indices);
	return (size_t)(end - at);
}

size_t entry_function(const OtlpFunction *function, uint8_t at[static ENTRY_FUNCTION_MAX])
{
	uint8_t *end = put_number(at, FUNCTION_NAME, function->name_strindex);

	end = put_number(end, FUNCTION_SYSTEM_NAME, function->system_name_strindex);
	end = put_number(end, FUNCTION_FILENAME, function->filename_strindex);
	end = put_number(end, FUNCTION_START_LINE, function->start_line);
	return (size_t)(end - at);
}

static uint8_t *put_values(uint8_t *at, const int64_t *values, size_t count)
{
	size_t size = 0;

	if (!count)
		return at;
	for (size_t i = 0; i < count; i++)
		size += number_size((uint64_t)values[i]);
	*at++ = SAMPLE_VALUES << 3 | LEN;
	at = put_varint(at, size);
	for (size_t i = 0; i < count; i++)
		at = put_varint(at, (uint64_t)values[i]);
	return at;
}

static uint8_t *put_times(uint8_t *at, const uint64_t *times, size_t count)
{
	if (!count)
		return at;
	*at++ = SAMPLE_TIMES << 3 | LEN;
	at = put_varint(at, count * ENTRY_TIME_BYTES);
	for (size_t i = 0; i < count; i++, at += ENTRY_TIME_BYTES) {
		const uint64_t time = htole64(times[i]);

		memcpy(at, &time, sizeof(time));
	}
	return at;
}

static size_t field_size(int32_t number)
{
	return number ? 1 + number_size((uint64_t)number) : 0;
}

static size_t list_size(size_t bytes)
{
	return bytes ? 1 + number_size(bytes) + bytes : 0;
}

size_t entry_sample_size(const OtlpSample *sample)
{
	size_t attributes = 0, values = 0;

	for (size_t i = 0; i < sample->n_attribute_indices; i++)
		attributes += number_size((uint64_t)sample->attribute_indices[i]);
	for (size_t i = 0; i < sample->n_values; i++)
		values += number_size((uint64_t)sample->values[i]);
	return field_size(sample->stack_index) + list_size(attributes) + field_size(sample->link_index) +
	       list_size(values) + list_size(sample->n_timestamps_unix_nano * ENTRY_TIME_BYTES);
}

size_t entry_sample(const OtlpSample *sample, uint8_t *at)
{
	uint8_t *end = put_number(at, SAMPLE_STACK, sample->stack_index);

	end = put_indices(end, SAMPLE_ATTRIBUTES, sample->attribute_indices, sample->n_attribute_indices);
	end = put_number(end, SAMPLE_LINK, sample->link_index);
	end = put_values(end, sample->values, sample->n_values);
	end = put_times(end, sample->timestamps_unix_nano, sample->n_timestamps_unix_nano);
	return (size_t)(end - at);
}

/* Of a oneof, which is there even where it is zero. */
static uint8_t *put_value(uint8_t *at, const OtlpAnyValue *value)
{
	size_t length;

	switch (value->value_case) {
	case OTLP_VALUE_STRING:
		length = strlen(value->string_value);
		*at++ = VALUE_STRING << 3 | LEN;
		at = put_varint(at, length);
		memcpy(at, value->string_value, length);
		return at + length;
	case OTLP_VALUE_BOOL:
		*at++ = VALUE_BOOL << 3 | VARINT;
		*at++ = value->bool_value;
		return at;
	default:
		*at++ = VALUE_INT << 3 | VARINT;
		return put_varint(at, (uint64_t)value->int_value);
	}
}

static size_t value_size(const OtlpAnyValue *value)
{
	size_t length;

	switch (value->value_case) {
	case OTLP_VALUE_STRING:
		length = strlen(value->string_value);
		return 1 + number_size(length) + length;
	case OTLP_VALUE_BOOL:
		return 2;
	default:
		return 1 + number_size((uint64_t)value->int_value);
	}
}

size_t entry_attribute(const OtlpAttribute *attribute, uint8_t *at)
{
	uint8_t *end = put_number(at, ATTRIBUTE_KEY, attribute->key_strindex);

	*end++ = ATTRIBUTE_VALUE << 3 | LEN;
	end = put_varint(end, value_size(attribute->value));
	end = put_value(end, attribute->value);
	end = put_number(end, ATTRIBUTE_UNIT, attribute->unit_strindex);
	return (size_t)(end - at);
}

static size_t bytes_size(size_t length)
{
	return 1 + number_size(length) + length;
}

static size_t pair_size(const OtlpKeyValue *pair)
{
	return bytes_size(strlen(pair->key)) + bytes_size(value_size(pair->value));
}

static uint8_t *put_pair(uint8_t *at, const OtlpKeyValue *pair)
{
	const size_t length = strlen(pair->key);

	*at++ = PAIR_KEY << 3 | LEN;
	at = put_varint(at, length);
	memcpy(at, pair->key, length);
	at += length;
	*at++ = PAIR_VALUE << 3 | LEN;
	at = put_varint(at, value_size(pair->value));
	return put_value(at, pair->value);
}

size_t entry_resource_size(const OtlpResource *resource)
{
	size_t size = 0;

	for (size_t i = 0; i < resource->n_attributes; i++)
		size += bytes_size(pair_size(resource->attributes[i]));
	return size;
}

size_t entry_resource(const OtlpResource *resource, uint8_t *at)
{
	uint8_t *end = at;

	for (size_t i = 0; i < resource->n_attributes; i++) {
		*end++ = RESOURCE_ATTRIBUTES << 3 | LEN;
		end = put_varint(end, pair_size(resource->attributes[i]));
		end = put_pair(end, resource->attributes[i]);
	}
	return (size_t)(end - at);
}
