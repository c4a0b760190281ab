// SPDX-License-Identifier: Apache-2.0
#include "cli/name_filter.h"

#include "cli/cli.h"

bool name_filter_set(struct name_filter *filter, const char *text)
{
	regex_t regex;

	if (*text && regcomp(&regex, text, REG_EXTENDED | REG_NOSUB))
		return false;
	name_filter_done(filter);
	filter->is_set = *text;
	if (filter->is_set)
		filter->regex = regex;
	filter->text = text;
	return true;
}

int name_filter_parse(struct name_filter *filter, const char *text)
{
	char error[128];
	regex_t regex;

	if (name_filter_set(filter, text))
		return CLI_OK;
	regerror(regcomp(&regex, text, REG_EXTENDED | REG_NOSUB), &regex, error, sizeof(error));
	return cli_usage_error("invalid regular expression `%s': %s", text, error);
}

bool name_filter_has(const struct name_filter *filter, const char *owner, const char *name,
		     const char *file)
{
	return !filter->is_set || !regexec(&filter->regex, owner, 0, NULL, 0) ||
	       !regexec(&filter->regex, name, 0, NULL, 0) || !regexec(&filter->regex, file, 0, NULL, 0);
}

void name_filter_done(struct name_filter *filter)
{
	if (filter->is_set)
		regfree(&filter->regex);
	filter->is_set = false;
	filter->text = NULL;
}
