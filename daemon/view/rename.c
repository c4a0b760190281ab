// SPDX-License-Identifier: Apache-2.0
#include "view/rename.h"

#include <string.h>

#include "base/hash.h"
#include "export/dictionary.h"
#include "export/record.h"
#include "export/unpack.h"

#define UNPACK_MAX ((size_t)512 << 20)

enum { LOCATION_LINES = 3 };	/* field number in a Location */

/* A field of a message, as it stands there. */
struct field {
	const uint8_t *begin, *value;	/* with and without what comes in front */
	size_t bytes, size;		/* likewise */
	uint64_t number;
	unsigned int type;
};

struct cursor {
	const uint8_t *at, *end;
};

struct function_row {
	int32_t name, system_name, file;
	uint32_t start_line;
};

/* What becomes of a Location. */
struct change {
	const struct recorded_location *found;	/* NULL: it stays as it is */
	uint32_t first;				/* of its functions, in the message's */
};

struct message {
	const struct census *census;
	const OtlpDictionary *dictionary;
	struct change *changes;			/* of each Location */
	uint32_t change_count;
	struct rows strings;			/* const char * */
	struct rows functions;			/* struct function_row; the message's, then new ones */
	struct buffer used;			/* uint32_t: functions of changed Locations' frames */
	uint32_t *places;			/* of each function in the new table */
	uint32_t *slots;			/* what stands in each place that there was */
	uint32_t function_end;			/* places of the new table */
};

static bool get_varint(struct cursor *cursor, uint64_t *ret_value)
{
	*ret_value = 0;
	for (unsigned int shift = 0; shift < 70 && cursor->at < cursor->end; shift += 7) {
		const uint8_t byte = *cursor->at++;

		if (shift < 64)
			*ret_value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return true;
	}
	return false;
}

/* 1: a field, 0: the end, -EBADMSG */
static int next_field(struct cursor *cursor, struct field *field)
{
	uint64_t tag, size = 0;

	if (cursor->at == cursor->end)
		return 0;
	field->begin = cursor->at;
	if (!get_varint(cursor, &tag))
		return -EBADMSG;
	field->number = tag >> 3;
	field->type = tag & 7;
	field->value = cursor->at;
	switch (field->type) {
	case 0:
		if (!get_varint(cursor, &size))
			return -EBADMSG;
		size = (uint64_t)(cursor->at - field->value);
		cursor->at = field->value;
		break;
	case 1:
		size = 8;
		break;
	case 2:
		if (!get_varint(cursor, &size))
			return -EBADMSG;
		field->value = cursor->at;
		break;
	case 5:
		size = 4;
		break;
	default:
		return -EBADMSG;
	}
	if (size > (uint64_t)(cursor->end - cursor->at))
		return -EBADMSG;
	field->size = (size_t)size;
	cursor->at += size;
	field->bytes = (size_t)(cursor->at - field->begin);
	return 1;
}

static uint64_t string_hash_of(const void *ctx, uint32_t position)
{
	return hash_string(((const char *const *)ctx)[position]);
}

static int add_string(struct message *message, const char *text, uint32_t *ret_position)
{
	return rows_add(&message->strings, hash_string(text), string_hash_of, &text, sizeof(text),
			ret_position);
}

/* Its index in the table, at whose end it is added if it is new. */
static int string_index(struct message *message, const char *text)
{
	struct index_probe probe = index_first(&message->strings.index, hash_string(text));
	uint32_t i;

	while ((i = index_next(&message->strings.index, &probe)) != INDEX_NONE)
		if (!strcmp(((const char *const *)(const void *)message->strings.data.data)[i], text))
			return (int)i;
	return add_string(message, text, &i) < 0 || i > INT32_MAX ? -E2BIG : (int)i;
}

static const struct function_row *function_row(const struct message *message, uint32_t i)
{
	return &((const struct function_row *)(const void *)message->functions.data.data)[i];
}

static uint64_t function_hash_of(const void *ctx, uint32_t position)
{
	return hash_bytes(&((const struct function_row *)ctx)[position], sizeof(struct function_row));
}

