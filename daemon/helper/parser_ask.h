/* SPDX-License-Identifier: Apache-2.0 */
/* What the files that ask the parser share. */
#ifndef STACKTAP_HELPER_PARSER_ASK_H
#define STACKTAP_HELPER_PARSER_ASK_H

#include <string.h>

#include "base/credit.h"
#include "helper/helper.h"
#include "process/object.h"

enum {
	COMPILE_MS = 10000,
	GRACE_MS = 1000,	/* beyond the parser's own limit */
	SUSPECTS_MAX = 64,
};

/* A file that the parser died of. */
struct suspect {
	uint64_t dev, inode, size;
	int64_t ctime_ns;
	unsigned int deaths;
};

struct parser {
	struct helper *helper;
	struct credit credit;	/* for facts and symbols; tables have their own, see resolve/tables.h */
	struct credit deaths;	/* by names */
	uint64_t deferred;
	struct suspect suspects[SUSPECTS_MAX];
	size_t next;		/* suspect to be forgotten for another one */
	char last_set_apart[256];
};

/* helper_call(), unless @object is set apart; it is accused of what befalls the parser. */
int parser_ask(struct parser *parser, const struct object *object, struct helper_call *call);

static inline bool parser_is_hex(const char *text, size_t size)
{
	return memchr(text, '\0', size) && strspn(text, "0123456789abcdef") == strlen(text);
}

/* @size bytes of an answer and a NUL; the caller frees them. NULL: no memory, or they are not there. */
char *parser_read_names(int fd, size_t offset, size_t size);

#endif /* STACKTAP_HELPER_PARSER_ASK_H */
