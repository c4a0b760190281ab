// SPDX-License-Identifier: Apache-2.0
#include "view/census.h"

#include <string.h>

#include "base/hash.h"
#include "export/unpack.h"

#define UNPACK_MAX ((size_t)512 << 20)

/* One message being read. */
struct message {
	struct census *census;
	const OtlpDictionary *dictionary;
	uint32_t *mapped;		/* object of each Mapping */
	uint32_t *located;		/* object of each Location */
	uint64_t *stacked;		/* samples of each Stack */
};

void census_init(struct census *census)
{
	*census = (struct census){ 0 };
	texts_init(&census->texts);
	rows_init(&census->objects);
	rows_init(&census->locations);
	buffer_init(&census->frames, POOL_REPORT);
}

void census_free(struct census *census)
{
	texts_free(&census->texts);
	rows_free(&census->objects);
	rows_free(&census->locations);
	buffer_free(&census->frames);
}

/* Texts are interned: equal ones have one address. */
static uint64_t object_hash(const struct recorded_object *object)
{
	return hash_words((uint64_t[]){ (uintptr_t)object->path, (uintptr_t)object->build_id,
					(uintptr_t)object->htlhash }, 3);
}

static uint64_t object_hash_of(const void *ctx, uint32_t position)
{
	return object_hash(&((const struct recorded_object *)ctx)[position]);
}

static uint32_t find_object(const struct census *census, const struct recorded_object *object)
{
	struct index_probe probe = index_first(&census->objects.index, object_hash(object));
	const struct recorded_object *known;
	uint32_t i;

	while ((i = index_next(&census->objects.index, &probe)) != INDEX_NONE) {
		known = census_at(census, i);
		if (known->path == object->path && known->build_id == object->build_id &&
		    known->htlhash == object->htlhash)
			break;
	}
	return i;
}

static uint64_t location_hash(const struct recorded_location *location)
{
	return hash_words((uint64_t[]){ location->object, location->address, location->start,
					location->offset, location->limit }, 5);
}

static uint64_t location_hash_of(const void *ctx, uint32_t position)
{
	return location_hash(&((const struct recorded_location *)ctx)[position]);
}

static uint32_t find_location(const struct census *census, const struct recorded_location *location)
{
	struct index_probe probe = index_first(&census->locations.index, location_hash(location));
	const struct recorded_location *known;
	uint32_t i;

	while ((i = index_next(&census->locations.index, &probe)) != INDEX_NONE) {
		known = census_location(census, i);
		if (known->object == location->object && known->address == location->address &&
		    known->start == location->start && known->offset == location->offset &&
		    known->limit == location->limit)
			break;
	}
	return i;
}

static const char *string_at(const OtlpDictionary *dictionary, int32_t index)
{
	if (index < 0 || (size_t)index >= max_of(dictionary->n_string_table, (size_t)1))
		return NULL;
	return dictionary->n_string_table ? dictionary->string_table[index] : "";
}

static const OtlpFunction *function_at(const OtlpDictionary *dictionary, int32_t index)
{
	if (index < 0 || (size_t)index >= dictionary->n_function_table)
		return NULL;
	return dictionary->function_table[index];
}

static bool has_string(const OtlpDictionary *dictionary, int32_t index)
{
	return string_at(dictionary, index);
}

