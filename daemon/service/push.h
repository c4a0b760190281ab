/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon's counters, sent to an OTLP receiver every minute or so by a thread of its own. Sums are cumulative, so
 * one that was not taken costs resolution alone: nothing is kept for another try.
 */
#ifndef STACKTAP_SERVICE_PUSH_H
#define STACKTAP_SERVICE_PUSH_H

#include "service/config.h"
#include "service/endpoint.h"
#include "service/otlp_metrics.h"

struct push;

/*
 * What [metrics] asks for: *ret_push NULL where that is nothing. @ops as of an endpoint, @series lasts as long as the
 * push, and is its thread's; the first request is due an interval after its time. -errno, with a sentence in @ret_error.
 */
int push_open(const struct config *config, const struct endpoint_ops *ops, struct otlp_series *series,
	      struct push **ret_push, char *ret_error, size_t error_size);
/*
 * Returns after the request that is on its way, PUSH_TIMEOUT_MS at most. @with_last: and, unless the one before failed,
 * after another one of PUSH_LAST_MS at most with what was counted since. NULL is fine.
 */
void push_close(struct push *push, bool with_last);

enum { PUSH_TIMEOUT_MS = 10000, PUSH_LAST_MS = 2000 };

/* Its receiver and its requests, for the next snapshot. From any thread. */
void push_tell(struct push *push, struct snapshot *snapshot);

#endif /* STACKTAP_SERVICE_PUSH_H */
