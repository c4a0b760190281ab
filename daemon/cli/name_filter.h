/* SPDX-License-Identifier: Apache-2.0 */
/* --filter REGEX: rows of which a name matches, and stacks with a function that does. */
#ifndef STACKTAP_CLI_NAME_FILTER_H
#define STACKTAP_CLI_NAME_FILTER_H

#include <regex.h>
#include <stdbool.h>

struct name_filter {
	regex_t regex;
	const char *text;	/* as it was given; of an option as long as that is */
	bool is_set;	/* else all names match; zero-initialized it is not */
};

/*
 * An extended regular expression in place of what it was; "" is none. False: the text is not one, and the
 * filter as it was.
 */
bool name_filter_set(struct name_filter *filter, const char *text);
/* The same, of an option: CLI_OK, or says what is wrong. */
int name_filter_parse(struct name_filter *filter, const char *text);
bool name_filter_has(const struct name_filter *filter, const char *owner, const char *name,
		     const char *file);
void name_filter_done(struct name_filter *filter);

#endif /* STACKTAP_CLI_NAME_FILTER_H */
