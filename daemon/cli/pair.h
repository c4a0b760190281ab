/* SPDX-License-Identifier: Apache-2.0 */
/* What `diff' and `flamegraph' compare: two recordings, or two times of one. */
#ifndef STACKTAP_CLI_PAIR_H
#define STACKTAP_CLI_PAIR_H

#include "cli/select.h"
#include "view/diff.h"

struct pair {
	const char *paths[DIFF_SIDES];	/* the same if there are two times */
	struct selection selection;	/* of both, but for pair_has_times() */
	struct moment from, to;		/* those of DIFF_BEFORE */
};

enum {
	PAIR_FROM = SELECT_END,
	PAIR_TO,
	PAIR_NAME_MAX = 1024,
};

#define PAIR_OPTIONS                                                                               \
	{ "before-from", required_argument, NULL, PAIR_FROM },                                     \
	{ "before-to", required_argument, NULL, PAIR_TO }

static inline bool pair_has_times(const struct pair *pair)
{
	return pair->from.base || pair->to.base;
}

/* One of these options or of select_parse()'s: CLI_OK, or says what is wrong. */
int pair_parse(int option, const char *argument, struct pair *pair);
/* Both sides, each with samples; else says what is wrong. *ret_model is the caller's in any case. */
int pair_load(const struct pair *pair, bool use_json, struct model **ret_model);
/* How a side is called in a sentence. */
const char *pair_name(const struct pair *pair, unsigned int side, char text[PAIR_NAME_MAX]);
/* Says that it does not fit: CLI_FAILED. */
int pair_is_too_large(const struct pair *pair);

#endif /* STACKTAP_CLI_PAIR_H */
