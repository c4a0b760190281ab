// SPDX-License-Identifier: Apache-2.0
/*
 * Straight from the wire format, by protobuf-c's descriptors: a tree of a payload's messages would take many times
 * its size. A message that came in several fields of its parent is one, as parsers of protobuf have it.
 */
#include "export/otlp_json.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <protobuf-c/protobuf-c.h>
#include <stdarg.h>
#include <string.h>

#include "base/varint.h"
#include "export/otlp.h"

enum { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_LENGTH = 2, WIRE_32 = 5 };
enum { NUMBER_TEXT_MAX = 40 };

struct bytes {
	const uint8_t *at, *end;
};

/* A message in pieces. */
struct pieces {
	const struct bytes *of;
	size_t count;
};

/* One field as it is on the wire. */
struct wire {
	uint32_t number;
	unsigned int type;
	uint64_t value;			/* but for WIRE_LENGTH */
	struct bytes bytes;
};

static int read_varint(struct bytes *bytes, uint64_t *ret_value)
{
	return varint_take(&bytes->at, bytes->end, ret_value) ? 0 : -EBADMSG;
}

static int read_fixed(struct bytes *bytes, size_t size, uint64_t *ret_value)
{
	uint64_t value = 0;

	if ((size_t)(bytes->end - bytes->at) < size)
		return -EBADMSG;
	for (size_t i = size; i--;)
		value = value << 8 | bytes->at[i];
	bytes->at += size;
	*ret_value = value;
	return 0;
}

static int read_value(struct bytes *bytes, unsigned int type, uint64_t *ret_value)
{
	switch (type) {
	case WIRE_VARINT:
		return read_varint(bytes, ret_value);
	case WIRE_64:
		return read_fixed(bytes, 8, ret_value);
	case WIRE_32:
		return read_fixed(bytes, 4, ret_value);
	default:
		return -EBADMSG;
	}
}

/* 1: a field, 0: there is none any more. */
static int next_field(struct bytes *bytes, struct wire *ret_field)
{
	uint64_t tag, length;
	int err;

	if (bytes->at == bytes->end)
		return 0;
	err = read_varint(bytes, &tag);
	if (err)
		return err;
	*ret_field = (struct wire){ .number = (uint32_t)(tag >> 3), .type = (unsigned int)(tag & 7) };
	if (ret_field->type != WIRE_LENGTH)
		return read_value(bytes, ret_field->type, &ret_field->value) ?: 1;
	err = read_varint(bytes, &length);
	if (err || length > (uint64_t)(bytes->end - bytes->at))
		return -EBADMSG;
	ret_field->bytes = (struct bytes){ bytes->at, bytes->at + length };
	bytes->at += length;
	return 1;
}

static int put(struct buffer *buffer, const char *text)
{
	return buffer_append(buffer, text, strlen(text));
}

static int put_number(struct buffer *buffer, const char *format, ...) _printf_(2, 3);

static int put_number(struct buffer *buffer, const char *format, ...)
{
	char text[NUMBER_TEXT_MAX];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	return put(buffer, text);
}

static int put_string(struct buffer *buffer, struct bytes text)
{
	const uint8_t *plain = text.at;
	int err = put(buffer, "\"");

	for (; !err && text.at < text.end; text.at++) {
		if (*text.at >= 0x20 && *text.at != '"' && *text.at != '\\')
			continue;
		err = buffer_append(buffer, plain, (size_t)(text.at - plain)) ?:
		      put_number(buffer, "\\u%04x", *text.at);
		plain = text.at + 1;
	}
	return err ?: buffer_append(buffer, plain, (size_t)(text.end - plain)) ?: put(buffer, "\"");
}

/* Ids: what else has bytes is none of ours. */
static int put_hex(struct buffer *buffer, struct bytes bytes)
{
	int err = put(buffer, "\"");

	for (; !err && bytes.at < bytes.end; bytes.at++)
		err = put_number(buffer, "%02x", *bytes.at);
	return err ?: put(buffer, "\"");
}

