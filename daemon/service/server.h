/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Profiles of the moment: /debug/pprof/profile and /flamegraph, of the next `seconds', of all or of what the query
 * selects. They are copies of what the daemon samples anyway, see tap.h, so they cost no samples, and the session
 * and its rate are what they were. When the time is over the window that is open is closed. With a rate or a period
 * of their own they have a session of their own, see extra.h. And below /store/ what is in the store, see viewer.h.
 * Each request has a thread; see web/listener.h for who is let in, and what is bounded.
 */
#ifndef STACKTAP_SERVICE_SERVER_H
#define STACKTAP_SERVICE_SERVER_H

#include "service/snapshot.h"
#include "service/tap.h"

struct server;

/* All but taps are for the requests' threads. */
struct server_ops {
	struct taps *taps;
	/* As service_close_window(); -EAGAIN: not for the moment. */
	int (*close_window)(void *ctx, uint64_t *ret_closing);
	bool (*has_closed)(void *ctx, uint64_t closing);
	/* The directory, for the caller to close; -ENOENT: there is none, -EAGAIN: not for the moment. */
	int (*open_store)(void *ctx);
	/* Or could not be told for the moment. */
	bool (*is_sampling)(void *ctx);
	/* config_record_arguments() of what is in force; NULL: not for the moment. */
	char **(*record_arguments)(void *ctx);
	void *ctx;
	const char *stacktap;	/* the program; NULL: beside this one */
};

/*
 * @listen is what endpoint_check() takes. @wait_ms: how long after its time a request waits for the window at most;
 * 0: the default. -errno, with a sentence in @ret_error.
 */
int server_open(const char *listen, const struct server_ops *ops, unsigned int wait_ms, struct server **ret_server,
		char *ret_error, size_t error_size);
/* Ends what waits. */
void server_close(struct server *server);	/* NULL is fine */
/* Where it can be reached, with its token if it has one. */
const char *server_name(const struct server *server);
/* Its address and requests, for the next snapshot. From any thread. */
void server_tell(const struct server *server, struct snapshot *snapshot);

#endif /* STACKTAP_SERVICE_SERVER_H */