static int add_function(struct message *message, const struct function_row *row,
			uint32_t *ret_position)
{
	return rows_add(&message->functions, hash_bytes(row, sizeof(*row)), function_hash_of, row,
			sizeof(*row), ret_position);
}

static int find_function(struct message *message, const struct function_row *row,
			 uint32_t *ret_position)
{
	struct index_probe probe = index_first(&message->functions.index,
					       hash_bytes(row, sizeof(*row)));

	while ((*ret_position = index_next(&message->functions.index, &probe)) != INDEX_NONE)
		if (!memcmp(function_row(message, *ret_position), row, sizeof(*row)))
			return 0;
	return add_function(message, row, ret_position);
}

/* Tables as they are, so that what is there already is found. */
static int load_tables(struct message *message)
{
	const OtlpDictionary *dictionary = message->dictionary;
	uint32_t position;
	int r = 0;

	for (size_t i = 0; !r && i < max_of(dictionary->n_string_table, (size_t)1); i++)
		r = add_string(message, dictionary->n_string_table ? dictionary->string_table[i] : "",
			       &position);
	for (size_t i = 0; !r && i < max_of(dictionary->n_function_table, (size_t)1); i++) {
		const OtlpFunction *function = dictionary->n_function_table ?
			dictionary->function_table[i] : NULL;
		struct function_row row = { 0 };

		if (function)
			row = (struct function_row){
				.name = function->name_strindex,
				.system_name = function->system_name_strindex,
				.file = function->filename_strindex,
				.start_line = (uint32_t)function->start_line,
			};
		/* one that is not what a row can say is found by none */
		if (function && (function->start_line < 0 || function->start_line > UINT32_MAX))
			row.name = -1;
		r = add_function(message, &row, &position);
	}
	return r;
}

/* The functions of a Location's frames; its outermost one keeps the name that it has. */
static int use_functions(struct message *message, const OtlpLocation *location, struct change *change)
{
	const struct recorded_frame *frame = census_frames(message->census, change->found);
	const OtlpFunction *kept = location_is_named(message->dictionary, location) ?
		message->dictionary->function_table[location->lines[0]->function_index] : NULL;
	int r = 0;

	change->first = (uint32_t)(message->used.size / sizeof(uint32_t));
	for (uint32_t i = 0; !r && i < change->found->count; i++, frame++) {
		struct function_row row = { .start_line = frame->start_line };
		uint32_t position;

		if (kept && i + 1 == change->found->count) {
			row.name = kept->name_strindex;
			row.system_name = kept->system_name_strindex;
		} else {
			row.name = string_index(message, frame->name);
			row.system_name = string_index(message, frame->system_name);
		}
		row.file = string_index(message, frame->file);
		if (row.name < 0 || row.system_name < 0 || row.file < 0 ||
		    find_function(message, &row, &position) < 0 ||
		    buffer_append(&message->used, &position, sizeof(position)))
			r = -E2BIG;
	}
	return r;
}

static bool gains(const struct message *message, const OtlpLocation *location,
		  const struct recorded_location *found)
{
	const struct recorded_frame *frame;

	if (!found || !found->count)
		return false;
	if (!location_is_named(message->dictionary, location))
		return true;
	frame = census_frames(message->census, found);
	return location_wants_lines(message->dictionary, location) &&
	       (found->count > 1 || frame->line || frame->file[0]);
}

static int find_changes(struct message *message)
{
	const OtlpDictionary *dictionary = message->dictionary;
	const size_t mappings = max_of(dictionary->n_mapping_table, (size_t)1);
	_cleanup_free_ uint32_t *objects = calloc(mappings, sizeof(*objects));
	int r = objects ? 0 : -ENOMEM;

	for (size_t i = 0; !r && i < mappings; i++)
		objects[i] = census_object(message->census, dictionary, (uint32_t)i);
	for (size_t i = 1; !r && i < dictionary->n_location_table; i++) {
		const OtlpLocation *location = dictionary->location_table[i];
		const struct recorded_location *found = NULL;

		if (objects[location->mapping_index] != INDEX_NONE)
			found = census_find(message->census, objects[location->mapping_index],
					    dictionary, (uint32_t)i);
		if (!gains(message, location, found))
			continue;
		message->changes[i].found = found;
		message->change_count++;
		r = use_functions(message, location, &message->changes[i]);
	}
	return r;
}

