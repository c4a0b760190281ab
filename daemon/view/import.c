// SPDX-License-Identifier: Apache-2.0
#include "view/import.h"
#include "view/pprof_names.h"

#include <string.h>

#include "base/hash.h"
#include "base/utf8.h"
#include "export/otlp.h"
#include "export/record.h"
#include "stacktap/version.h"

enum { RESOURCE_ATTRIBUTES = 5, NAME_BYTES = 4096, PROFILE_ID = 16 };

/* Bytes that are kept once. */
struct kept_row {
	uint64_t hash;
	uint32_t offset, size;
};

struct packed_event {
	int32_t type, unit, period_type, period_unit;
	int64_t period;
};

static const struct kept_row *row_at(const struct rows *rows, uint32_t i)
{
	return (const struct kept_row *)(const void *)rows->data.data + i;
}

static uint64_t kept_hash_of(const void *ctx, uint32_t position)
{
	return ((const struct kept_row *)ctx + position)->hash;
}

static int keep(struct import *import, struct rows *rows, const void *data, size_t size)
{
	struct kept_row row = { .hash = hash_bytes(data, size), .size = (uint32_t)size };
	struct index_probe probe = index_first(&rows->index, row.hash);
	uint32_t i;

	while ((i = index_next(&rows->index, &probe)) != INDEX_NONE)
		if (row_at(rows, i)->size == size &&
		    !memcmp(import->kept.data + row_at(rows, i)->offset, data, size))
			return (int)i;
	if (import->kept.size + size > UINT32_MAX || rows->count >= INT32_MAX)
		return -E2BIG;
	row.offset = (uint32_t)import->kept.size;
	if ((size && buffer_append(&import->kept, data, size)) ||
	    rows_add(rows, row.hash, kept_hash_of, &row, sizeof(row), &i))
		return -E2BIG;
	return (int)i;
}

static int short_of(int index)
{
	return index < 0 ? -E2BIG : index;
}

int import_init(struct import *import)
{
	memset(import, 0, sizeof(*import));
	dictionary_init(&import->dictionary);
	rows_init(&import->resources);
	rows_init(&import->events);
	rows_init(&import->sets);
	buffer_init(&import->kept, POOL_REPORT);
	buffer_init(&import->entries, POOL_REPORT);
	buffer_init(&import->out, POOL_REPORT);
	/* the empty set is number 0 */
	return dictionary_reset(&import->dictionary) || keep(import, &import->sets, "", 0) ? -E2BIG : 0;
}

void import_done(struct import *import)
{
	dictionary_free(&import->dictionary);
	rows_free(&import->resources);
	rows_free(&import->events);
	rows_free(&import->sets);
	buffer_free(&import->kept);
	buffer_free(&import->entries);
	buffer_free(&import->out);
}

struct resource_writer {
	OtlpResource message;
	OtlpKeyValue pairs[RESOURCE_ATTRIBUTES], *pointers[RESOURCE_ATTRIBUTES];
	OtlpAnyValue values[RESOURCE_ATTRIBUTES];
	char texts[RESOURCE_ATTRIBUTES][NAME_BYTES];
};

static OtlpAnyValue *add_pair(struct resource_writer *writer, const char *key)
{
	size_t i = writer->message.n_attributes++;

	otlp_common_init(key_value, &writer->pairs[i]);
	otlp_common_init(any_value, &writer->values[i]);
	writer->pairs[i].key = (char *)(uintptr_t)key;
	writer->pairs[i].value = &writer->values[i];
	writer->pointers[i] = &writer->pairs[i];
	return &writer->values[i];
}

static void add_text(struct resource_writer *writer, const char *key, const char *text)
{
	size_t i = writer->message.n_attributes;
	OtlpAnyValue *value;

	if (!text || !text[0])
		return;
	utf8_copy(writer->texts[i], NAME_BYTES, text);
	value = add_pair(writer, key);
	value->value_case = OTLP_VALUE_STRING;
	value->string_value = writer->texts[i];
}

