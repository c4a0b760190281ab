/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who may ask. A browser on the same host is hostile: a page of anywhere can make it send requests to a
 * loopback port, under the page's own name once that name resolves to 127.0.0.1 (DNS rebinding). So a
 * request has to call the host by a loopback name, must not come from another origin, and has to know the
 * token. A unix socket has its mode instead.
 */
#ifndef STACKTAP_WEB_GUARD_H
#define STACKTAP_WEB_GUARD_H

#include "base/macro.h"

enum { GUARD_TOKEN_SIZE = 33 };	/* 128 bits in hexadecimal, and a NUL */

enum guard_verdict {
	GUARD_PASS,
	GUARD_NO_HOST,		/* or several */
	GUARD_BAD_HOST,
	GUARD_BAD_ORIGIN,
	GUARD_BAD_TOKEN,
	GUARD_VERDICTS,
};

struct guard {
	bool is_unix;
	const char *token;	/* NULL: none is needed */
};

/* What a request said; NULL: it did not. */
struct guard_request {
	const char *path;	/* "/TOKEN/..." is one way to know it */
	const char *host, *origin;
	const char *site;		/* Sec-Fetch-Site */
	const char *authorization;	/* "Bearer TOKEN" */
	const char *token;		/* the query's */
};

/* *ret_path: the path without the token. */
enum guard_verdict guard_check(const struct guard *guard, const struct guard_request *request,
			       const char **ret_path);
/* "localhost", 127.0.0.0/8 or "::1". */
bool guard_is_loopback(const char *host);
int guard_make_token(char ret_token[static GUARD_TOKEN_SIZE]);	/* -errno */

#endif /* STACKTAP_WEB_GUARD_H */