/* snake_case in lowerCamelCase */
static int put_name(struct buffer *buffer, const char *name)
{
	int err = put(buffer, "\"");

	for (; !err && *name; name++) {
		char c = *name;

		if (c == '_')
			c = (char)toupper((unsigned char)*++name);
		err = buffer_append(buffer, &c, 1);
	}
	return err ?: put(buffer, "\":");
}

static int put_double(struct buffer *buffer, uint64_t bits)
{
	double value;

	memcpy(&value, &bits, sizeof(value));
	if (isnan(value))
		return put(buffer, "\"NaN\"");
	if (isinf(value))
		return put(buffer, value < 0 ? "\"-Infinity\"" : "\"Infinity\"");
	return put_number(buffer, "%.17g", value);
}

static int put_scalar(struct buffer *buffer, ProtobufCType type, uint64_t value)
{
	switch (type) {
	case PROTOBUF_C_TYPE_INT64:
	case PROTOBUF_C_TYPE_SFIXED64:
		return put_number(buffer, "\"%" PRId64 "\"", (int64_t)value);
	case PROTOBUF_C_TYPE_UINT64:
	case PROTOBUF_C_TYPE_FIXED64:
		return put_number(buffer, "\"%" PRIu64 "\"", value);
	case PROTOBUF_C_TYPE_INT32:
	case PROTOBUF_C_TYPE_SFIXED32:
	case PROTOBUF_C_TYPE_ENUM:
		return put_number(buffer, "%" PRId32, (int32_t)value);
	case PROTOBUF_C_TYPE_UINT32:
	case PROTOBUF_C_TYPE_FIXED32:
		return put_number(buffer, "%" PRIu32, (uint32_t)value);
	case PROTOBUF_C_TYPE_BOOL:
		return put(buffer, value ? "true" : "false");
	case PROTOBUF_C_TYPE_DOUBLE:
		return put_double(buffer, value);
	default:
		/* OTLP's profiles have neither sint nor float */
		return -EBADMSG;
	}
}

static unsigned int wire_type(ProtobufCType type)
{
	switch (type) {
	case PROTOBUF_C_TYPE_SFIXED64:
	case PROTOBUF_C_TYPE_FIXED64:
	case PROTOBUF_C_TYPE_DOUBLE:
		return WIRE_64;
	case PROTOBUF_C_TYPE_SFIXED32:
	case PROTOBUF_C_TYPE_FIXED32:
	case PROTOBUF_C_TYPE_FLOAT:
		return WIRE_32;
	case PROTOBUF_C_TYPE_STRING:
	case PROTOBUF_C_TYPE_BYTES:
	case PROTOBUF_C_TYPE_MESSAGE:
		return WIRE_LENGTH;
	default:
		return WIRE_VARINT;
	}
}

static int put_message(struct buffer *buffer, const ProtobufCMessageDescriptor *descriptor, struct pieces pieces);

/* A value by itself: what is repeated, or the last one of what is not. */
static int put_value(struct buffer *buffer, const ProtobufCFieldDescriptor *field, const struct wire *wire)
{
	switch (field->type) {
	case PROTOBUF_C_TYPE_STRING:
		return put_string(buffer, wire->bytes);
	case PROTOBUF_C_TYPE_BYTES:
		return put_hex(buffer, wire->bytes);
	case PROTOBUF_C_TYPE_MESSAGE:
		return put_message(buffer, field->descriptor, (struct pieces){ &wire->bytes, 1 });
	default:
		return put_scalar(buffer, field->type, wire->value);
	}
}

/* Values one behind the other, without tags. */
static int put_packed(struct buffer *buffer, const ProtobufCFieldDescriptor *field, struct bytes bytes, bool *is_first)
{
	const unsigned int type = wire_type(field->type);
	uint64_t value;
	int err = 0;

	while (!err && bytes.at < bytes.end) {
		err = read_value(&bytes, type, &value) ?: put(buffer, *is_first ? "" : ",") ?:
		      put_scalar(buffer, field->type, value);
		*is_first = false;
	}
	return err;
}

