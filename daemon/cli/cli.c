// SPDX-License-Identifier: Apache-2.0
#include "cli/cli.h"

#include <getopt.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "base/cpulist.h"
#include "base/file.h"
#include "base/json.h"
#include "base/near.h"
#include "cli/progress.h"

enum { MS_PER_S = 1000, S_PER_MIN = 60, S_PER_HOUR = 3600 };

static bool use_json;

void cli_use_json(void)
{
	use_json = true;
}

static void say(const char *format, va_list args) _printf_(1, 0);

static void say(const char *format, va_list args)
{
	char text[2048];

	vsnprintf(text, sizeof(text), format, args);
	if (use_json) {
		struct json json;

		json_init(&json, stdout);
		json_object(&json, NULL);
		json_string(&json, "error", text);
		json_end(&json);
		fflush(stdout);
	} else {
		fprintf(stderr, "stacktap: %s\n", text);
	}
}

int cli_error(const char *format, ...)
{
	va_list args;

	progress_done();
	va_start(args, format);
	say(format, args);
	va_end(args);
	return CLI_FAILED;
}

int cli_usage_error(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say(format, args);
	va_end(args);
	return CLI_USAGE;
}

static const struct option *known_options;	/* of the command that is parsed; NULL: none yet */

int cli_option(int argc, char **argv, const char *letters, const struct option *options)
{
	known_options = options;
	return getopt_long(argc, argv, letters, options, NULL);
}

/* The long option that comes nearest to @text, "--...", or NULL. */
static const char *near_option(const char *text)
{
	char wanted[NEAR_LENGTH_MAX];
	struct near near;

	snprintf(wanted, sizeof(wanted), "%.*s", (int)strcspn(text + 2, "="), text + 2);
	near = near_to(wanted);
	for (const struct option *option = known_options; option && option->name; option++)
		near_see(&near, option->name);
	return near_best(&near);
}

int cli_bad_option(int argc, char **argv, int result)
{
	const char *option = optind > 0 && optind <= argc ? argv[optind - 1] : "", *nearest;
	char letter[3] = { '-', (char)optopt, '\0' };

	/* a short option may stand inside a bundle; optopt has its letter, long ones their number */
	if (optopt > 0 && optopt < 0x80 && strncmp(option, "--", 2))
		option = letter;
	if (result == ':')
		return cli_usage_error("option `%s' needs an argument; see --help", option);
	nearest = strncmp(option, "--", 2) ? NULL : near_option(option);
	if (nearest)
		return cli_usage_error("unknown or ambiguous option `%s'; did you mean `--%s'?", option,
				       nearest);
	return cli_usage_error("unknown or ambiguous option `%s'; see --help", option);
}

int cli_help(const char *text)
{
	fputs(text, stdout);
	return cli_finish();
}

int cli_parse_json(int argc, char **argv, const char *help, bool *ret_json)
{
	static const struct option options[] = {
		{ "help", no_argument, NULL, 'h' },
		{ "json", no_argument, NULL, 'j' },
		{ 0 },
	};
	int option;

	*ret_json = false;
	opterr = 0;
	while ((option = cli_option(argc, argv, ":hj", options)) != -1) {
		switch (option) {
		case 'h':
			return cli_help(help);
		case 'j':
			*ret_json = true;
			cli_use_json();
			break;
		default:
			return cli_bad_option(argc, argv, option);
		}
	}
	return CLI_GO_ON;
}

int cli_finish(void)
{
	if (ferror(stdout) || fflush(stdout) == EOF) {
		fprintf(stderr, "stacktap: cannot write to standard output: %s\n", strerror(errno));
		return CLI_FAILED;
	}
	return CLI_OK;
}

bool cli_parse_number(const char *text, uint64_t minimum, uint64_t maximum, uint64_t *ret_number)
{
	uint64_t number;
	char *end;

	/* strtoull() would take signs and blanks */
	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	number = strtoull(text, &end, 10);
	if (errno || *end || number < minimum || number > maximum)
		return false;
	*ret_number = number;
	return true;
}

