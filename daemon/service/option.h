/* SPDX-License-Identifier: Apache-2.0 */
/* An option of the configuration: which field of a struct it is, and what may be written there. */
#ifndef STACKTAP_SERVICE_OPTION_H
#define STACKTAP_SERVICE_OPTION_H

#include "base/macro.h"

enum option_kind {
	OPTION_STRING,	/* char *, empty: NULL */
	OPTION_BOOL,
	OPTION_NUMBER,	/* uint64_t in [minimum, maximum] */
	OPTION_BYTES,	/* the same with K, M or G behind it */
	OPTION_CHOICE,	/* unsigned int: an index of words */
	OPTION_YES_NO,	/* the same of "", "no" and "yes", as OPTION_BOOL reads these; "": neither */
	OPTION_LEVEL,	/* uint64_t: enum log_level */
	/* lists, which are config.c's */
	OPTION_EVENT,
	OPTION_RULE,
};

enum { OPTION_WORDS = 3 };

struct option {
	const char *section, *name;
	enum option_kind kind;
	size_t offset;			/* of the field, in @base of the calls */
	uint64_t minimum, maximum;
	const char *words[OPTION_WORDS];
};

/* -EINVAL and a sentence without the option's place. */
int option_set(const struct option *option, void *base, const char *text, char *error, size_t error_size);
int option_parse_number(const struct option *option, const char *text, uint64_t *ret_number);
bool option_same(const struct option *option, const void *a, const void *b);
void option_swap(const struct option *option, void *a, void *b);	/* strings with their ownership */
void option_dump(const struct option *option, const void *base, FILE *stream);
void option_done(const struct option *option, void *base);

void swap_bytes(void *a, void *b, size_t size);

#endif /* STACKTAP_SERVICE_OPTION_H */
