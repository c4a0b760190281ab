// SPDX-License-Identifier: Apache-2.0
#include "client/pmu.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>

#include "base/fail.h"
#include "base/file.h"

enum {
	MAX_TERM = 128,
	MAX_NESTING = 2,	/* a named event is terms, but its terms are no named events */
};

struct parse {
	int dir;
	const char *pmu;
	struct pmu_event *event;
	char *error;
	size_t error_size;
};

#define fail(parse, ...) fail_invalid((parse)->error, (parse)->error_size, __VA_ARGS__)

/* A name that cannot leave its directory. */
static bool is_plain(const char *name)
{
	return *name && *name != '.' && !strchr(name, '/');
}

static int read_file(int dir, const char *folder, const char *name, char *buffer, size_t size)
{
	char path[NAME_MAX + 16];
	ssize_t length;

	snprintf(path, sizeof(path), "%s%s%s", folder, *folder ? "/" : "", name);
	length = file_read_text(dir, path, buffer, size);
	if (length < 0)
		return (int)length;
	buffer[strcspn(buffer, "\n")] = '\0';
	return 0;
}

/* Spread @value over the bits of a format such as "config1:0-7,32-35". */
static int apply_format(const struct parse *parse, const char *format, const char *term,
			uint64_t value)
{
	unsigned int word = 0;
	int used = 0;

	if (!strncmp(format, "config1:", 8))
		word = 1;
	else if (!strncmp(format, "config2:", 8))
		word = 2;
	else if (strncmp(format, "config:", 7))
		return fail(parse, "term %s of PMU %s has a format that is not supported: %s",
			    term, parse->pmu, format);
	format = strchr(format, ':') + 1;
	do {
		unsigned int first, last, bits;
		uint64_t mask;

		if (sscanf(format, "%u-%u%n", &first, &last, &used) != 2) {
			if (sscanf(format, "%u%n", &first, &used) != 1)
				return fail(parse, "PMU %s: unknown format of term %s",
					    parse->pmu, term);
			last = first;
		}
		if (first > last || last > 63)
			return fail(parse, "PMU %s: unknown format of term %s",
				    parse->pmu, term);
		bits = last - first + 1;
		mask = bits == 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;
		parse->event->config[word] &= ~(mask << first);
		parse->event->config[word] |= (value & mask) << first;
		value = bits == 64 ? 0 : value >> bits;
		format += used;
	} while (*format++ == ',');
	if (value)
		return fail(parse, "value of term %s is too large for PMU %s", term, parse->pmu);
	return 0;
}

static int apply_terms(const struct parse *parse, char *terms, int nesting);

static int apply_term(const struct parse *parse, char *term, int nesting)
{
	static const char *const words[] = { "config", "config1", "config2" };
	char text[256], *equals = strchr(term, '='), *end;
	uint64_t value = 1;

	if (equals) {
		*equals = '\0';
		errno = 0;
		value = strtoull(equals + 1, &end, 0);
		if (errno || !equals[1] || equals[1] == '-' || *end)
			return fail(parse, "term %s needs a number, not `%s'", term, equals + 1);
	}
	if (!is_plain(term) || strlen(term) > MAX_TERM)
		return fail(parse, "PMU %s has no term `%s'", parse->pmu, term);
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (!strcmp(term, words[i])) {
			parse->event->config[i] = value;
			return 0;
		}
	if (!read_file(parse->dir, "format", term, text, sizeof(text)))
		return apply_format(parse, text, term, value);
	if (!equals && nesting < MAX_NESTING &&
	    !read_file(parse->dir, "events", term, text, sizeof(text)))
		return apply_terms(parse, text, nesting + 1);
	return fail(parse, "PMU %s has no %s `%s'", parse->pmu, equals ? "term" : "event", term);
}

static int apply_terms(const struct parse *parse, char *terms, int nesting)
{
	char *saved = NULL;

	for (char *term = strtok_r(terms, ",", &saved); term; term = strtok_r(NULL, ",", &saved)) {
		int ret = apply_term(parse, term, nesting);

		if (ret < 0)
			return ret;
	}
	return 0;
}

static void list_pmus(const char *root, char *buffer, size_t size)
{
	DIR *dir = opendir(root);
	struct dirent *entry;
	size_t used = 0;

	buffer[0] = '\0';
	if (!dir)
		return;
	while ((entry = readdir(dir)) && used < size)
		if (entry->d_name[0] != '.')
			used += (size_t)snprintf(buffer + used, size - used, "%s%s",
						 used ? " " : "", entry->d_name);
	closedir(dir);
}

int pmu_parse(const char *root, const char *text, struct pmu_event *ret_event, char *error,
	      size_t error_size)
{
	struct pmu_event event = { 0 };
	struct parse parse = { .event = &event, .error = error, .error_size = error_size };
	_cleanup_free_ char *name = NULL;
	_cleanup_close_ int dir = -1;
	char path[PATH_MAX], type[32], known[192];
	char *terms, *end;
	int ret;

	name = strdup(text);
	if (!name)
		return -ENOMEM;
	parse.pmu = name;
	terms = strchr(name, '/');
	if (!terms || !(end = strchr(terms + 1, '/')) || end[1])
		return fail(&parse, "`%s' is not of the form PMU/term=value,.../", text);
	*terms++ = '\0';
	*end = '\0';
	snprintf(path, sizeof(path), "%s/%s", root, name);
	dir = is_plain(name) ? open(path, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
	if (dir < 0) {
		list_pmus(root, known, sizeof(known));
		return fail(&parse, "no PMU `%s' here; there are: %s", name, known);
	}
	parse.dir = dir;
	ret = read_file(dir, "", "type", type, sizeof(type));
	if (ret < 0)
		return fail(&parse, "PMU %s has no type", name);
	event.type = (uint32_t)strtoul(type, NULL, 10);
	ret = apply_terms(&parse, terms, 1);
	if (ret < 0)
		return ret;
	*ret_event = event;
	return 0;
}
