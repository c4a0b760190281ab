// SPDX-License-Identifier: Apache-2.0
#include "export/dictionary.h"

#include <limits.h>
#include <string.h>

#include "base/hash.h"
#include "base/utf8.h"
#include "export/entry.h"
#include "export/otlp.h"

static const struct dictionary_entry *table_entries(const struct dictionary_entries *table)
{
	return (const struct dictionary_entry *)(const void *)table->entries.data;
}

static uint64_t entry_hash_of(const void *ctx, uint32_t position)
{
	return table_entries(ctx)[position].hash;
}

static int append(struct dictionary_entries *table, enum dictionary_table number, uint64_t hash, const void *data,
		  size_t size)
{
	struct dictionary_entry entry = { .hash = hash, .size = (uint32_t)size };

	if (table->bytes.size + size + BUFFER_FIELD_MAX > UINT32_MAX || !buffer_reserve(&table->entries, sizeof(entry)) ||
	    buffer_field(&table->bytes, number, size))
		return -ENOBUFS;
	entry.offset = (uint32_t)table->bytes.size;
	return buffer_append(&table->bytes, data, size) || buffer_append(&table->entries, &entry, sizeof(entry)) ? -ENOBUFS : 0;
}

int dictionary_bytes(struct dictionary *dictionary, enum dictionary_table number, const void *data,
		     size_t size)
{
	struct dictionary_entries *table = &dictionary->tables[number];
	uint64_t hash = hash_bytes(data, size);
	struct index_probe probe = index_first(&table->index, hash);
	const uint32_t copies = number == TABLE_FUNCTION && dictionary->repeats_functions && size ? 2 : 1;
	size_t before = table->bytes.size;
	uint32_t i;

	while ((i = index_next(&table->index, &probe)) != INDEX_NONE) {
		/* positions that were taken back may linger in the index */
		if (i < table->count && table_entries(table)[i].size == size &&
		    !memcmp(table->bytes.data + table_entries(table)[i].offset, data, size))
			return (int)i;
	}
	if (table->count >= INT32_MAX - copies || index_reserve(&table->index, entry_hash_of, table))
		return -ENOBUFS;
	for (i = 0; i < copies; i++)
		if (append(table, number, hash, data, size)) {
			table->bytes.size = before;
			table->entries.size = table->count * sizeof(struct dictionary_entry);
			return -ENOBUFS;
		}
	table->count += copies;
	index_insert(&table->index, hash, table->count - 1);
	return (int)table->count - 1;
}

int dictionary_message(struct dictionary *dictionary, enum dictionary_table number,
		       const ProtobufCMessage *message)
{
	uint8_t small[256], *data = small;
	size_t size = protobuf_c_message_get_packed_size(message);

	if (size > sizeof(small)) {
		dictionary->scratch.size = 0;
		data = buffer_reserve(&dictionary->scratch, size);
		if (!data)
			return -ENOBUFS;
	}
	protobuf_c_message_pack(message, data);
	return dictionary_bytes(dictionary, number, data, size);
}

void dictionary_init(struct dictionary *dictionary)
{
	memset(dictionary, 0, sizeof(*dictionary));
	for (int i = 1; i < TABLE_END; i++) {
		buffer_init(&dictionary->tables[i].bytes, POOL_ENCODE);
		buffer_init(&dictionary->tables[i].entries, POOL_ENCODE);
		index_init(&dictionary->tables[i].index, POOL_ENCODE);
	}
	buffer_init(&dictionary->scratch, POOL_ENCODE);
}

void dictionary_free(struct dictionary *dictionary)
{
	for (int i = 1; i < TABLE_END; i++) {
		buffer_free(&dictionary->tables[i].bytes);
		buffer_free(&dictionary->tables[i].entries);
		index_free(&dictionary->tables[i].index);
	}
	buffer_free(&dictionary->scratch);
}

uint64_t dictionary_number(void)
{
	static _Atomic uint64_t last;

	return atomic_fetch_add_explicit(&last, 1, memory_order_relaxed) + 1;
}

