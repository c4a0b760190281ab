// SPDX-License-Identifier: Apache-2.0
#include "symbol/context.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "base/utf8.h"
#include "base/varint.h"
#include "process/details.h"

/* Numbers of fields, as the messages have them. */
enum {
	PROCESS_CONTEXT_RESOURCE = 1,
	RESOURCE_ATTRIBUTES = 1,
	KEY_VALUE_KEY = 1,
	KEY_VALUE_VALUE = 2,
	ANY_VALUE_STRING = 1,
	ANY_VALUE_BOOL = 2,
	ANY_VALUE_INT = 3,
};

enum wire { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_LEN = 2, WIRE_FIXED32 = 5 };

struct bytes {
	const uint8_t *at;
	size_t left;
};

struct field {
	uint64_t number, value;		/* the value of WIRE_VARINT */
	enum wire wire;
	struct bytes content;		/* of WIRE_LEN */
};

static int read_varint(struct bytes *bytes, uint64_t *ret_value)
{
	const uint8_t *at = bytes->at, *end = at + bytes->left;
	const bool is_whole = varint_take(&at, end, ret_value);

	*bytes = (struct bytes){ at, (size_t)(end - at) };
	return is_whole ? 0 : -EBADMSG;
}

static int skip(struct bytes *bytes, uint64_t size, struct bytes *ret_content)
{
	if (size > bytes->left)
		return -EBADMSG;
	*ret_content = (struct bytes){ bytes->at, (size_t)size };
	bytes->at += size;
	bytes->left -= (size_t)size;
	return 0;
}

/* 1: there is one more, 0: there is none. */
static int next_field(struct bytes *bytes, struct field *ret_field)
{
	uint64_t tag, size = 0;
	int r;

	if (!bytes->left)
		return 0;
	r = read_varint(bytes, &tag);
	if (r < 0)
		return r;
	*ret_field = (struct field){ .number = tag >> 3, .wire = tag & 7 };
	switch (ret_field->wire) {
	case WIRE_VARINT:
		r = read_varint(bytes, &ret_field->value);
		return r < 0 ? r : 1;
	case WIRE_LEN:
		r = read_varint(bytes, &size);
		break;
	case WIRE_FIXED64:
		size = 8;
		break;
	case WIRE_FIXED32:
		size = 4;
		break;
	default:
		return -EBADMSG;
	}
	if (!r)
		r = skip(bytes, size, &ret_field->content);
	return r < 0 ? r : 1;
}

/* Text that ends at a NUL, fit for protobuf. */
static int take_text(const struct bytes *content, char *ret_text, size_t size)
{
	_cleanup_free_ char *text = strndup((const char *)content->at, content->left);

	if (!text)
		return -ENOMEM;
	utf8_copy(ret_text, size, text);
	return 0;
}

/* *ret_text stays empty where the value is no scalar that has one form alone. */
static int take_value(struct bytes value, char ret_text[static CONTEXT_NAME_BYTES])
{
	struct field field;
	int r;

	while ((r = next_field(&value, &field)) > 0) {
		if (field.number == ANY_VALUE_STRING && field.wire == WIRE_LEN)
			r = take_text(&field.content, ret_text, CONTEXT_NAME_BYTES);
		else if (field.number == ANY_VALUE_BOOL && field.wire == WIRE_VARINT)
			snprintf(ret_text, CONTEXT_NAME_BYTES, "%s", field.value ? "true" : "false");
		else if (field.number == ANY_VALUE_INT && field.wire == WIRE_VARINT)
			snprintf(ret_text, CONTEXT_NAME_BYTES, "%" PRId64, (int64_t)field.value);
		if (r < 0)
			break;
	}
	return r;
}

/* -ENOBUFS: it does not fit. */
static int put_encoded(char *text, size_t *used, const char *from)
{
	for (; *from; from++) {
		const unsigned char c = (unsigned char)*from;
		const bool is_plain = isalnum(c) || strchr("-._~/:", c);

		if (*used + 3 >= CONTEXT_TEXT_BYTES)
			return -ENOBUFS;
		if (is_plain)
			text[(*used)++] = (char)c;
		else
			*used += (size_t)snprintf(text + *used, 4, "%%%02X", c);
	}
	return 0;
}

/* One that has no room is left out, whole; a smaller one may follow. */
static void put_pair(struct context_facts *facts, const char *key, const char *value, size_t *count)
{
	const size_t before = strlen(facts->attributes);
	size_t used = before;

	if (*count == DETAILS_MAX_ATTRIBUTES || used + 2 >= CONTEXT_TEXT_BYTES)
		return;
	if (used)
		facts->attributes[used++] = ',';
	if (put_encoded(facts->attributes, &used, key) < 0 || used + 1 >= CONTEXT_TEXT_BYTES) {
		facts->attributes[before] = '\0';
		return;
	}
	facts->attributes[used++] = '=';
	if (put_encoded(facts->attributes, &used, value) < 0) {
		facts->attributes[before] = '\0';
		return;
	}
	facts->attributes[used] = '\0';
	(*count)++;
}

static int take_attribute(struct bytes attribute, struct context_facts *facts, size_t *count)
{
	char key[CONTEXT_NAME_BYTES] = "", value[CONTEXT_NAME_BYTES] = "";
	struct field field;
	int r;

	while ((r = next_field(&attribute, &field)) > 0) {
		if (field.number == KEY_VALUE_KEY && field.wire == WIRE_LEN)
			r = take_text(&field.content, key, sizeof(key));
		else if (field.number == KEY_VALUE_VALUE && field.wire == WIRE_LEN)
			r = take_value(field.content, value);
		if (r < 0)
			return r;
	}
	if (r < 0 || !value[0])
		return r;
	if (!strcmp(key, "service.name") && !facts->service_name[0])
		memcpy(facts->service_name, value, sizeof(value));
	else if (details_may_be_told(key))
		put_pair(facts, key, value, count);
	return 0;
}

static int take_resource(struct bytes resource, struct context_facts *facts, size_t *count)
{
	struct field field;
	int r;

	while ((r = next_field(&resource, &field)) > 0)
		if (field.number == RESOURCE_ATTRIBUTES && field.wire == WIRE_LEN) {
			r = take_attribute(field.content, facts, count);
			if (r < 0)
				break;
		}
	return r;
}

int context_parse(const uint8_t *data, size_t size, struct context_facts *ret_facts)
{
	struct bytes message = { data, size };
	struct field field;
	size_t count = 0;
	int r;

	memset(ret_facts, 0, sizeof(*ret_facts));
	while ((r = next_field(&message, &field)) > 0)
		if (field.number == PROCESS_CONTEXT_RESOURCE && field.wire == WIRE_LEN) {
			r = take_resource(field.content, ret_facts, &count);
			if (r < 0)
				break;
		}
	return r;
}
