// SPDX-License-Identifier: Apache-2.0
#include "export/attributes.h"

#include <inttypes.h>
#include <string.h>

#include "base/utf8.h"

#define VALUE_MAX 4096u

struct attributes *attributes_new(void)
{
	struct attributes *attributes = malloc(sizeof(*attributes));

	/* nothing behind the count is read, and zeroing the arrays, 24 KiB, would cost more than a usual Resource */
	if (attributes) {
		attributes->count = 0;
		attributes->error = 0;
	}
	return attributes;
}

static void free_pair(struct attributes *attributes, size_t i)
{
	free(attributes->pairs[i].key);
	if (attributes->values[i].value_case == OTLP_VALUE_STRING)
		free(attributes->values[i].string_value);
}

void attributes_free(struct attributes *attributes)
{
	for (size_t i = 0; attributes && i < attributes->count; i++)
		free_pair(attributes, i);
	free(attributes);
}

ssize_t attributes_find(const struct attributes *attributes, const char *key)
{
	for (size_t i = 0; i < attributes->count; i++)
		if (!strcmp(attributes->pairs[i].key, key))
			return (ssize_t)i;
	return -ENOENT;
}

static OtlpAnyValue *add(struct attributes *attributes, const char *key)
{
	size_t i = attributes->count;
	char *clean;

	if (!key[0] || attributes_find(attributes, key) >= 0)
		return NULL;
	if (i == ATTRIBUTES_MAX) {
		attributes->error = -E2BIG;
		return NULL;
	}
	clean = utf8_dup(key, VALUE_MAX);
	if (!clean) {
		attributes->error = -ENOMEM;
		return NULL;
	}
	otlp_common_init(key_value, &attributes->pairs[i]);
	otlp_common_init(any_value, &attributes->values[i]);
	attributes->pairs[i].key = clean;
	attributes->pairs[i].value = &attributes->values[i];
	attributes->pointers[i] = &attributes->pairs[i];
	attributes->count++;
	return &attributes->values[i];
}

void attributes_string(struct attributes *attributes, const char *key, const char *value)
{
	OtlpAnyValue *any = value && value[0] ? add(attributes, key) : NULL;

	if (!any)
		return;
	any->string_value = utf8_dup(value, VALUE_MAX);
	if (any->string_value)
		any->value_case = OTLP_VALUE_STRING;
	else
		attributes->error = -ENOMEM;
}

void attributes_int(struct attributes *attributes, const char *key, int64_t value)
{
	OtlpAnyValue *any = add(attributes, key);

	if (!any)
		return;
	any->value_case = OTLP_VALUE_INT;
	any->int_value = value;
}

void attributes_remove(struct attributes *attributes, size_t i)
{
	free_pair(attributes, i);
	attributes->count--;
	for (; i < attributes->count; i++) {
		attributes->pairs[i].key = attributes->pairs[i + 1].key;
		attributes->values[i] = attributes->values[i + 1];
	}
}

size_t attributes_rename(struct attributes *attributes, size_t i, const char *key)
{
	char *clean;
	ssize_t old;

	if (!key[0] || !strcmp(attributes->pairs[i].key, key))
		return i;
	clean = utf8_dup(key, VALUE_MAX);
	if (!clean) {
		attributes->error = -ENOMEM;
		return i;
	}
	old = attributes_find(attributes, clean);
	if (old >= 0 && (size_t)old != i) {
		attributes_remove(attributes, (size_t)old);
		i -= (size_t)old < i;
	}
	free(attributes->pairs[i].key);
	attributes->pairs[i].key = clean;
	return i;
}

const char *attributes_text(const struct attributes *attributes, size_t i, char number[static 24])
{
	const OtlpAnyValue *value = &attributes->values[i];

	if (value->value_case == OTLP_VALUE_STRING)
		return value->string_value;
	snprintf(number, 24, "%" PRId64, value->int_value);
	return number;
}
