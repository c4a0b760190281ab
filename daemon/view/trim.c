// SPDX-License-Identifier: Apache-2.0
#include "view/trim.h"

#include <errno.h>
#include <stdlib.h>

#include "base/macro.h"

/* In an order in which each names only entries of those behind it. */
enum table {
	STACKS,
	LOCATIONS,
	MAPPINGS,
	FUNCTIONS,
	LINKS,
	ATTRIBUTES,
	STRINGS,
	TABLES,
};

struct trim {
	OtlpDictionary *dictionary;
	int32_t *places[TABLES];	/* of each entry: is it named; later, where it is now */
	size_t counts[TABLES];
	bool is_marking;	/* else indices become those of the places */
	bool is_bad;
};

static void refer(struct trim *trim, enum table table, int32_t *index)
{
	if (*index < 0 || (size_t)*index >= trim->counts[table])
		/* 0 is "none", also where there is no table */
		trim->is_bad |= *index != 0;
	else if (trim->is_marking)
		trim->places[table][*index] = 1;
	else
		*index = trim->places[table][*index];
}

static void refer_each(struct trim *trim, enum table table, int32_t *indices, size_t count)
{
	for (size_t i = 0; i < count; i++)
		refer(trim, table, &indices[i]);
}

static void refer_value(struct trim *trim, OtlpAnyValue *value)
{
	if (value && value->value_case == OTLP_VALUE_STRINDEX)
		refer(trim, STRINGS, &value->string_value_strindex);
}

static void refer_pairs(struct trim *trim, OtlpKeyValue **pairs, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		refer(trim, STRINGS, &pairs[i]->key_strindex);
		refer_value(trim, pairs[i]->value);
	}
}

static void refer_type(struct trim *trim, OtlpValueType *type)
{
	if (!type)
		return;
	refer(trim, STRINGS, &type->type_strindex);
	refer(trim, STRINGS, &type->unit_strindex);
}

static void refer_profile(struct trim *trim, OtlpProfile *profile)
{
	refer_type(trim, profile->sample_type);
	refer_type(trim, profile->period_type);
	refer_each(trim, ATTRIBUTES, profile->attribute_indices, profile->n_attribute_indices);
	for (size_t i = 0; i < profile->n_samples; i++) {
		OtlpSample *sample = profile->samples[i];

		refer(trim, STACKS, &sample->stack_index);
		refer(trim, LINKS, &sample->link_index);
		refer_each(trim, ATTRIBUTES, sample->attribute_indices, sample->n_attribute_indices);
	}
}

static void refer_groups(struct trim *trim, const OtlpProfilesData *message)
{
	for (size_t i = 0; i < message->n_resource_profiles; i++) {
		OtlpResourceProfiles *group = message->resource_profiles[i];

		if (group->resource)
			refer_pairs(trim, group->resource->attributes, group->resource->n_attributes);
		for (size_t k = 0; k < group->n_scope_profiles; k++) {
			OtlpScopeProfiles *scope = group->scope_profiles[k];

			if (scope->scope)
				refer_pairs(trim, scope->scope->attributes, scope->scope->n_attributes);
			for (size_t m = 0; m < scope->n_profiles; m++)
				refer_profile(trim, scope->profiles[m]);
		}
	}
}

static void refer_location(struct trim *trim, OtlpLocation *location)
{
	refer(trim, MAPPINGS, &location->mapping_index);
	refer_each(trim, ATTRIBUTES, location->attribute_indices, location->n_attribute_indices);
	for (size_t i = 0; i < location->n_lines; i++)
		refer(trim, FUNCTIONS, &location->lines[i]->function_index);
}

static void refer_mapping(struct trim *trim, OtlpMapping *mapping)
{
	refer(trim, STRINGS, &mapping->filename_strindex);
	refer_each(trim, ATTRIBUTES, mapping->attribute_indices, mapping->n_attribute_indices);
}

static void refer_function(struct trim *trim, OtlpFunction *function)
{
	refer(trim, STRINGS, &function->name_strindex);
	refer(trim, STRINGS, &function->system_name_strindex);
	refer(trim, STRINGS, &function->filename_strindex);
}