int census_check(const OtlpDictionary *dictionary)
{
	bool is_good = true;

	for (size_t i = 0; i < dictionary->n_function_table; i++) {
		const OtlpFunction *function = dictionary->function_table[i];

		is_good &= has_string(dictionary, function->name_strindex) &&
			   has_string(dictionary, function->system_name_strindex) &&
			   has_string(dictionary, function->filename_strindex);
	}
	for (size_t i = 0; i < dictionary->n_mapping_table; i++)
		is_good &= has_string(dictionary, dictionary->mapping_table[i]->filename_strindex);
	for (size_t i = 0; i < dictionary->n_attribute_table; i++) {
		const OtlpAttribute *attribute = dictionary->attribute_table[i];
		const OtlpAnyValue *value = attribute->value;

		is_good &= has_string(dictionary, attribute->key_strindex) &&
			   has_string(dictionary, attribute->unit_strindex) &&
			   (!value || value->value_case != OTLP_VALUE_STRINDEX ||
			    has_string(dictionary, value->string_value_strindex));
	}
	for (size_t i = 0; i < dictionary->n_location_table; i++) {
		const OtlpLocation *location = dictionary->location_table[i];
		const size_t mappings = max_of(dictionary->n_mapping_table, (size_t)1);

		is_good &= location->mapping_index >= 0 && (size_t)location->mapping_index < mappings;
		for (size_t k = 0; k < location->n_lines; k++)
			is_good &= location->lines[k]->function_index == 0 ||
				   function_at(dictionary, location->lines[k]->function_index);
	}
	return is_good ? 0 : -EBADMSG;
}

static bool line_is_named(const OtlpDictionary *dictionary, const OtlpLine *line)
{
	const OtlpFunction *function = function_at(dictionary, line->function_index);
	const char *name = function ? string_at(dictionary, function->name_strindex) : NULL;

	if (name && !name[0])
		name = string_at(dictionary, function->system_name_strindex);
	return name && name[0];
}

bool location_is_named(const OtlpDictionary *dictionary, const OtlpLocation *location)
{
	for (size_t i = 0; i < location->n_lines; i++)
		if (line_is_named(dictionary, location->lines[i]))
			return true;
	return false;
}

bool location_wants_lines(const OtlpDictionary *dictionary, const OtlpLocation *location)
{
	const OtlpFunction *function;

	if (location->n_lines != 1 || location->lines[0]->line || location->lines[0]->column)
		return false;
	function = function_at(dictionary, location->lines[0]->function_index);
	return function && !function->filename_strindex && !function->start_line &&
	       line_is_named(dictionary, location->lines[0]);
}

/* What a file is known by, of its Mapping's attributes. */
static int read_ids(struct census *census, const OtlpDictionary *dictionary,
		    const OtlpMapping *mapping, struct recorded_object *object)
{
	const OtlpAttribute *attribute;
	const OtlpAnyValue *value;
	const char *key, *text;
	const char **id;

	for (size_t i = 0; i < mapping->n_attribute_indices; i++) {
		int32_t index = mapping->attribute_indices[i];

		if (index < 0 || (size_t)index >= dictionary->n_attribute_table)
			return -EBADMSG;
		attribute = dictionary->attribute_table[index];
		key = string_at(dictionary, attribute->key_strindex);
		if (!key)
			return -EBADMSG;
		id = !strcmp(key, "process.executable.build_id.gnu") ? &object->build_id :
		     !strcmp(key, "process.executable.build_id.htlhash") ? &object->htlhash : NULL;
		value = attribute->value;
		if (!id || !value)
			continue;
		text = value->value_case == OTLP_VALUE_STRING ? value->string_value :
		       value->value_case == OTLP_VALUE_STRINDEX ?
		       string_at(dictionary, value->string_value_strindex) : "";
		if (!text)
			return -EBADMSG;
		/* it becomes part of a path */
		if (strspn(text, "0123456789abcdef") != strlen(text))
			text = "";
		*id = texts_intern(&census->texts, text);
		if (!*id)
			return -E2BIG;
	}
	return 0;
}

/* Mapping 0 is that of addresses in none. */
static int read_object(struct census *census, const OtlpDictionary *dictionary, size_t index,
		       struct recorded_object *object)
{
	const OtlpMapping *mapping = index ? dictionary->mapping_table[index] : NULL;
	const char *path = mapping ? string_at(dictionary, mapping->filename_strindex) : "";