int import_process(struct import *import, const struct import_process *process)
{
	_cleanup_free_ struct resource_writer *writer = calloc(1, sizeof(*writer));
	_cleanup_free_ uint8_t *bytes = NULL;
	OtlpAnyValue *value;
	size_t size;

	if (!writer)
		return -E2BIG;
	opentelemetry__proto__resource__v1__resource__init(&writer->message);
	writer->message.attributes = writer->pointers;
	if (process->pid) {
		value = add_pair(writer, "process.pid");
		value->value_case = OTLP_VALUE_INT;
		value->int_value = process->pid;
	}
	add_text(writer, "process.executable.name", process->name);
	add_text(writer, "container.id", process->container);
	add_text(writer, "service.name", process->service);
	add_text(writer, "process.linux.cgroup", process->cgroup);
	size = protobuf_c_message_get_packed_size(&writer->message.base);
	bytes = malloc(size + 1);
	if (!bytes)
		return -E2BIG;
	protobuf_c_message_pack(&writer->message.base, bytes);
	return keep(import, &import->resources, bytes, size);
}

int import_event(struct import *import, const struct import_event *event)
{
	struct packed_event packed;

	memset(&packed, 0, sizeof(packed));
	packed.type = dictionary_string(&import->dictionary, event->type);
	packed.unit = dictionary_string(&import->dictionary, event->unit);
	packed.period_type = dictionary_string(&import->dictionary, event->period_type);
	packed.period_unit = dictionary_string(&import->dictionary, event->period_unit);
	packed.period = event->period;
	if (packed.type < 0 || packed.unit < 0 || packed.period_type < 0 || packed.period_unit < 0)
		return -E2BIG;
	return keep(import, &import->events, &packed, sizeof(packed));
}

int import_function(struct import *import, const char *name, const char *system_name,
		    const char *file, int64_t start_line)
{
	OtlpFunction message;

	otlp_init(function, &message);
	message.name_strindex = dictionary_string(&import->dictionary, name);
	message.system_name_strindex = dictionary_string(&import->dictionary, system_name);
	message.filename_strindex = dictionary_string(&import->dictionary, file);
	message.start_line = max_of(start_line, (int64_t)0);
	if (message.name_strindex < 0 || message.system_name_strindex < 0 ||
	    message.filename_strindex < 0)
		return -E2BIG;
	return short_of(dictionary_message(&import->dictionary, TABLE_FUNCTION, &message.base));
}

int import_set(struct import *import, const int32_t *attributes, size_t count)
{
	return keep(import, &import->sets, attributes, count * sizeof(*attributes));
}

int import_add(struct import *import, const struct import_sample *sample)
{
	return buffer_append(&import->entries, sample, sizeof(*sample)) ? -E2BIG : 0;
}

static int order(const void *a, const void *b)
{
	const struct import_sample *left = a, *right = b;

	if (left->resource != right->resource)
		return left->resource < right->resource ? -1 : 1;
	if (left->event != right->event)
		return left->event < right->event ? -1 : 1;
	if (left->stack != right->stack)
		return left->stack < right->stack ? -1 : 1;
	if (left->set != right->set)
		return left->set < right->set ? -1 : 1;
	return (left->time > right->time) - (left->time < right->time);
}

static size_t entry_count(const struct import *import)
{
	return import->entries.size / sizeof(struct import_sample);
}

static const struct import_sample *entry_at(const struct import *import, size_t i)
{
	return (const struct import_sample *)(const void *)import->entries.data + i;
}

static int put_message(struct buffer *out, unsigned int field, const ProtobufCMessage *message)
{
	size_t size = protobuf_c_message_get_packed_size(message);

	if (buffer_field(out, field, size) || !buffer_reserve(out, size))
		return -E2BIG;
	out->size += protobuf_c_message_pack(message, out->data + out->size);
	return 0;
}

static bool is_one_sample(const struct import_sample *a, const struct import_sample *b)
{
	return a->stack == b->stack && a->set == b->set && !a->time == !b->time;
}