static void refer_attribute(struct trim *trim, OtlpAttribute *attribute)
{
	refer(trim, STRINGS, &attribute->key_strindex);
	refer(trim, STRINGS, &attribute->unit_strindex);
	refer_value(trim, attribute->value);
}

static bool takes_part(const struct trim *trim, enum table table, size_t i)
{
	return !trim->is_marking || trim->places[table][i];
}

static void refer_tables(struct trim *trim)
{
	const OtlpDictionary *tables = trim->dictionary;

	for (size_t i = 0; i < tables->n_stack_table; i++)
		if (takes_part(trim, STACKS, i))
			refer_each(trim, LOCATIONS, tables->stack_table[i]->location_indices,
				   tables->stack_table[i]->n_location_indices);
	for (size_t i = 0; i < tables->n_location_table; i++)
		if (takes_part(trim, LOCATIONS, i))
			refer_location(trim, tables->location_table[i]);
	for (size_t i = 0; i < tables->n_mapping_table; i++)
		if (takes_part(trim, MAPPINGS, i))
			refer_mapping(trim, tables->mapping_table[i]);
	for (size_t i = 0; i < tables->n_function_table; i++)
		if (takes_part(trim, FUNCTIONS, i))
			refer_function(trim, tables->function_table[i]);
	for (size_t i = 0; i < tables->n_attribute_table; i++)
		if (takes_part(trim, ATTRIBUTES, i))
			refer_attribute(trim, tables->attribute_table[i]);
}

static void free_string(void *text, ProtobufCAllocator *allocator)
{
	allocator->free(allocator->allocator_data, text);
}

static void free_message(void *message, ProtobufCAllocator *allocator)
{
	protobuf_c_message_free_unpacked(message, allocator);
}

/* How many entries are left. */
static size_t compact(int32_t *places, void **entries, size_t count, void (*drop)(void *, ProtobufCAllocator *),
		      ProtobufCAllocator *allocator)
{
	size_t kept = 0;

	for (size_t i = 0; i < count; i++)
		if (places[i]) {
			places[i] = (int32_t)kept;
			entries[kept++] = entries[i];
		} else {
			drop(entries[i], allocator);
		}
	return kept;
}

static int open_tables(struct trim *trim)
{
	const OtlpDictionary *tables = trim->dictionary;
	const size_t counts[TABLES] = {
		[STACKS] = tables->n_stack_table, [LOCATIONS] = tables->n_location_table,
		[MAPPINGS] = tables->n_mapping_table, [FUNCTIONS] = tables->n_function_table,
		[LINKS] = tables->n_link_table, [ATTRIBUTES] = tables->n_attribute_table,
		[STRINGS] = tables->n_string_table,
	};

	for (size_t i = 0; i < TABLES; i++) {
		trim->counts[i] = counts[i];
		trim->places[i] = calloc(counts[i] + 1, sizeof(*trim->places[i]));
		if (!trim->places[i])
			return -E2BIG;
		/* the first of each is "none" */
		trim->places[i][0] = 1;
	}
	return 0;
}

static void close_tables(struct trim *trim)
{
	for (size_t i = 0; i < TABLES; i++)
		free(trim->places[i]);
}

int trim_dictionary(OtlpProfilesData *message, ProtobufCAllocator *allocator)
{
	_cleanup_(close_tables) struct trim trim = { .dictionary = message->dictionary, .is_marking = true };
	OtlpDictionary *tables = message->dictionary;
	int err = open_tables(&trim);

	if (err)
		return err;
	refer_groups(&trim, message);
	refer_tables(&trim);
	if (trim.is_bad)
		return -EBADMSG;
#define COMPACT(table, name, drop) \
	(tables->n_##name = compact(trim.places[table], (void **)tables->name, tables->n_##name, drop, allocator))
	COMPACT(STACKS, stack_table, free_message);
	COMPACT(LOCATIONS, location_table, free_message);
	COMPACT(MAPPINGS, mapping_table, free_message);
	COMPACT(FUNCTIONS, function_table, free_message);
	COMPACT(LINKS, link_table, free_message);
	COMPACT(ATTRIBUTES, attribute_table, free_message);
	COMPACT(STRINGS, string_table, free_string);
#undef COMPACT
	trim.is_marking = false;
	refer_groups(&trim, message);
	refer_tables(&trim);
	return 0;
}
