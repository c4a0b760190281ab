/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A listener for GET and HEAD on the loopback interface or a unix socket. One thread, so requests are
 * answered one after the other, unless one for each connection is asked for. Connections, requests, silence,
 * answers and the time that a client takes to send and to read are bounded, and who may ask is guard.h's.
 */
#ifndef STACKTAP_WEB_LISTENER_H
#define STACKTAP_WEB_LISTENER_H

#include <stdatomic.h>

#include "base/pool.h"
#include "web/guard.h"
#include "web/request.h"

enum { WEB_WORDS_MAX = 512 };

struct web_answer {
	unsigned int status;	/* 200 unless set */
	const char *type;	/* of the body; text unless set */
	const char *policy;	/* Content-Security-Policy; nothing is loaded unless set */
	const char *name;	/* to save the body by; NULL: it is for looking at */
	const char *location;	/* where else to ask, relative; with status 302 */
	char words[WEB_WORDS_MAX];	/* room for what those point to, where it is not there for good */
	/* The body. Once it has all the memory that is allowed, writing to it fails. */
	FILE *body;
};

/* In the listener's thread, or the connection's. @path begins with a slash and is without the token. */
typedef void (*web_handler)(void *ctx, const char *path, const struct web_request *request,
			    struct web_answer *answer);

struct listener_options {
	const char *address;	/* see address.h */
	const char *token;	/* NULL: none is needed */
	enum pool_id pool;	/* what bodies are charged to */
	unsigned int threads;	/* connections, each in a thread, as the handler waits; 0: one for all */
	unsigned int turn_ms;	/* to send a request, and as long again to read the answer; 0: a minute */
	unsigned int patience_ms; /* with clients that are silent while few connections are left; 0: a second */
	web_handler handler;
	void *ctx;
};

struct listener_counts {
	_Atomic uint64_t answered;	/* requests that the handler saw */
	_Atomic uint64_t failed;	/* of these, for want of memory */
	_Atomic uint64_t refused[GUARD_VERDICTS]; /* by verdict; GUARD_PASS: for its method */
	_Atomic uint64_t expired;	/* connections ended, as the client took too long, or was silent and few were left */
};

struct listener;

/* -errno, with a sentence in @ret_error. */
int listener_open(const struct listener_options *options, struct listener **ret_listener,
		  char *ret_error, size_t error_size);
/* Where it can be reached: "http://127.0.0.1:8080/TOKEN/", or the path of its socket. */
const char *listener_name(const struct listener *listener);
/* The same without the token. */
const char *listener_address(const struct listener *listener);
const struct listener_counts *listener_counts(const struct listener *listener);
void listener_close(struct listener *listener);	/* NULL is fine */

#endif /* STACKTAP_WEB_LISTENER_H */