/* Entries @first to @end, which are of one stack and set: one Sample. Those without times are added up. */
static int put_sample(struct import *import, size_t first, size_t end, struct buffer *scratch,
		      struct buffer *out)
{
	const struct import_sample *entry = entry_at(import, first);
	const struct kept_row *set = row_at(&import->sets, entry->set);
	bool has_times = entry->time;
	OtlpSample message;
	int64_t sum = 0;

	scratch->size = 0;
	if (!buffer_reserve(scratch, (end - first) * 2 * sizeof(uint64_t)))
		return -E2BIG;
	otlp_init(sample, &message);
	message.stack_index = (int32_t)entry->stack;
	message.attribute_indices = (int32_t *)(void *)(import->kept.data + set->offset);
	message.n_attribute_indices = set->size / sizeof(int32_t);
	message.values = (int64_t *)(void *)scratch->data;
	message.timestamps_unix_nano = (uint64_t *)(void *)scratch->data + (end - first);
	for (size_t i = first; i < end; i++) {
		int64_t value = entry_at(import, i)->value;

		if (has_times) {
			message.values[message.n_values++] = value;
			message.timestamps_unix_nano[message.n_timestamps_unix_nano++] =
				entry_at(import, i)->time;
		} else if (__builtin_add_overflow(sum, value, &sum)) {
			sum = INT64_MAX;
		}
	}
	if (!has_times) {
		message.values[0] = sum;
		message.n_values = 1;
	}
	return put_message(out, OTLP_PROFILE_SAMPLES, &message.base);
}

/* The same for the same input, so that what is converted twice is not counted twice. */
static void make_id(struct import *import, const struct buffer *samples, uint8_t ret_id[static PROFILE_ID])
{
	uint8_t digest[SHA256_BYTES];

	import->ordinal++;
	sha256_of((const struct sha256_part[]){
		{ import->content, sizeof(import->content) },
		{ &import->ordinal, sizeof(import->ordinal) },
		{ samples->data, samples->size },
	}, 3, digest);
	memcpy(ret_id, digest, PROFILE_ID);
}

static int put_profile(struct import *import, size_t first, size_t end, struct buffer *scratch,
		       struct buffer *out)
{
	uint8_t id[PROFILE_ID];
	struct packed_event event;
	OtlpProfile message;
	OtlpValueType type, period_type;
	size_t begin = first, size;
	int err = 0;

	memcpy(&event, import->kept.data + row_at(&import->events, entry_at(import, first)->event)->offset,
	       sizeof(event));
	out->size = 0;
	for (size_t i = first; i < end && !err; i++) {
		if (i + 1 < end && is_one_sample(entry_at(import, i), entry_at(import, i + 1)))
			continue;
		err = put_sample(import, begin, i + 1, scratch, out);
		begin = i + 1;
	}
	if (err)
		return err;
	otlp_init(profile, &message);
	otlp_init(value_type, &type);
	otlp_init(value_type, &period_type);
	type.type_strindex = event.type;
	type.unit_strindex = event.unit;
	message.sample_type = &type;
	period_type.type_strindex = event.period_type;
	period_type.unit_strindex = event.period_unit;
	/* receivers want it, even where it is empty */
	message.period_type = &period_type;
	message.period = event.period;
	message.time_unix_nano = import->start;
	message.duration_nano = import->duration;
	message.attribute_indices = import->attributes;
	message.n_attribute_indices = import->attribute_count;
	make_id(import, out, id);
	message.profile_id.data = id;
	message.profile_id.len = sizeof(id);
	size = protobuf_c_message_get_packed_size(&message.base);
	if (!buffer_reserve(out, size))
		return -E2BIG;
	out->size += protobuf_c_message_pack(&message.base, out->data + out->size);
	return 0;
}

/* Entries @first to @end are of one resource. */
static int put_resource(struct import *import, size_t first, size_t end, struct buffer *scratch,
			struct buffer *profile, struct buffer *scope)
{
	const struct kept_row *resource = row_at(&import->resources, entry_at(import, first)->resource);
	size_t begin = first, size;
	OtlpScope name;
	OtlpAnyValue value;
	OtlpKeyValue pair, *pairs = &pair;
	int err;

