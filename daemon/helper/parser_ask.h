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

struct parser_work;

struct parser {
	struct helper *helper;
	struct fair credit;	/* for facts and symbols; tables have their own, see resolve/tables.h */
	bool is_paid;			/* what is asked now: it is a part of a longer time, see parser_begin_lines() */
	uint32_t payer;		/* who it is taken from */
	const struct deadline *deadline;	/* of all questions, borrowed; NULL: none */
	struct credit deaths;	/* by names */
	struct fair waited;	/* what who waits took: it refuses nobody, and says whose turn it is */
	bool is_waiting;	/* who asks, see parser_wait() */
	bool is_starved;	/* the parser had hardly a CPU for the last question */
	uint64_t starved;	/* such questions */
	uint64_t starved_ns;	/* that it waited for a CPU, in all */
	uint64_t deferred;
	struct suspects suspects;
};

/*
 * helper_call(), unless @object is set apart; it is accused of what befalls the parser. -ETIME: the time is over. A
 * question that has begun has all of its own, so that whatever it comes to is the file's.
 */
int parser_ask(struct parser *parser, const struct object *object, struct helper_call *call);

/* helper_call() alone. */
int parser_call(struct parser *parser, struct helper_call *call);

/* parser_ask() of the time for names: -EDQUOT, -ETIME. */
int parser_ask_for_names(struct parser *parser, const struct object *object, struct helper_call *call);

/* Is there time for names, for who pays? -EDQUOT, and counted: not for this one; -ETIME: less than @least_ms is left. */
int parser_may_ask(struct parser *parser, uint64_t now, uint32_t least_ms);

/* Since @work was begun, by parser_begin(), who pays took some of the time for names. */
void parser_spend(struct parser *parser, const struct parser_work *work);

/* How long a parser that is being started is waited for. */
static inline uint32_t parser_start_ms(const struct parser *parser)
{
	return deadline_start_ms(parser->deadline);
}

static inline bool parser_is_hex(const char *text, size_t size)
{
	return memchr(text, '\0', size) && strspn(text, "0123456789abcdef") == strlen(text);
}

/* Whole bytes, as paths have them by their first two digits. */
static inline bool parser_is_id(const char *text, size_t size)
{
	return parser_is_hex(text, size) && strlen(text) % 2 == 0;
}

#endif /* STACKTAP_HELPER_PARSER_ASK_H */
