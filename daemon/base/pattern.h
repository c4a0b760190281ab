/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Extended regular expressions for text of foreign origin: the time of a match grows with the length of the
 * text times that of the pattern, whatever is in them, and the memory is fixed when a pattern is made.
 *
 * Literals, ., [...] with ranges, ^ and classes ([:digit:]), ( ), |, *, +, ?, {n}, {n,}, {n,m}; \ makes the
 * next character one of no meaning. Characters are bytes. There are no back-references, and no
 * ^ and $, as it is always the whole text that matches.
 */
#ifndef STACKTAP_BASE_PATTERN_H
#define STACKTAP_BASE_PATTERN_H

#include "base/macro.h"

enum {
	PATTERN_MAX_GROUPS = 10,	/* the whole text and nine more */
	PATTERN_MAX_TEXT = 4096,	/* what is longer never matches */
};

/* Where a group matched, [start, end); both 0: it did not. */
struct pattern_span {
	uint16_t start, end;
};

struct pattern;

/* -EINVAL: *ret_error says what is wrong with it. -ENOMEM. */
int pattern_new(const char *text, struct pattern **ret_pattern, const char **ret_error);
void pattern_free(struct pattern *pattern);	/* NULL is fine */
/*
 * Does it match the whole of @text? By the leftmost choice, as Perl's, greedy. A pattern is used by one
 * thread at a time. @ret_spans may be NULL.
 */
bool pattern_match(struct pattern *pattern, const char *text,
		   struct pattern_span ret_spans[PATTERN_MAX_GROUPS]);

#endif /* STACKTAP_BASE_PATTERN_H */
