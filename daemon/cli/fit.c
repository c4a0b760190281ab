// SPDX-License-Identifier: Apache-2.0
#include "cli/fit.h"

#include <limits.h>
#include <locale.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <wchar.h>

#include "view/browse.h"

enum {
	WIDTH_MIN = 20,		/* narrower ones are taken for this */
	TEXT_MAX = 4096,	/* bytes: more columns than terminals have */
	FILE_MIN = 24,		/* columns of name and file, from which on there is a file */
	GAP = 2,
	INDENT_PART = 4,	/* of the width at most */
	NAME_LEAST = 7,		/* columns of a name beside a place, if that is not more than a third */
};

static int width = INT_MAX;
static FILE *sink;	/* NULL: standard output */

static FILE *out(void)
{
	return sink ?: stdout;
}

void fit_into(FILE *file)
{
	sink = file;
}

void fit_locale(void)
{
	if (!setlocale(LC_CTYPE, "") || MB_CUR_MAX == 1)
		setlocale(LC_CTYPE, "C.UTF-8");
}

void fit_width(void)
{
	struct winsize size;

	if (!ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) && size.ws_col)
		width = max_of((int)size.ws_col, WIDTH_MIN + 0);
}

void fit_start(bool is_wide)
{
	if (is_wide)
		return;
	fit_width();
	if (width != INT_MAX)
		fit_locale();
}

/* Behind or before what is left out; a C library without C.UTF-8 may have no sign for it. */
static const char *ellipsis(void)
{
	return MB_CUR_MAX > 1 ? "…" : "~";
}

int fit_left(int used)
{
	return width == INT_MAX ? INT_MAX : max_of(width - used, 0);
}

int fit_columns(const char *text)
{
	char whole[TEXT_MAX];

	return browse_cut(text, INT_MAX, whole, sizeof(whole));
}

int fit_print(const char *format, ...)
{
	char text[TEXT_MAX];
	va_list args;

	va_start(args, format);
	if (width == INT_MAX) {
		vfprintf(out(), format, args);
		va_end(args);
		return 0;
	}
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	fputs(text, out());
	return fit_columns(text);
}

int fit_end(const char *text, int columns)
{
	char cut[TEXT_MAX];
	int used;

	if (width == INT_MAX) {
		fputs(text, out());
		return 0;
	}
	used = fit_columns(text);
	if (used <= columns) {
		fputs(text, out());
		return used;
	}
	if (columns <= 0)
		return 0;
	used = browse_cut(text, columns - 1, cut, sizeof(cut));
	fprintf(out(), "%s%s", cut, ellipsis());
	return used + 1;
}

/* Columns of the character that @text begins with, and where the next one is. */
static int columns_of_one(const char *text, const char **ret_next)
{
	mbstate_t state = { 0 };
	wchar_t wide;
	size_t length = mbrtowc(&wide, text, strnlen(text, MB_CUR_MAX), &state);
	const bool is_bad = length == (size_t)-1 || length == (size_t)-2;

	*ret_next = text + (is_bad ? 1 : length);
	return is_bad || wcwidth(wide) < 0 ? 1 : wcwidth(wide);
}

void fit_tail(const char *text, int columns)
{
	const char *next;
	int have = 0, one;

	for (const char *at = text; *at; at = next)
		have += columns_of_one(at, &next);
	if (have <= columns) {
		fputs(text, out());
		return;
	}
	if (columns <= 0)
		return;
	/* what has no column of its own belongs to what is left out */
	while (*text && ((one = columns_of_one(text, &next)) == 0 || have > columns - 1)) {
		have -= one;
		text = next;
	}
	fprintf(out(), "%s%s", ellipsis(), text);
}

void fit_add(char note[FIT_NOTE], const char *format, ...)
{
	const size_t used = strlen(note);
	va_list args;

	va_start(args, format);
	vsnprintf(note + used, FIT_NOTE - used, format, args);
	va_end(args);
}

static void begin_line(int indent, int *used)
{
	fprintf(out(), "\n%*s", indent, "");
	*used = indent;
}

/* A word that is wider than a line goes on in the next one wherever that ends. */
static void put_word(const char *word, const char *end, int indent, int *used)
{
	const char *next;

	for (; word < end; word = next) {
		const int columns = columns_of_one(word, &next);

		if (*used + columns > width)
			begin_line(indent, used);
		fwrite(word, 1, (size_t)(next - word), out());
		*used += columns;
	}
}

void fit_words(int used, int indent, const char *text)
{
	bool is_first = true;

	if (width == INT_MAX) {
		fprintf(out(), "%s\n", text);
		return;
	}
	indent = min_of(indent, width / INDENT_PART);
	for (text += strspn(text, " "); *text; text += strspn(text, " ")) {
		const char *end = text + strcspn(text, " "), *next;
		int columns = !is_first;

		for (const char *at = text; at < end; at = next)
			columns += columns_of_one(at, &next);
		/* what fits into no line is not put off to the next one */
		if (used + columns > width && columns - !is_first <= width - indent) {
			begin_line(indent, &used);
		} else if (!is_first && used < width) {
			putc(' ', out());
			used++;
		}
		put_word(text, end, indent, &used);
		is_first = false;
		text = end;
	}
	putc('\n', out());
}

void fit_path(int used, const char *path)
{
	fit_tail(path, fit_left(used));
	putc('\n', out());
}

static const char *last_part(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* "libc.so.6+0x2a3f0": what tells it from its neighbours is at its end. */
static bool has_file(const char *name, const char *file)
{
	const size_t length = strlen(file);

	return !strncmp(name, file, length) && !strncmp(name + length, "+0x", strlen("+0x"));
}

void fit_function(int used, const char *name, const char *place, const char *file)
{
	const int left = fit_left(used), least = min_of(left / 3, NAME_LEAST + 0);
	int room;

	if (width == INT_MAX) {
		fprintf(out(), "%s%s%s%s%s\n", name, *place ? "  " : "", place, *file ? "  " : "", file);
		return;
	}
	/* the place says what the row is of: it stays, but for its beginning */
	room = *place ? max_of(left - GAP - fit_columns(place), least) : left;
	if (*file && fit_columns(name) + GAP + fit_columns(file) > room) {
		file = last_part(file);
		/* the name has at least half, and all of it where it has the file's */
		if (left < FILE_MIN || (fit_columns(name) + GAP + fit_columns(file) > room &&
					(has_file(name, file) || room - GAP - fit_columns(file) < left / 2)))
			file = "";
	}
	room = fit_end(name, room - (*file ? GAP + fit_columns(file) : 0));
	if (*place && left > room + GAP) {
		fputs("  ", out());
		fit_tail(place, left - room - GAP);
	}
	fprintf(out(), "%s%s\n", *file ? "  " : "", file);
}