static int put_repeated(struct buffer *buffer, const ProtobufCFieldDescriptor *field, struct pieces pieces)
{
	const unsigned int type = wire_type(field->type);
	bool is_first = true;
	int ret, err = put(buffer, "[");

	for (size_t i = 0; !err && i < pieces.count; i++) {
		struct bytes bytes = pieces.of[i];
		struct wire wire;

		while (!err && (ret = next_field(&bytes, &wire))) {
			if (ret < 0)
				return ret;
			if (wire.number != field->id)
				continue;
			if (wire.type == WIRE_LENGTH && type != WIRE_LENGTH) {
				err = put_packed(buffer, field, wire.bytes, &is_first);
				continue;
			}
			if (wire.type != type)
				return -EBADMSG;
			err = put(buffer, is_first ? "" : ",") ?: put_value(buffer, field, &wire);
			is_first = false;
		}
	}
	return err ?: put(buffer, "]");
}

/* How often a field is there, with the last one of it. */
static int find(const ProtobufCFieldDescriptor *field, struct pieces pieces, size_t *ret_count, struct wire *ret_last)
{
	struct wire wire;
	int ret;

	*ret_count = 0;
	for (size_t i = 0; i < pieces.count; i++) {
		struct bytes bytes = pieces.of[i];

		while ((ret = next_field(&bytes, &wire))) {
			if (ret < 0)
				return ret;
			if (wire.number != field->id)
				continue;
			++*ret_count;
			*ret_last = wire;
		}
	}
	return 0;
}

/* The message that all of them are together. */
static int put_merged(struct buffer *buffer, const ProtobufCFieldDescriptor *field, struct pieces pieces, size_t count)
{
	struct bytes *parts = calloc(count, sizeof(*parts));
	size_t found = 0;
	struct wire wire;
	int err;

	if (!parts)
		return -ENOMEM;
	for (size_t i = 0; i < pieces.count; i++) {
		struct bytes bytes = pieces.of[i];

		while (found < count && next_field(&bytes, &wire) == 1)
			if (wire.number == field->id)
				parts[found++] = wire.bytes;
	}
	err = put_message(buffer, field->descriptor, (struct pieces){ parts, found });
	free(parts);
	return err;
}

static int put_field(struct buffer *buffer, const ProtobufCFieldDescriptor *field, struct pieces pieces, bool *is_first)
{
	struct wire last = { 0 };
	size_t count;
	int err = find(field, pieces, &count, &last);

	if (err || !count)
		return err;
	err = put(buffer, *is_first ? "" : ",") ?: put_name(buffer, field->name);
	*is_first = false;
	if (err)
		return err;
	if (field->label == PROTOBUF_C_LABEL_REPEATED)
		return put_repeated(buffer, field, pieces);
	if (last.type != wire_type(field->type))
		return -EBADMSG;
	if (field->type == PROTOBUF_C_TYPE_MESSAGE && count > 1)
		return put_merged(buffer, field, pieces, count);
	return put_value(buffer, field, &last);
}

static int put_message(struct buffer *buffer, const ProtobufCMessageDescriptor *descriptor, struct pieces pieces)
{
	bool is_first = true;
	int err = put(buffer, "{");

	for (unsigned int i = 0; !err && i < descriptor->n_fields; i++)
		err = put_field(buffer, &descriptor->fields[i], pieces, &is_first);
	return err ?: put(buffer, "}");
}

int otlp_json_append(struct buffer *buffer, const ProtobufCMessageDescriptor *of, const uint8_t *data, size_t size)
{
	const struct bytes bytes = { data, data + size };

	return put_message(buffer, of, (struct pieces){ &bytes, 1 });
}