bool cli_parse_bytes(const char *text, uint64_t *ret_bytes)
{
	static const char units[] = "KMG";
	const size_t length = strlen(text);
	const char *unit = length ? strchr(units, text[length - 1]) : NULL;
	char digits[24];

	if (!length || length >= sizeof(digits))
		return false;
	snprintf(digits, sizeof(digits), "%.*s", (int)(length - !!unit), text);
	if (!cli_parse_number(digits, 0, UINT64_MAX >> 30, ret_bytes))
		return false;
	*ret_bytes <<= unit ? 10 * (unit - units + 1) : 0;
	return true;
}

bool cli_parse_percent(const char *text, double *ret_percent)
{
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	*ret_percent = strtod(text, &end);
	return *ret_percent <= 100 && (!*end || !strcmp(end, "%"));
}

bool cli_parse_duration(const char *text, uint64_t *ret_ms)
{
	double seconds, unit = 1;
	char *end;

	if ((*text < '0' || *text > '9') && *text != '.')
		return false;
	seconds = strtod(text, &end);
	if (end == text)
		return false;
	if (!strcmp(end, "ms"))
		unit = 1.0 / MS_PER_S;
	else if (!strcmp(end, "m"))
		unit = S_PER_MIN;
	else if (!strcmp(end, "h"))
		unit = S_PER_HOUR;
	else if (*end && strcmp(end, "s") != 0)
		return false;
	seconds *= unit * MS_PER_S;
	/* the upper bound keeps sums with clocks far from overflow */
	if (!isfinite(seconds) || seconds < 1 || seconds > 1e12)
		return false;
	*ret_ms = (uint64_t)seconds;
	return true;
}

int cli_parse_pids(const char *text, const char *what, uint32_t **pids, size_t *count)
{
	_cleanup_free_ char *copy = strdup(text);
	char *saved = NULL;
	size_t before = *count;

	if (!copy)
		return cli_error("out of memory");
	for (char *word = strtok_r(copy, ",", &saved); word; word = strtok_r(NULL, ",", &saved)) {
		uint32_t *grown;
		uint64_t pid;
		char path[32];

		if (!cli_parse_number(word, 1, INT32_MAX, &pid))
			return cli_usage_error("`%s' is not a %s id", word, what);
		snprintf(path, sizeof(path), "/proc/%u", (unsigned int)pid);
		if (access(path, F_OK) < 0)
			return cli_error("there is no %s %u", what, (unsigned int)pid);
		grown = reallocarray(*pids, *count + 1, sizeof(*grown));
		if (!grown)
			return cli_error("out of memory");
		*pids = grown;
		grown[(*count)++] = (uint32_t)pid;
	}
	if (*count == before)
		return cli_usage_error("`%s' names no %s", text, what);
	return CLI_OK;
}

int cli_parse_cpus(const char *text, uint64_t **ret_words, size_t *ret_count)
{
	static const char path[] = "/sys/devices/system/cpu/possible";
	_cleanup_(cpulist_done) struct cpulist list = { 0 }, possible = { 0 };
	_cleanup_free_ char *known = NULL;

	if (cpulist_parse(text, &list) < 0 || !list.count)
		return cli_usage_error("`%s' is not a list of CPUs like 0-3,7", text);
	if (file_read(AT_FDCWD, path, 65536, &known, NULL) == 0 &&
	    cpulist_parse(known, &possible) == 0)
		for (uint32_t cpu = 0; cpu < cpulist_limit(&list); cpu++)
			if (cpulist_has(&list, cpu) && !cpulist_has(&possible, cpu))
				return cli_error("there is no CPU %u here; there are %.*s", cpu,
						 (int)strcspn(known, "\n"), known);
	*ret_words = steal_ptr(list.words);
	*ret_count = list.count;
	return CLI_OK;
}
