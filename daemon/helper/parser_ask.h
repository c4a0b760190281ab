/* SPDX-License-Identifier: Apache-2.0 */
/* What the files that ask the parser share. */
#ifndef STACKTAP_HELPER_PARSER_ASK_H
#define STACKTAP_HELPER_PARSER_ASK_H

#include <string.h>

#include "base/credit.h"
#include "base/deadline.h"
#include "base/fair.h"
#include "helper/helper.h"
#include "helper/suspects.h"

enum {
	COMPILE_MS = 10000,
	GRACE_MS = 1000,	/* beyond the parser's own limit */
};

struct parser {
	struct helper *helper;
	struct fair credit;	/* for facts and symbols; tables have their own, see resolve/tables.h */
	uint32_t payer;		/* who it is taken from */
	const struct deadline *deadline;	/* of all questions, borrowed; NULL: none */
	struct credit deaths;	/* by names */
	uint64_t deferred;
	struct suspects suspects;
};

/*
 * helper_call(), unless @object is set apart; it is accused of what befalls the parser. -ETIME: the time is over.
 */
int parser_ask(struct parser *parser, const struct object *object, struct helper_call *call);

/* The same of the time for names: -EDQUOT, -ETIME. */
int parser_ask_for_names(struct parser *parser, const struct object *object, struct helper_call *call);

/* Is there time for names, for who pays? -EDQUOT, and counted: not for this one; -ETIME: there is none left. */
int parser_may_ask(struct parser *parser, uint64_t now);

/* What a question may take, @most_ms at most. */
static inline uint32_t parser_left_ms(const struct parser *parser, uint32_t most_ms)
{
	return deadline_left_ms(parser->deadline, most_ms);
}

/* Has @call, which is to take no longer than there is time, and a second more if the parser hangs. -ETIME: too little. */
int parser_cut_short(const struct parser *parser, struct helper_call *call, bool *ret_is_cut);

static inline bool parser_is_hex(const char *text, size_t size)
{
	return memchr(text, '\0', size) && strspn(text, "0123456789abcdef") == strlen(text);
}

#endif /* STACKTAP_HELPER_PARSER_ASK_H */