	if (!path)
		return -EBADMSG;
	*object = (struct recorded_object){ .first = CENSUS_END };
	object->build_id = object->htlhash = texts_intern(&census->texts, "");
	object->path = texts_intern(&census->texts, path);
	if (!object->path || !object->build_id)
		return -E2BIG;
	return mapping ? read_ids(census, dictionary, mapping, object) : 0;
}

static int add_mapping(struct message *message, size_t index)
{
	struct census *census = message->census;
	struct recorded_object object;
	int r = read_object(census, message->dictionary, index, &object);

	if (r < 0)
		return r;
	message->mapped[index] = find_object(census, &object);
	if (message->mapped[index] != INDEX_NONE)
		return 0;
	return rows_add(&census->objects, object_hash(&object), object_hash_of, &object,
			sizeof(object), &message->mapped[index]);
}

static void fill_location(const OtlpDictionary *dictionary, const OtlpLocation *location,
			  struct recorded_location *ret_location)
{
	const OtlpMapping *mapping = location->mapping_index ?
		dictionary->mapping_table[location->mapping_index] : NULL;

	ret_location->address = location->address;
	ret_location->start = mapping ? mapping->memory_start : 0;
	ret_location->offset = mapping ? mapping->file_offset : 0;
	ret_location->limit = mapping ? mapping->memory_limit : UINT64_MAX;
}

/* What a file with other names would be another one by. */
static int note_function(struct message *message, const OtlpLocation *location, struct recorded_location *row)
{
	const OtlpDictionary *dictionary = message->dictionary;
	const OtlpFunction *function = function_at(dictionary, location->lines[0]->function_index);
	const char *name = texts_intern(&message->census->texts, string_at(dictionary, function->system_name_strindex ?:
									   function->name_strindex));

	if (!name)
		return -E2BIG;
	row->function = !row->wants_lines || row->function == name ? name : NULL;
	return 0;
}

static int add_location(struct message *message, size_t index)
{
	const OtlpLocation *location = message->dictionary->location_table[index];
	struct census *census = message->census;
	struct recorded_location row = { 0 };
	struct recorded_object *object;
	uint32_t i;
	int r;

	row.object = message->located[index] = message->mapped[location->mapping_index];
	fill_location(message->dictionary, location, &row);
	i = find_location(census, &row);
	if (i == INDEX_NONE) {
		object = census_at(census, row.object);
		row.next = object->first;
		r = rows_add(&census->locations, location_hash(&row), location_hash_of, &row,
			     sizeof(row), &i);
		if (r < 0)
			return r;
		object->first = i;
		object->locations++;
	}
	if (!location_is_named(message->dictionary, location)) {
		if (!census_location(census, i)->is_unnamed)
			census_at(census, row.object)->unnamed++;
		census_location(census, i)->is_unnamed = true;
	} else if (location_wants_lines(message->dictionary, location)) {
		r = census_at(census, row.object)->path[0] == '[' ?
			note_function(message, location, census_location(census, i)) : 0;
		if (r < 0)
			return r;
		census_location(census, i)->wants_lines = true;
	}
	return 0;
}

static int count_samples(struct message *message, const OtlpProfile *profile)
{
	for (size_t i = 0; i < profile->n_samples; i++) {
		const OtlpSample *sample = profile->samples[i];

		if (sample->stack_index < 0 ||
		    (size_t)sample->stack_index >=
		    max_of(message->dictionary->n_stack_table, (size_t)1))
			return -EBADMSG;
		rows_sum(&message->stacked[sample->stack_index], sample_count(sample));
		rows_sum(&message->census->samples, sample_count(sample));
	}
	return 0;
}

static int count_all_samples(struct message *message, const OtlpProfilesData *data)
{
	int r = 0;

	for (size_t i = 0; i < data->n_resource_profiles; i++) {
		const OtlpResourceProfiles *group = data->resource_profiles[i];

		for (size_t k = 0; k < group->n_scope_profiles; k++)
			for (size_t m = 0; !r && m < group->scope_profiles[k]->n_profiles; m++)
				r = count_samples(message, group->scope_profiles[k]->profiles[m]);
	}
	return r;
}