/* What was met before may be gone. */
static void forget(struct dictionary *dictionary)
{
	memset(dictionary->frame_types, 0, sizeof(dictionary->frame_types));
	dictionary->generation = dictionary_number();
}

int dictionary_reset(struct dictionary *dictionary)
{
	forget(dictionary);
	for (enum dictionary_table i = 1; i < TABLE_END; i++) {
		struct dictionary_entries *table = &dictionary->tables[i];

		table->bytes.size = 0;
		table->entries.size = 0;
		table->count = 0;
		index_clear(&table->index);
		/* the zero value of every message, and the empty string */
		if (dictionary_bytes(dictionary, i, "", 0) < 0)
			return -ENOBUFS;
	}
	return 0;
}

size_t dictionary_size(const struct dictionary *dictionary)
{
	size_t size = 0;

	for (int i = 1; i < TABLE_END; i++)
		size += dictionary->tables[i].bytes.size;
	return size;
}

void dictionary_mark(const struct dictionary *dictionary, struct dictionary_mark *ret_mark)
{
	for (int i = 1; i < TABLE_END; i++) {
		ret_mark->bytes[i] = dictionary->tables[i].bytes.size;
		ret_mark->counts[i] = dictionary->tables[i].count;
	}
}

void dictionary_take_back(struct dictionary *dictionary, const struct dictionary_mark *mark)
{
	for (int i = 1; i < TABLE_END; i++) {
		struct dictionary_entries *table = &dictionary->tables[i];

		table->bytes.size = mark->bytes[i];
		table->count = mark->counts[i];
		table->entries.size = mark->counts[i] * sizeof(struct dictionary_entry);
	}
	forget(dictionary);
}

void dictionary_write(const struct dictionary *dictionary, uint8_t *at)
{
	for (int i = 1; i < TABLE_END; i++) {
		const struct buffer *bytes = &dictionary->tables[i].bytes;

		memcpy(at, bytes->data, bytes->size);
		at += bytes->size;
	}
}

/* Length of printable ASCII, which needs no cleaning; 0: anything else. */
static size_t plain_length(const char *text)
{
	size_t length = 0;

	while (text[length] >= 0x20 && text[length] < 0x7f)
		length++;
	return text[length] || length >= DICTIONARY_STRING_MAX ? 0 : length;
}

int dictionary_string(struct dictionary *dictionary, const char *text)
{
	char clean[DICTIONARY_STRING_MAX];
	size_t length;

	if (!text || !text[0])
		return 0;
	length = plain_length(text);
	if (length)
		return dictionary_bytes(dictionary, TABLE_STRING, text, length);
	return dictionary_bytes(dictionary, TABLE_STRING, clean,
			    utf8_copy(clean, sizeof(clean), text));
}

/* Most attributes have one of a few keys, which are constants. */
static int key_intern(struct dictionary *dictionary, const char *key)
{
	const struct dictionary_entries *strings = &dictionary->tables[TABLE_STRING];
	struct dictionary_key *slot = &dictionary->keys[(uintptr_t)key / 8 % DICTIONARY_KEYS];
	const struct dictionary_entry *entry;

	if (!key)
		return 0;
	if (slot->text == key && slot->generation == dictionary->generation) {
		entry = &table_entries(strings)[slot->index];
		if (!strncmp((const char *)strings->bytes.data + entry->offset, key, entry->size) &&
		    !key[entry->size])
			return slot->index;
	}
	*slot = (struct dictionary_key){ .text = key, .generation = dictionary->generation,
					 .index = dictionary_string(dictionary, key) };
	if (slot->index < 0)
		slot->text = NULL;
	return slot->index;
}

