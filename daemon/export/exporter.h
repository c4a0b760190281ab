/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Thread C's last step: payloads to an OTLP receiver, over HTTP or gRPC, or into the local store.
 *
 * Retries as the OTLP specification says: 429, 502, 503, 504 and broken connections, with Retry-After
 * or exponential back-off and jitter; everything else is dropped and counted.
 *
 * With a spool each payload is in it before its first try, and leaves it when it is taken or refused; it is
 * synced to disk once it has to wait. What a run leaves behind the next one sends, oldest first. What the
 * spool cannot take (disk full, read-only) waits in memory, as all does without one, bounded by
 * POOL_QUEUES, oldest dropped first and counted; it is sent once the spool is empty. One that is never taken, while a
 * later one is, is dropped. No call blocks longer than the request's timeout and the disk; exporter_stop() gives what
 * waits in memory a last try within a deadline.
 */
#ifndef STACKTAP_EXPORT_EXPORTER_H
#define STACKTAP_EXPORT_EXPORTER_H

#include "base/macro.h"
#include "export/encode.h"
#include "export/exporter_options.h"
#include "export/journal.h"
#include "export/store.h"

struct exporter;

/* The options' strings stay the caller's and last as long as the exporter. */
int exporter_new(const struct exporter_options *options, struct exporter **ret_exporter);
/* Takes payload->data. An error is counted and told in last_error as well. */
int exporter_send(struct exporter *exporter, struct payload *payload);
/*
 * Keep a part of a window on disk until exporter_send() has the last payload of that window, or
 * exporter_window_done() says that there is none. Takes payload->data. From any thread.
 */
int exporter_journal(struct exporter *exporter, struct payload *payload);
/* Rules may leave out what the last payload would have been made of. */
void exporter_window_done(struct exporter *exporter, uint64_t window);
/* Is there a directory for it by now? From any thread, and waits for none. */
bool exporter_has_journal(const struct exporter *exporter);
/* Try what is due; returns milliseconds until the next try is due, -1: nothing waits. */
int exporter_poll(struct exporter *exporter);
/* Last tries of what waits in memory until @deadline_ms from now, then it is dropped and counted. */
void exporter_stop(struct exporter *exporter, unsigned int deadline_ms);
void exporter_free(struct exporter *exporter);

struct exporter_stats {
	uint64_t payloads_sent, payloads_dropped, payloads_stored, payloads_waiting;
	uint64_t samples_sent, samples_dropped, samples_waiting;
	uint64_t bytes_raw, bytes_sent;	/* of what was accepted: before and after compression */
	uint64_t retries, throttled, partial_rejected, partial_warnings, bad_responses;
	uint64_t connections;
	char last_error[256];		/* empty once a payload is taken again */
	struct store_stats spool;	/* its losses and what waits are in the numbers above, too */
	char spool_error[128];		/* empty once it takes a payload again */
	struct journal_stats journal;
};
/* From any thread. */
void exporter_stats(struct exporter *exporter, struct exporter_stats *ret_stats);

#endif /* STACKTAP_EXPORT_EXPORTER_H */