/* Each object of a Stack has its samples once. */
static int count_stacks(struct message *message)
{
	const OtlpDictionary *dictionary = message->dictionary;
	const uint32_t count = message->census->objects.count;
	_cleanup_free_ size_t *seen = calloc((size_t)count + 1, sizeof(*seen));

	if (!seen)
		return -E2BIG;
	for (size_t i = 0; i < dictionary->n_stack_table; i++) {
		const OtlpStack *stack = dictionary->stack_table[i];

		for (size_t k = 0; k < stack->n_location_indices; k++) {
			int32_t index = stack->location_indices[k];
			uint32_t object;

			if (index < 0 || (size_t)index >= dictionary->n_location_table)
				return -EBADMSG;
			object = message->located[index];
			if (!index || seen[object] == i + 1)
				continue;
			seen[object] = i + 1;
			rows_sum(&census_at(message->census, object)->samples, message->stacked[i]);
		}
	}
	return 0;
}

static int read_message(struct message *message, const OtlpProfilesData *data)
{
	const OtlpDictionary *dictionary = message->dictionary;
	int r = census_check(dictionary) ?: add_mapping(message, 0);

	for (size_t i = 1; !r && i < dictionary->n_mapping_table; i++)
		r = add_mapping(message, i);
	/* the first is none */
	for (size_t i = 1; !r && i < dictionary->n_location_table; i++)
		r = add_location(message, i);
	return r ?: count_all_samples(message, data) ?: count_stacks(message);
}

int census_add(struct census *census, const uint8_t *data, size_t size)
{
	_cleanup_(unpack_free) struct unpacked unpacked = { 0 };
	_cleanup_free_ uint32_t *mapped = NULL, *located = NULL;
	_cleanup_free_ uint64_t *stacked = NULL;
	const OtlpProfilesData *message;
	const OtlpDictionary *dictionary;

	if (!unpack_profiles(&unpacked, data, size, UNPACK_MAX))
		return unpacked.is_exhausted ? -E2BIG : -EBADMSG;
	message = (const OtlpProfilesData *)unpacked.message;
	dictionary = message->dictionary;
	if (!dictionary)
		return -EBADMSG;
	mapped = calloc(dictionary->n_mapping_table + 1, sizeof(*mapped));
	located = calloc(dictionary->n_location_table + 1, sizeof(*located));
	stacked = calloc(dictionary->n_stack_table + 1, sizeof(*stacked));
	if (!mapped || !located || !stacked)
		return -E2BIG;
	census->messages++;
	return read_message(&(struct message){
		.census = census, .dictionary = dictionary,
		.mapped = mapped, .located = located, .stacked = stacked,
	}, message);
}

int census_name(struct census *census, struct recorded_location *location,
		 const struct recorded_frame *frame)
{
	const uint32_t position = (uint32_t)(census->frames.size / sizeof(*frame));

	if (position == UINT32_MAX || buffer_append(&census->frames, frame, sizeof(*frame)))
		return -E2BIG;
	if (!location->count++)
		location->first = position;
	return 0;
}

uint32_t census_object(const struct census *census, const OtlpDictionary *dictionary, uint32_t mapping)
{
	struct recorded_object object;

	/* texts are known, and take no memory the second time */
	if (read_object((struct census *)(uintptr_t)census, dictionary, mapping, &object) < 0)
		return INDEX_NONE;
	return find_object(census, &object);
}

const struct recorded_location *census_find(const struct census *census, uint32_t object,
					     const OtlpDictionary *dictionary, uint32_t index)
{
	struct recorded_location row = { .object = object };
	uint32_t i;

	fill_location(dictionary, dictionary->location_table[index], &row);
	i = find_location(census, &row);
	return i == INDEX_NONE ? NULL : census_location(census, i);
}
