// SPDX-License-Identifier: Apache-2.0
#include "service/option.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "base/fail.h"
#include "base/log.h"

static const struct {
	const char *name;
	enum log_level level;
} levels[] = {
	{ "error", LOG_LEVEL_ERROR },
	{ "warning", LOG_LEVEL_WARNING },
	{ "info", LOG_LEVEL_INFO },
	{ "debug", LOG_LEVEL_DEBUG },
};

static int parse_bool(const char *text, bool *ret_value)
{
	static const char *const words[2][4] = {
		{ "no", "false", "off", "0" },
		{ "yes", "true", "on", "1" },
	};

	for (int value = 0; value < 2; value++)
		for (size_t i = 0; i < ARRAY_SIZE(words[value]); i++)
			if (!strcmp(text, words[value][i])) {
				*ret_value = value;
				return 0;
			}
	return -EINVAL;
}

int option_parse_number(const struct option *option, const char *text, uint64_t *ret_number)
{
	static const char units[] = "KMG";
	uint64_t number;
	char *end;

	if (!isdigit((unsigned char)*text))
		return -EINVAL;
	errno = 0;
	number = strtoull(text, &end, 10);
	if (errno)
		return -EINVAL;
	if (option->kind == OPTION_BYTES && *end) {
		const char *unit = strchr(units, toupper((unsigned char)*end));
		unsigned int shift = unit ? 10 * (unsigned int)(unit - units + 1) : 0;

		if (!unit || number > UINT64_MAX >> shift)
			return -EINVAL;
		number <<= shift;
		end++;
	}
	if (*end || number < option->minimum || number > option->maximum)
		return -EINVAL;
	*ret_number = number;
	return 0;
}

static int set_string(char **field, const char *text)
{
	char *copy = NULL;

	if (*text) {
		copy = strdup(text);
		if (!copy)
			return -ENOMEM;
	}
	free(*field);
	*field = copy;
	return 0;
}

static int set_choice(const struct option *option, unsigned int *field, const char *text, char *error,
		      size_t error_size)
{
	const char *const *words = option->words;

	for (unsigned int i = 0; i < OPTION_WORDS && words[i]; i++)
		if (!strcmp(text, words[i])) {
			*field = i;
			return 0;
		}
	if (words[2])
		return fail_invalid(error, error_size, "%s must be %s, %s or %s, not `%s'", option->name,
				    *words[0] ? words[0] : "empty", words[1], words[2], text);
	if (!words[1])
		return fail_invalid(error, error_size, "%s is %s, not `%s'", option->name, words[0], text);
	return fail_invalid(error, error_size,
			    "%s must be %s or %s, not `%s'", option->name, words[0], words[1], text);
}

int option_set(const struct option *option, void *base, const char *text, char *error, size_t error_size)
{
	void *field = (char *)base + option->offset;
	bool is_yes;

	switch (option->kind) {
	case OPTION_STRING:
		return set_string(field, text);
	case OPTION_BOOL:
		if (parse_bool(text, field) < 0)
			return fail_invalid(error, error_size,
					    "%s must be yes or no, not `%s'", option->name, text);
		return 0;
	case OPTION_YES_NO:
		if (!parse_bool(text, &is_yes))
			text = is_yes ? "yes" : "no";
		return set_choice(option, field, text, error, error_size);
	case OPTION_CHOICE:
		return set_choice(option, field, text, error, error_size);
	case OPTION_LEVEL:
		for (size_t i = 0; i < ARRAY_SIZE(levels); i++)
			if (!strcmp(text, levels[i].name)) {
				*(uint64_t *)field = levels[i].level;
				return 0;
			}
		return fail_invalid(error, error_size,
				    "%s must be error, warning, info or debug, not `%s'",
				    option->name, text);
	case OPTION_NUMBER:
	case OPTION_BYTES:
		break;
	case OPTION_EVENT:
	case OPTION_RULE:
		return -EINVAL;
	}
	if (option_parse_number(option, text, field) < 0)
		return fail_invalid(error, error_size,
				    "%s must be a number from %" PRIu64 " to %" PRIu64 ", not `%s'",
				    option->name, option->minimum, option->maximum, text);
	return 0;
}

static bool same_string(const char *a, const char *b)
{
	return a && b ? !strcmp(a, b) : a == b;
}

bool option_same(const struct option *option, const void *a, const void *b)
{
	const void *in_a = (const char *)a + option->offset, *in_b = (const char *)b + option->offset;

	switch (option->kind) {
	case OPTION_STRING:
		return same_string(*(char *const *)in_a, *(char *const *)in_b);
	case OPTION_BOOL:
		return *(const bool *)in_a == *(const bool *)in_b;
	case OPTION_CHOICE:
	case OPTION_YES_NO:
		return *(const unsigned int *)in_a == *(const unsigned int *)in_b;
	case OPTION_NUMBER:
	case OPTION_BYTES:
	case OPTION_LEVEL:
		return *(const uint64_t *)in_a == *(const uint64_t *)in_b;
	case OPTION_EVENT:
	case OPTION_RULE:
		break;
	}
	return false;
}

void swap_bytes(void *a, void *b, size_t size)
{
	char *in_a = a, *in_b = b;

	for (size_t i = 0; i < size; i++) {
		char byte = in_a[i];

		in_a[i] = in_b[i];
		in_b[i] = byte;
	}
}

void option_swap(const struct option *option, void *a, void *b)
{
	static const size_t sizes[] = {
		[OPTION_STRING] = sizeof(char *), [OPTION_BOOL] = sizeof(bool),
		[OPTION_NUMBER] = sizeof(uint64_t), [OPTION_BYTES] = sizeof(uint64_t),
		[OPTION_CHOICE] = sizeof(unsigned int), [OPTION_YES_NO] = sizeof(unsigned int),
		[OPTION_LEVEL] = sizeof(uint64_t),
	};

	swap_bytes((char *)a + option->offset, (char *)b + option->offset, sizes[option->kind]);
}

void option_dump(const struct option *option, const void *base, FILE *stream)
{
	const void *field = (const char *)base + option->offset;
	const char *text = "";

	switch (option->kind) {
	case OPTION_STRING:
		text = *(char *const *)field ?: "";
		break;
	case OPTION_BOOL:
		text = *(const bool *)field ? "yes" : "no";
		break;
	case OPTION_CHOICE:
	case OPTION_YES_NO:
		text = option->words[*(const unsigned int *)field];
		break;
	case OPTION_LEVEL:
		for (size_t i = 0; i < ARRAY_SIZE(levels); i++)
			if (levels[i].level == *(const uint64_t *)field)
				text = levels[i].name;
		break;
	case OPTION_NUMBER:
	case OPTION_BYTES:
		fprintf(stream, "%s = %" PRIu64 "\n", option->name, *(const uint64_t *)field);
		return;
	case OPTION_EVENT:
	case OPTION_RULE:
		return;
	}
	fprintf(stream, "%s =%s%s\n", option->name, *text ? " " : "", text);
}

void option_done(const struct option *option, void *base)
{
	if (option->kind == OPTION_STRING)
		free(*(char **)(void *)((char *)base + option->offset));
}