/*
 * New functions take the places of those that only changed Locations referred to, and that none of
 * them refers to any more; the others come behind the last.
 */
static int place_functions(struct message *message)
{
	const OtlpDictionary *dictionary = message->dictionary;
	const uint32_t there = (uint32_t)max_of(dictionary->n_function_table, (size_t)1);
	const uint32_t *used = (const uint32_t *)(const void *)message->used.data;
	uint32_t next = 0;
	_cleanup_free_ uint8_t *was = calloc(there, 1), *is = calloc(message->functions.count, 1);

	message->places = calloc(message->functions.count, sizeof(*message->places));
	message->slots = calloc(there, sizeof(*message->slots));
	if (!was || !is || !message->places || !message->slots)
		return -E2BIG;
	for (size_t i = 0; i < dictionary->n_location_table; i++) {
		const OtlpLocation *location = dictionary->location_table[i];

		for (size_t k = 0; k < location->n_lines; k++) {
			int32_t index = location->lines[k]->function_index;

			was[index] = true;
			if (!message->changes[i].found)
				is[index] = true;
		}
	}
	for (size_t i = 0; i < message->used.size / sizeof(*used); i++)
		is[used[i]] = true;
	for (uint32_t i = 0; i < there; i++)
		message->places[i] = message->slots[i] = i;
	message->function_end = there;
	for (uint32_t i = there; i < message->functions.count; i++) {
		while (next < there && (!next || !was[next] || is[next]))
			next++;
		if (next < there) {
			message->places[i] = next;
			message->slots[next++] = i;
		} else {
			message->places[i] = message->function_end++;
		}
	}
	return 0;
}

static int append_message(struct buffer *output, unsigned int number,
			  const ProtobufCMessage *message)
{
	const size_t size = protobuf_c_message_get_packed_size(message);
	uint8_t *at;

	if (buffer_field(output, number, size))
		return -E2BIG;
	at = buffer_reserve(output, size);
	if (!at)
		return -E2BIG;
	output->size += protobuf_c_message_pack(message, at);
	return 0;
}

static int append_bytes(struct buffer *output, unsigned int number, const void *data, size_t size)
{
	return buffer_field(output, number, size) || buffer_append(output, data, size) ? -E2BIG : 0;
}

static int append_function(const struct message *message, struct buffer *output, uint32_t i)
{
	const struct function_row *row = function_row(message, i);
	OtlpFunction function;

	otlp_init(function, &function);
	function.name_strindex = row->name;
	function.system_name_strindex = row->system_name;
	function.filename_strindex = row->file;
	function.start_line = row->start_line;
	return append_message(output, TABLE_FUNCTION, &function.base);
}

static int append_lines(const struct message *message, struct buffer *output,
			const struct change *change)
{
	const struct recorded_frame *frame = census_frames(message->census, change->found);
	const uint32_t *used = (const uint32_t *)(const void *)message->used.data + change->first;
	int r = 0;

	for (uint32_t i = 0; !r && i < change->found->count; i++, frame++) {
		OtlpLine line;

		otlp_init(line, &line);
		line.function_index = (int32_t)message->places[used[i]];
		line.line = frame->line;
		line.column = frame->column;
		r = append_message(output, LOCATION_LINES, &line.base);
	}
	return r;
}

/* The Location's fields as they are, but for its Lines. */
static int append_location(const struct message *message, struct buffer *output,
			   const struct field *location, const struct change *change)
{
	struct cursor cursor = { location->value, location->value + location->size };
	struct buffer bytes = { .pool = POOL_REPORT };
	bool has_lines = false;
	struct field field;
	int r, err = 0;

	while (!err && (r = next_field(&cursor, &field)) > 0) {
		if (!has_lines && field.number >= LOCATION_LINES) {
			has_lines = true;
			err = append_lines(message, &bytes, change);
		}
		if (!err && field.number != LOCATION_LINES)
			err = buffer_append(&bytes, field.begin, field.bytes) ? -E2BIG : 0;
	}
	err = err ?: r;
	if (!err && !has_lines)
		err = append_lines(message, &bytes, change);
	if (!err)
		err = append_bytes(output, TABLE_LOCATION, bytes.data, bytes.size);
	buffer_free(&bytes);
	return err;
}

