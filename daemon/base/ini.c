// SPDX-License-Identifier: Apache-2.0
#include "base/ini.h"

#include <ctype.h>
#include <string.h>

struct state {
	char line[INI_MAX_LINE + 1];
	char section[INI_MAX_LINE + 1];
	size_t length;
};

/* 1: a line without its end is there, 0: there is none any more. */
static int read_line(struct state *state, FILE *file, const char **ret_error)
{
	int c;

	state->length = 0;
	while ((c = getc(file)) != EOF && c != '\n') {
		if (state->length == INI_MAX_LINE) {
			*ret_error = "this line is longer than 32768 bytes";
			return -EINVAL;
		}
		if (!c) {
			*ret_error = "there is a zero byte in this line";
			return -EINVAL;
		}
		state->line[state->length++] = (char)c;
	}
	state->line[state->length] = '\0';
	if (ferror(file))
		return errno ? -errno : -EIO;
	return c != EOF || state->length;
}

/* [text, end) without blanks around it, ended by a zero byte. */
static char *trim(char *text, char *end)
{
	while (text < end && isspace((unsigned char)*text))
		text++;
	while (end > text && isspace((unsigned char)end[-1]))
		end--;
	*end = '\0';
	return text;
}

static int take_line(struct state *state, const struct ini_reader *reader, const char **ret_error)
{
	char *line = trim(state->line, state->line + state->length);
	size_t length = strlen(line);
	char *equals;

	if (!length || *line == ';' || *line == '#')
		return 0;
	if (*line == '[' && line[length - 1] == ']') {
		memcpy(state->section, line + 1, length - 2);
		state->section[length - 2] = '\0';
		return reader->section(reader->ctx, state->section);
	}
	equals = strchr(line, '=');
	if (*line == '[' || !equals || equals == line) {
		*ret_error = "this is neither [section] nor option = value";
		return -EINVAL;
	}
	return reader->option(reader->ctx, state->section, trim(line, equals),
			      trim(equals + 1, line + length));
}

int ini_read(FILE *file, const struct ini_reader *reader, unsigned int *ret_line,
	     const char **ret_error)
{
	_cleanup_free_ struct state *state = calloc(1, sizeof(*state));
	int r;

	_Static_assert(INI_MAX_LINE == 32768, "the sentence says so");
	*ret_line = 1;
	*ret_error = NULL;
	if (!state)
		return -ENOMEM;
	for (;; ++*ret_line) {
		r = read_line(state, file, ret_error);
		if (r <= 0)
			return r;
		/* some editors begin a file with a byte order mark */
		if (*ret_line == 1 && !strncmp(state->line, "\xef\xbb\xbf", 3))
			memset(state->line, ' ', 3);
		r = take_line(state, reader, ret_error);
		if (r)
			return r;
	}
}