	scope->size = 0;
	otlp_common_init(instrumentation_scope, &name);
	name.name = (char *)(uintptr_t)"stacktap convert";
	name.version = (char *)(uintptr_t)STACKTAP_VERSION;
	otlp_common_init(any_value, &value);
	value.value_case = OTLP_VALUE_STRING;
	value.string_value = import->default_type;
	otlp_common_init(key_value, &pair);
	pair.key = (char *)(uintptr_t)PPROF_DEFAULT_TYPE;
	pair.value = &value;
	name.attributes = &pairs;
	name.n_attributes = !!*import->default_type;
	err = put_message(scope, OTLP_SCOPE_PROFILES_SCOPE, &name.base);
	for (size_t i = first; i < end && !err; i++) {
		if (i + 1 < end && entry_at(import, i)->event == entry_at(import, i + 1)->event)
			continue;
		err = put_profile(import, begin, i + 1, scratch, profile);
		if (!err && (buffer_field(scope, OTLP_SCOPE_PROFILES_PROFILES, profile->size) ||
			     buffer_append(scope, profile->data, profile->size)))
			err = -E2BIG;
		begin = i + 1;
	}
	if (err)
		return err;
	size = buffer_field_size(resource->size) + buffer_field_size(scope->size);
	if (buffer_field(&import->out, OTLP_DATA_RESOURCE_PROFILES, size) ||
	    buffer_field(&import->out, OTLP_RESOURCE_PROFILES_RESOURCE, resource->size) ||
	    buffer_append(&import->out, import->kept.data + resource->offset, resource->size) ||
	    buffer_field(&import->out, OTLP_RESOURCE_PROFILES_SCOPE_PROFILES, scope->size) ||
	    buffer_append(&import->out, scope->data, scope->size))
		return -E2BIG;
	return 0;
}

static void find_span(struct import *import)
{
	uint64_t first = UINT64_MAX, last = 0;

	for (size_t i = 0; i < entry_count(import); i++) {
		uint64_t time = entry_at(import, i)->time;

		if (!time)
			continue;
		first = min_of(first, time);
		last = max_of(last, time);
	}
	if (import->start || !last)
		return;
	import->start = first;
	import->duration = last - first + 1;
}

/* All indices are given, so the dictionary stays what it is. */
static int digest(struct import *import)
{
	const size_t size = dictionary_size(&import->dictionary);
	_cleanup_free_ uint8_t *bytes = malloc(size);

	if (!bytes)
		return -E2BIG;
	dictionary_write(&import->dictionary, bytes);
	sha256_of((const struct sha256_part[]){
		{ bytes, size }, { import->kept.data, import->kept.size },
		{ &import->start, sizeof(import->start) },
	}, 3, import->content);
	return 0;
}

int import_finish(struct import *import)
{
	struct buffer scratch = { .pool = POOL_REPORT }, profile = scratch, scope = scratch;
	size_t begin = 0, size;
	uint8_t *at;
	int err = entry_count(import) ? 0 : -ENODATA;

	if (err)
		return err;
	find_span(import);
	qsort(import->entries.data, entry_count(import), sizeof(struct import_sample), order);
	err = digest(import);
	for (size_t i = 0; i < entry_count(import) && !err; i++) {
		if (i + 1 < entry_count(import) &&
		    entry_at(import, i)->resource == entry_at(import, i + 1)->resource)
			continue;
		err = put_resource(import, begin, i + 1, &scratch, &profile, &scope);
		begin = i + 1;
	}
	buffer_free(&scratch);
	buffer_free(&profile);
	buffer_free(&scope);
	size = dictionary_size(&import->dictionary);
	if (err || buffer_field(&import->out, OTLP_DATA_DICTIONARY, size))
		return -E2BIG;
	at = buffer_reserve(&import->out, size);
	if (!at)
		return -E2BIG;
	dictionary_write(&import->dictionary, at);
	import->out.size += size;
	return import->out.size > RECORD_MESSAGE_MAX ? -EMSGSIZE : 0;
}