/* @text: the value's bytes, where it has any. */
static int attribute_intern(struct dictionary *dictionary, const char *key, OtlpAnyValue *value, int unit, size_t text)
{
	const size_t room = entry_attribute_room(text);
	uint8_t small[256], *data = small;
	OtlpAttribute attribute;
	int key_index = key_intern(dictionary, key);

	if (key_index < 0)
		return key_index;
	otlp_init(key_value_and_unit, &attribute);
	attribute.key_strindex = key_index;
	attribute.value = value;
	attribute.unit_strindex = unit;
	if (room > sizeof(small)) {
		dictionary->scratch.size = 0;
		data = buffer_reserve(&dictionary->scratch, room);
		if (!data)
			return -ENOBUFS;
	}
	return dictionary_bytes(dictionary, TABLE_ATTRIBUTE, data, entry_attribute(&attribute, data));
}

int dictionary_attribute_string(struct dictionary *dictionary, const char *key, const char *value)
{
	char clean[DICTIONARY_STRING_MAX];
	OtlpAnyValue any;

	otlp_common_init(any_value, &any);
	any.value_case = OTLP_VALUE_STRING;
	any.string_value = clean;
	return attribute_intern(dictionary, key, &any, 0, utf8_copy(clean, sizeof(clean), value));
}

/* Fields of messages that the schema here does without, lest reading others' be recursive. */
enum { ATTRIBUTE_VALUE = 2, ANY_STRING = 1, ANY_ARRAY = 5, ARRAY_VALUES = 1 };

static int put_items(struct buffer *array, const char *const *values, size_t count)
{
	char clean[DICTIONARY_STRING_MAX];

	for (size_t i = 0; i < count; i++) {
		const size_t length = utf8_copy(clean, sizeof(clean), values[i]);

		if (buffer_field(array, ARRAY_VALUES, buffer_field_size(length)) ||
		    buffer_field(array, ANY_STRING, length) || buffer_append(array, clean, length))
			return -E2BIG;
	}
	return 0;
}

static int put_array(struct buffer *out, int key, const struct buffer *array)
{
	OtlpAttribute attribute;
	size_t size;

	otlp_init(key_value_and_unit, &attribute);
	attribute.key_strindex = key;
	size = protobuf_c_message_get_packed_size(&attribute.base);
	if (!buffer_reserve(out, size))
		return -E2BIG;
	out->size += protobuf_c_message_pack(&attribute.base, out->data + out->size);
	return buffer_field(out, ATTRIBUTE_VALUE, buffer_field_size(array->size)) ||
	       buffer_field(out, ANY_ARRAY, array->size) || buffer_append(out, array->data, array->size) ? -E2BIG : 0;
}

int dictionary_attribute_strings(struct dictionary *dictionary, const char *key, const char *const *values,
				 size_t count)
{
	_cleanup_(buffer_free) struct buffer array = { .pool = POOL_ENCODE }, out = array;
	int index = dictionary_string(dictionary, key);

	if (index < 0)
		return index;
	if (put_items(&array, values, count) || put_array(&out, index, &array))
		return -E2BIG;
	return dictionary_bytes(dictionary, TABLE_ATTRIBUTE, out.data, out.size);
}

static int number_intern(struct dictionary *dictionary, const char *key, int64_t value, int unit)
{
	OtlpAnyValue any;

	otlp_common_init(any_value, &any);
	any.value_case = OTLP_VALUE_INT;
	any.int_value = value;
	return attribute_intern(dictionary, key, &any, unit, 0);
}

int dictionary_attribute_int(struct dictionary *dictionary, const char *key, int64_t value)
{
	return number_intern(dictionary, key, value, 0);
}

int dictionary_attribute_measure(struct dictionary *dictionary, const char *key, int64_t value, const char *unit)
{
	int index = dictionary_string(dictionary, unit);

	return index < 0 ? index : number_intern(dictionary, key, value, index);
}

int dictionary_attribute_bool(struct dictionary *dictionary, const char *key, bool value)
{
	OtlpAnyValue any;

	otlp_common_init(any_value, &any);
	any.value_case = OTLP_VALUE_BOOL;
	any.bool_value = value;
	return attribute_intern(dictionary, key, &any, 0, 0);
}