static int append_new_functions(const struct message *message, struct buffer *output)
{
	const uint32_t there = (uint32_t)message->dictionary->n_function_table;
	int r = 0;

	/* a table that there was not begins with the empty one */
	for (uint32_t i = there; !r && i < message->functions.count; i++)
		if (message->places[i] >= there)
			r = append_function(message, output, i);
	return r;
}

static int append_new_strings(const struct message *message, struct buffer *output)
{
	const char *const *strings = (const char *const *)(const void *)message->strings.data.data;
	const uint32_t there = (uint32_t)message->dictionary->n_string_table;
	int r = 0;

	for (uint32_t i = there; !r && i < message->strings.count; i++)
		r = append_bytes(output, TABLE_STRING, strings[i], strlen(strings[i]));
	return r;
}

static int append_dictionary(const struct message *message, struct buffer *output,
			     const struct field *dictionary)
{
	struct cursor cursor = { dictionary->value, dictionary->value + dictionary->size };
	const OtlpDictionary *known = message->dictionary;
	size_t counts[TABLE_END] = { 0 }, i;
	struct field field;
	int r, err = 0;

	while (!err && (r = next_field(&cursor, &field)) > 0) {
		/* what a newer version has is kept as it is */
		if (!field.number || field.number >= TABLE_END) {
			err = buffer_append(output, field.begin, field.bytes) ? -E2BIG : 0;
			continue;
		}
		if (field.type != 2)
			return -EBADMSG;
		i = counts[field.number]++;
		if (field.number == TABLE_LOCATION && i < known->n_location_table &&
		    message->changes[i].found)
			err = append_location(message, output, &field, &message->changes[i]);
		else if (field.number == TABLE_FUNCTION && i < known->n_function_table &&
			 message->slots[i] != i)
			err = append_function(message, output, message->slots[i]);
		else
			err = buffer_append(output, field.begin, field.bytes) ? -E2BIG : 0;
		if (!err && field.number == TABLE_FUNCTION && i + 1 == known->n_function_table)
			err = append_new_functions(message, output);
		if (!err && field.number == TABLE_STRING && i + 1 == known->n_string_table)
			err = append_new_strings(message, output);
	}
	err = err ?: r;
	if (!err && !known->n_function_table)
		err = append_new_functions(message, output);
	if (!err && !known->n_string_table)
		err = append_new_strings(message, output);
	/* what was unpacked is what was just walked */
	if (!err && (counts[TABLE_LOCATION] != known->n_location_table ||
		     counts[TABLE_FUNCTION] != known->n_function_table ||
		     counts[TABLE_STRING] != known->n_string_table))
		err = -EBADMSG;
	return err;
}

static int append_all(const struct message *message, const uint8_t *data, size_t size,
		      struct buffer *output)
{
	struct cursor cursor = { data, data + size };
	struct buffer bytes = { .pool = POOL_REPORT };
	unsigned int dictionaries = 0;
	struct field field;
	int r, err = 0;

	while (!err && (r = next_field(&cursor, &field)) > 0) {
		if (field.number != OTLP_DATA_DICTIONARY) {
			err = buffer_append(output, field.begin, field.bytes) ? -E2BIG : 0;
			continue;
		}
		/* nobody writes one in two parts */
		if (dictionaries++)
			err = -EBADMSG;
		else
			err = append_dictionary(message, &bytes, &field);
		if (!err)
			err = append_bytes(output, OTLP_DATA_DICTIONARY, bytes.data, bytes.size);
	}
	buffer_free(&bytes);
	return err ?: r;
}

