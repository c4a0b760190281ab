/* SPDX-License-Identifier: Apache-2.0 */
/* What a client asks for beside a path. */
#ifndef STACKTAP_WEB_REQUEST_H
#define STACKTAP_WEB_REQUEST_H

#include "base/macro.h"

enum { WEB_PAIRS_MAX = 32 };

struct web_request {
	struct {
		const char *name, *value;	/* decoded; "": none */
	} pairs[WEB_PAIRS_MAX];
	size_t count;
	bool is_full;	/* there were more */
	int socket;	/* the client's; -1: it is behind another process */
};

/* Keeps the pointers. False: there is no room. */
bool web_request_add(struct web_request *request, const char *name, const char *value);
/* What the query says of @name; NULL: nothing. */
const char *web_query(const struct web_request *request, const char *name);
/* Nine digits at most, and nothing else. */
bool web_is_number(const char *text);
/* The first name of the query that @names, whose last one is NULL, does not have; NULL: there is none. */
const char *web_unknown_query(const struct web_request *request, const char *const *names);

/* Has the client hung up? For a handler that takes long. */
bool web_is_gone(const struct web_request *request);

#endif /* STACKTAP_WEB_REQUEST_H */
