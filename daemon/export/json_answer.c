// SPDX-License-Identifier: Apache-2.0
#include "export/json_answer.h"

#include <string.h>

#define DEPTH_MAX 16u
#define WORD_MAX 256u		/* of a key, number or text; what is longer is cut */

struct reader {
	const uint8_t *at, *end;
	struct json_answer *answer;
};

static void skip_blanks(struct reader *reader)
{
	while (reader->at < reader->end && strchr(" \t\r\n", *reader->at) && *reader->at)
		reader->at++;
}

/* Is it the next character? Then it is behind us. */
static bool take(struct reader *reader, char c)
{
	skip_blanks(reader);
	if (reader->at == reader->end || *reader->at != (uint8_t)c)
		return false;
	reader->at++;
	return true;
}

static void append(char *word, size_t *length, uint8_t c)
{
	if (*length + 1 < WORD_MAX)
		word[(*length)++] = (char)c;
}

/* What an escape stands for; '?' for one of another character set. */
static int read_escape(struct reader *reader, uint8_t *ret_c)
{
	static const char names[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
	const char *name;

	if (reader->at == reader->end || !*reader->at)
		return -EBADMSG;
	if (*reader->at == 'u') {
		if (reader->end - reader->at < 5)
			return -EBADMSG;
		reader->at += 5;
		*ret_c = '?';
		return 0;
	}
	name = strchr(names, *reader->at++);
	if (!name)
		return -EBADMSG;
	*ret_c = (uint8_t)values[name - names];
	return 0;
}

/* Behind its opening quote. */
static int read_string(struct reader *reader, char word[static WORD_MAX])
{
	size_t length = 0;

	while (reader->at < reader->end) {
		uint8_t c = *reader->at++;

		if (c == '"') {
			word[length] = '\0';
			return 0;
		}
		if (c == '\\' && read_escape(reader, &c))
			return -EBADMSG;
		append(word, &length, c ? c : '?');
	}
	return -EBADMSG;
}

/* A number, true, false or null. */
static int read_word(struct reader *reader, char word[static WORD_MAX])
{
	size_t length = 0;

	while (reader->at < reader->end && strspn((const char[]){ (char)*reader->at, '\0' },
						  "+-.0123456789Eabcdefghijklmnopqrstuvwxyz"))
		append(word, &length, *reader->at++);
	word[length] = '\0';
	return length ? 0 : -EBADMSG;
}

static void take_value(struct reader *reader, const char *key, const char *word)
{
	struct json_answer *answer = reader->answer;

	if (!strcmp(key, "message") || !strcmp(key, "errorMessage"))
		snprintf(answer->text, sizeof(answer->text), "%s", word);
	else if (!strcmp(key, "rejectedProfiles") || !strcmp(key, "rejectedDataPoints"))
		answer->rejected = strtoll(word, NULL, 10);
}

static int read_value(struct reader *reader, const char *key, unsigned int depth);

static int read_members(struct reader *reader, unsigned int depth, bool is_object)
{
	const char end = is_object ? '}' : ']';
	char key[WORD_MAX] = "";
	int err = 0;

	if (take(reader, end))
		return 0;
	do {
		if (is_object && (!take(reader, '"') || read_string(reader, key) || !take(reader, ':')))
			return -EBADMSG;
		err = read_value(reader, key, depth + 1);
	} while (!err && take(reader, ','));
	if (err)
		return err;
	return take(reader, end) ? 0 : -EBADMSG;
}

static int read_value(struct reader *reader, const char *key, unsigned int depth)
{
	char word[WORD_MAX];
	int err;

	if (depth > DEPTH_MAX)
		return -EBADMSG;
	if (take(reader, '{'))
		return read_members(reader, depth, true);
	if (take(reader, '['))
		return read_members(reader, depth, false);
	err = take(reader, '"') ? read_string(reader, word) : read_word(reader, word);
	if (!err)
		take_value(reader, key, word);
	return err;
}

int json_answer_read(const uint8_t *data, size_t size, struct json_answer *ret_answer)
{
	struct reader reader = { .at = data, .end = data + size, .answer = ret_answer };

	*ret_answer = (struct json_answer){ .rejected = 0 };
	if (!take(&reader, '{') || read_members(&reader, 0, true))
		return -EBADMSG;
	skip_blanks(&reader);
	return reader.at == reader.end ? 0 : -EBADMSG;
}
