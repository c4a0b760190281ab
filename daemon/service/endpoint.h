/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a scraper and a supervisor on the same host may ask: /metrics, /healthz, /readyz. In a thread of its
 * own, see web/listener.h for who is let in and what is bounded.
 */
#ifndef STACKTAP_SERVICE_ENDPOINT_H
#define STACKTAP_SERVICE_ENDPOINT_H

#include "service/snapshot.h"

struct endpoint;

struct endpoint_ops {
	/*
	 * In the endpoint's thread: what holds now, until done() is called. False: it cannot be told for the
	 * moment. The stats are room for what the snapshot points to.
	 */
	bool (*snapshot)(void *ctx, struct snapshot *ret_snapshot, struct pipeline_stats *ret_pipeline,
			 struct exporter_stats *ret_exporter);
	void (*done)(void *ctx);
	void *ctx;
};

/* As web/address.h has what `listen' says; NULL: a path without the prefix. */
const char *endpoint_bare_address(const char *listen);
/* Of the configuration's `listen': 0, or -EINVAL with a sentence. */
int endpoint_check(const char *listen, char *ret_error, size_t error_size);
/* -errno, with a sentence in @ret_error. */
int endpoint_open(const char *listen, const struct endpoint_ops *ops, struct endpoint **ret_endpoint,
		  char *ret_error, size_t error_size);
void endpoint_close(struct endpoint *endpoint);	/* NULL is fine */

/* Its address and requests, for the next snapshot. From any thread. */
void endpoint_tell(const struct endpoint *endpoint, struct snapshot *snapshot);

#endif /* STACKTAP_SERVICE_ENDPOINT_H */
