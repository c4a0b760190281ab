// SPDX-License-Identifier: Apache-2.0
/* What Profiles and Samples have as attributes and pprof has fields for. */
#include <string.h>

#include "base/varint.h"
#include "view/pprof_names.h"
#include "view/reader_message.h"

/* Fields of messages that the schema here does without, lest reading others' be recursive. */
enum { ANY_STRING = 1, ANY_ARRAY = 5, ARRAY_VALUES = 1, LEN = 2 };

enum { WORK_BYTES = 16 };	/* of a text that cost as much as a frame */

/* What a field of bytes has at *@at, which then is behind it; false: this is none. */
static bool take_bytes(const uint8_t **at, const uint8_t *end, unsigned int field, const uint8_t **ret_data,
		       size_t *ret_size)
{
	uint64_t tag, size;

	if (!varint_take(at, end, &tag) || tag != (field << 3 | LEN) || !varint_take(at, end, &size) ||
	    size > (size_t)(end - *at))
		return false;
	*ret_data = *at;
	*ret_size = (size_t)size;
	*at += size;
	return true;
}

/* Any number of Profiles can refer to one array, or one long text. */
static int spend(struct reader *reader, size_t work)
{
	if (reader->work_left < work)
		return -EBADMSG;
	reader->work_left -= work;
	return 0;
}

static bool has_all(const struct reader *reader)
{
	return reader->comments.size / sizeof(const char *) == PPROF_COMMENTS_MAX;
}

static int add_comment(struct reader *reader, const uint8_t *data, size_t size, struct view_remarks *remarks)
{
	_cleanup_free_ char *copy = NULL;
	const char *text;

	/* more than is kept of it, so that it is cut where it would be */
	size = min_of(size, 2 * (size_t)TEXTS_BYTES);
	if (has_all(reader) || spend(reader, size / WORK_BYTES)) {
		remarks->has_more = true;
		return 0;
	}
	copy = strndup((const char *)data, size);
	text = copy ? texts_intern(reader->texts, copy) : NULL;
	return text && !buffer_append(&reader->comments, &text, sizeof(text)) ? 0 : -E2BIG;
}

/* Of an array the strings. What a message has beyond the schema is kept as it came, its length before it. */
static int add_comments(struct reader *reader, const OtlpAnyValue *value, struct view_remarks *remarks)
{
	int err = 0;

	for (size_t i = 0; i < value->base.n_unknown_fields && !err; i++) {
		const ProtobufCMessageUnknownField *field = &value->base.unknown_fields[i];
		const uint8_t *at = field->data, *end = at + field->len, *item, *text;
		size_t item_size, text_size;
		uint64_t size;

		if (field->tag != ANY_ARRAY || field->wire_type != PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED ||
		    !varint_take(&at, end, &size))
			continue;
		while (!err && !remarks->has_more && take_bytes(&at, end, ARRAY_VALUES, &item, &item_size)) {
			err = spend(reader, 1);
			if (!err && take_bytes(&item, item + item_size, ANY_STRING, &text, &text_size))
				err = add_comment(reader, text, text_size, remarks);
		}
	}
	return err;
}

int reader_remark(struct reader *reader, const char *key, const OtlpAnyValue *value, struct view_remarks *remarks)
{
	const char *text;
	int err;

	if (!value)
		return 0;
	if (!strcmp(key, PPROF_DROP_FRAMES))
		return reader_text(reader, value, &remarks->drop_frames);
	if (!strcmp(key, PPROF_KEEP_FRAMES))
		return reader_text(reader, value, &remarks->keep_frames);
	if (!strcmp(key, PPROF_DOC_URL))
		return reader_text(reader, value, &remarks->doc_url);
	if (strcmp(key, PPROF_COMMENT)) {
		remarks->has_attributes |= !!strncmp(key, "stacktap.", strlen("stacktap."));
		return 0;
	}
	if (remarks->has_more)
		return 0;
	/* others may have one that is no array */
	err = reader_text(reader, value, &text);
	if (!err && *text)
		err = add_comment(reader, (const uint8_t *)text, strlen(text), remarks);
	return err ?: add_comments(reader, value, remarks);
}

int reader_label(struct reader *reader, int32_t index, const char *key, const OtlpAnyValue *value)
{
	const OtlpAttribute *attribute = reader->dictionary->attribute_table[index];
	struct view_label label = { .key = key };
	int err = 0;

	if (!value)
		return 0;
	if (!strncmp(key, "stacktap.", strlen("stacktap."))) {
		reader->losses |= 1u << VIEW_LOSS_OWN;
		return 0;
	}
	if (value->value_case == OTLP_VALUE_INT)
		label.number = value->int_value;
	else if (value->value_case == OTLP_VALUE_STRING || value->value_case == OTLP_VALUE_STRINDEX)
		err = reader_text(reader, value, &label.text);
	else
		reader->losses |= 1u << VIEW_LOSS_VALUES;
	if (!label.text && value->value_case != OTLP_VALUE_INT)
		return err;
	/* pprof's text "" is the number 0 */
	if (label.text && !label.text[0])
		return err;
	if (!err)
		label.unit = reader_string(reader, attribute->unit_strindex, &err);
	return err ?: buffer_append(&reader->labels, &label, sizeof(label)) ? -E2BIG : 0;
}