static int count_stack(const struct message *message, const OtlpStack *stack, uint64_t samples,
		       struct rename_counts *counts)
{
	for (size_t i = 0; i < stack->n_location_indices; i++) {
		const OtlpLocation *location;
		int32_t index = stack->location_indices[i];

		if (index < 0 || (size_t)index >= message->dictionary->n_location_table)
			return -EBADMSG;
		location = message->dictionary->location_table[index];
		rows_sum(&counts->frames, samples);
		if (location_is_named(message->dictionary, location)) {
			rows_sum(&counts->named_before, samples);
			rows_sum(&counts->named_after, samples);
		} else if (message->changes[index].found) {
			rows_sum(&counts->named_after, samples);
		}
	}
	return 0;
}

static int count_samples(const struct message *message, const OtlpProfile *profile, uint64_t *stacked)
{
	for (size_t i = 0; i < profile->n_samples; i++) {
		int32_t index = profile->samples[i]->stack_index;

		if (index < 0 ||
		    (size_t)index >= max_of(message->dictionary->n_stack_table, (size_t)1))
			return -EBADMSG;
		rows_sum(&stacked[index], sample_count(profile->samples[i]));
	}
	return 0;
}

/* Once per Stack, however many Samples share it. */
static int count_frames(const struct message *message, const OtlpProfilesData *data,
			struct rename_counts *counts)
{
	const OtlpDictionary *dictionary = message->dictionary;
	_cleanup_free_ uint64_t *stacked = calloc(dictionary->n_stack_table + 1, sizeof(*stacked));
	int r = stacked ? 0 : -E2BIG;

	for (size_t i = 0; i < data->n_resource_profiles; i++) {
		const OtlpResourceProfiles *group = data->resource_profiles[i];

		for (size_t k = 0; k < group->n_scope_profiles; k++)
			for (size_t m = 0; !r && m < group->scope_profiles[k]->n_profiles; m++)
				r = count_samples(message, group->scope_profiles[k]->profiles[m],
						  stacked);
	}
	for (size_t i = 0; !r && i < dictionary->n_stack_table; i++)
		r = count_stack(message, dictionary->stack_table[i], stacked[i], counts);
	return r;
}

static int write_message(struct message *message, const OtlpProfilesData *unpacked,
			 const uint8_t *data, size_t size, struct buffer *output, struct rename_counts *counts)
{
	const size_t before = output->size;
	int r = census_check(message->dictionary) ?: load_tables(message) ?: find_changes(message) ?: place_functions(message);

	if (!r && message->change_count)
		r = append_all(message, data, size, output);
	if (!r && message->change_count && output->size - before > RECORD_MESSAGE_MAX) {
		output->size = before;
		counts->left++;
		memset(message->changes, 0,
		       message->dictionary->n_location_table * sizeof(*message->changes));
	}
	if (!r && output->size == before)
		r = buffer_append(output, data, size) ? -E2BIG : 0;
	return r ?: count_frames(message, unpacked, counts);
}

int rename_message(const struct census *census, const uint8_t *data, size_t size,
		   struct buffer *output, struct rename_counts *counts)
{
	_cleanup_(unpack_free) struct unpacked unpacked = { 0 };
	struct message message = { .census = census };
	const OtlpProfilesData *whole;
	int r;

	if (!unpack_profiles(&unpacked, data, size, UNPACK_MAX))
		return unpacked.is_exhausted ? -E2BIG : -EBADMSG;
	whole = (const OtlpProfilesData *)unpacked.message;
	if (!whole->dictionary)
		return -EBADMSG;
	message.dictionary = whole->dictionary;
	rows_init(&message.strings);
	rows_init(&message.functions);
	buffer_init(&message.used, POOL_REPORT);
	message.changes = calloc(whole->dictionary->n_location_table + 1, sizeof(*message.changes));
	r = message.changes ? write_message(&message, whole, data, size, output, counts) : -E2BIG;
	rows_free(&message.strings);
	rows_free(&message.functions);
	buffer_free(&message.used);
	free(message.changes);
	free(message.places);
	free(message.slots);
	return r;
}
