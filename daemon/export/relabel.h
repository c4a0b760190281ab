/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules by which attributes of Resources are changed, and what they describe is left out, before anything of it
 * is encoded. In the order in which they were given:
 *
 *	keep KEY PATTERN	leave out what has no such value; an attribute that is not there is empty
 *	drop KEY PATTERN	leave out what has it
 *	remove PATTERN		remove attributes with such keys
 *	rename PATTERN KEY	give such keys this one, in whose place \1 to \9 stand for groups
 *	set KEY VALUE [if KEY PATTERN]	a value, in which \0 to \9 stand for groups of PATTERN
 *	downsample KEY PATTERN N	keep one in N samples of what has it; of several such rules the last one
 *
 * Words with blanks are put into double quotes. Patterns are those of base/pattern.h.
 */
#ifndef STACKTAP_EXPORT_RELABEL_H
#define STACKTAP_EXPORT_RELABEL_H

#include "base/macro.h"

enum {
	RELABEL_MAX_RULES = 64,
	RELABEL_MAX_TEXT = 512,		/* of a rule */
};

struct attributes;
struct relabel;

struct relabel_count {
	uint64_t matched;	/* Resources */
	uint64_t samples;	/* that it left out */
};

int relabel_new(struct relabel **ret_relabel) _must_check_;
void relabel_free(struct relabel *relabel);	/* NULL is fine */
/* -EINVAL, -E2BIG and a sentence; -ENOMEM. */
int relabel_add(struct relabel *relabel, const char *rule, char *ret_error, size_t error_size);

/* Which samples of a Resource are sent. */
struct relabel_result {
	int rule;		/* that leaves some out; -1: all are sent */
	uint32_t one_in;	/* 1: all are, 0: none is */
};

#define RELABEL_ALL ((struct relabel_result){ .rule = -1, .one_in = 1 })

/* By any thread, one at a time. NULL has no rules. */
struct relabel_result relabel_apply(struct relabel *relabel, struct attributes *attributes, bool is_counted);
/* So many samples were left out by a rule. */
void relabel_left_out(struct relabel *relabel, int rule, uint64_t samples);

size_t relabel_rules(const struct relabel *relabel);
const char *relabel_text(const struct relabel *relabel, size_t rule);
struct relabel_count relabel_count(const struct relabel *relabel, size_t rule);
uint64_t relabel_samples(const struct relabel *relabel);	/* left out by all */

#endif /* STACKTAP_EXPORT_RELABEL_H */
