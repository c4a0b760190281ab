// SPDX-License-Identifier: Apache-2.0
#include "base/json.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/utf8.h"

static void write_quoted(FILE *file, const char *text)
{
	const char *s = text;

	fputc('"', file);
	while (*s) {
		size_t length = utf8_length(s);

		if (!length) {
			fputs("\\ufffd", file);
			length = 1;
		} else if (*s == '"' || *s == '\\') {
			fprintf(file, "\\%c", *s);
		} else if ((unsigned char)*s < 0x20 || *s == 0x7f) {
			fprintf(file, "\\u%04x", (unsigned int)*s);
		} else {
			fwrite(s, 1, length, file);
		}
		s += length;
	}
	fputc('"', file);
}

static void begin_item(struct json *json, const char *name)
{
	if (!json->depth) {
		assert(!name);
		return;
	}
	assert((json->levels[json->depth - 1].close == '}') == (name != NULL));
	if (json->levels[json->depth - 1].has_items)
		fputc(',', json->file);
	json->levels[json->depth - 1].has_items = true;
	if (name) {
		write_quoted(json->file, name);
		fputc(':', json->file);
	}
}

static void open_level(struct json *json, const char *name, char open, char close)
{
	begin_item(json, name);
	assert(json->depth < JSON_MAX_DEPTH);
	fputc(open, json->file);
	json->levels[json->depth].close = close;
	json->levels[json->depth].has_items = false;
	json->depth++;
}

void json_init(struct json *json, FILE *file)
{
	*json = (struct json){ .file = file };
}

void json_object(struct json *json, const char *name)
{
	open_level(json, name, '{', '}');
}

void json_array(struct json *json, const char *name)
{
	open_level(json, name, '[', ']');
}

void json_end(struct json *json)
{
	assert(json->depth);
	json->depth--;
	fputc(json->levels[json->depth].close, json->file);
	if (!json->depth)
		fputc('\n', json->file);
}

void json_string(struct json *json, const char *name, const char *value)
{
	begin_item(json, name);
	if (value)
		write_quoted(json->file, value);
	else
		fputs("null", json->file);
}

void json_u64(struct json *json, const char *name, uint64_t value)
{
	begin_item(json, name);
	fprintf(json->file, "%" PRIu64, value);
}

void json_i64(struct json *json, const char *name, int64_t value)
{
	begin_item(json, name);
	fprintf(json->file, "%" PRId64, value);
}

void json_double(struct json *json, const char *name, double value)
{
	begin_item(json, name);
	if (isfinite(value))
		fprintf(json->file, "%.6g", value);
	else
		fputs("null", json->file);
}

void json_bool(struct json *json, const char *name, bool value)
{
	begin_item(json, name);
	fputs(value ? "true" : "false", json->file);
}

void json_raw(struct json *json, const char *name, const char *text, size_t size)
{
	begin_item(json, name);
	fwrite(text, 1, size, json->file);
}
