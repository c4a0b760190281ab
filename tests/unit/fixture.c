// SPDX-License-Identifier: Apache-2.0
#include "fixture.h"

#include <ftw.h>
#include <sys/stat.h>

static char directory[PATH_MAX];
static pid_t owner;

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static void remove_directory(void)
{
	/* children that leave by exit() inherit this handler */
	if (getpid() == owner)
		nftw(directory, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

const char *fixture_directory(void)
{
	if (!directory[0]) {
		const char *base = getenv("TMPDIR");

		snprintf(directory, sizeof(directory), "%s/stacktap-test-XXXXXX",
			 base ? base : "/tmp");
		assert_non_null(mkdtemp(directory));
		/* programs of other users must be able to look inside */
		assert_int_equal(chmod(directory, 0755), 0);
		owner = getpid();
		atexit(remove_directory);
	}
	return directory;
}

const char *fixture_path(const char *name)
{
	static char paths[4][PATH_MAX];
	static unsigned int turn;
	char *path = paths[turn++ % ARRAY_SIZE(paths)];

	assert_true(snprintf(path, PATH_MAX, "%s/%s", fixture_directory(), name) < PATH_MAX);
	return path;
}

static FILE *start(const char *format, va_list args) __attribute__((format(printf, 1, 0)));

static FILE *start(const char *format, va_list args)
{
	char text[PATH_MAX + 8192];
	int length = snprintf(text, sizeof(text), "cd %s\n", fixture_directory());
	FILE *pipe;

	assert_true(vsnprintf(text + length, 8192, format, args) < 8192);
	pipe = popen(text, "re");
	assert_non_null(pipe);
	return pipe;
}

void fixture_run(const char *format, ...)
{
	va_list args;
	FILE *pipe;
	char rest[256];

	va_start(args, format);
	pipe = start(format, args);
	va_end(args);
	while (fgets(rest, sizeof(rest), pipe))
		;
	assert_int_equal(pclose(pipe), 0);
}

const char *fixture_ask(const char *format, ...)
{
	static char line[4096];
	char rest[256];
	va_list args;
	FILE *pipe;

	va_start(args, format);
	pipe = start(format, args);
	va_end(args);
	line[0] = '\0';
	if (fgets(line, sizeof(line), pipe))
		while (fgets(rest, sizeof(rest), pipe))
			;
	assert_int_equal(pclose(pipe), 0);
	line[strcspn(line, "\n")] = '\0';
	return line;
}

void fixture_write(const char *name, const char *text)
{
	FILE *file = fopen(fixture_path(name), "we");

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

const char *fixture_build(const char *name, const char *flags, const char *source)
{
	char source_name[NAME_MAX];

	snprintf(source_name, sizeof(source_name), "%s.c", name);
	fixture_write(source_name, source);
	fixture_run("${CC:-gcc} -o %s %s %s.c", name, flags, name);
	return fixture_path(name);
}

uint8_t *fixture_load(const char *path, size_t *ret_size)
{
	FILE *file = fopen(path, "re");
	struct stat st;
	uint8_t *data;

	assert_non_null(file);
	assert_int_equal(fstat(fileno(file), &st), 0);
	data = malloc((size_t)st.st_size + 1);
	assert_non_null(data);
	assert_int_equal(fread(data, 1, (size_t)st.st_size, file), st.st_size);
	fclose(file);
	*ret_size = (size_t)st.st_size;
	return data;
}
