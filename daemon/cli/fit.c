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

#include "view/browse.h"

enum {
	WIDTH_MIN = 20,		/* narrower ones are taken for this */
	TEXT_MAX = 4096,	/* bytes: more columns than terminals have */
	FILE_MIN = 24,		/* columns of name and file, from which on there is a file */
	GAP = 2,
	NAME_LEAST = 7,		/* columns of a name beside a place, also where that makes a line too wide */
};

static int width = INT_MAX;

void fit_start(bool is_wide)
{
	struct winsize size;

	if (is_wide || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) || !size.ws_col)
		return;
	width = max_of((int)size.ws_col, WIDTH_MIN + 0);
	/* what is printed is UTF-8, whatever the locale has */
	if (!setlocale(LC_CTYPE, "") || MB_CUR_MAX == 1)
		setlocale(LC_CTYPE, "C.UTF-8");
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
		vprintf(format, args);
		va_end(args);
		return 0;
	}
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	fputs(text, stdout);
	return fit_columns(text);
}

int fit_end(const char *text, int columns)
{
	char cut[TEXT_MAX];
	int used;

	if (width == INT_MAX) {
		fputs(text, stdout);
		return 0;
	}
	used = fit_columns(text);
	if (used <= columns) {
		fputs(text, stdout);
		return used;
	}
	if (columns <= 0)
		return 0;
	used = browse_cut(text, columns - 1, cut, sizeof(cut));
	printf("%s…", cut);
	return used + 1;
}

void fit_path(int used, const char *path)
{
	const int left = fit_left(used);

	if (fit_columns(path) <= left) {
		puts(path);
		return;
	}
	/* from the beginning of a character on */
	while (*path && fit_columns(path) > left - 1)
		do
			path++;
		while ((*path & 0xc0) == 0x80);
	printf("…%s\n", path);
}

static const char *last_part(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

void fit_function(int used, const char *name, const char *place, const char *file)
{
	const int left = fit_left(used);
	int room;

	if (width == INT_MAX) {
		printf("%s%s%s%s%s\n", name, *place ? "  " : "", place, *file ? "  " : "", file);
		return;
	}
	/* the place says what the row is of: it stays */
	room = *place ? max_of(left - GAP - fit_columns(place), NAME_LEAST + 0) : left;
	if (*file && fit_columns(name) + GAP + fit_columns(file) > room) {
		file = last_part(file);
		/* the name has at least half */
		if (left < FILE_MIN || (fit_columns(name) + GAP + fit_columns(file) > room &&
					room - GAP - fit_columns(file) < left / 2))
			file = "";
	}
	fit_end(name, room - (*file ? GAP + fit_columns(file) : 0));
	printf("%s%s%s%s\n", *place ? "  " : "", place, *file ? "  " : "", file);
}
