/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Thread C's last step: payloads to OTLP receivers (export/destination.h) or into the local store, and the
 * journal of open windows.
 *
 * Each payload is compressed once for all destinations that want it so. A single destination is served by
 * thread C; of several each has a thread of its own, so that none waits for another one's receiver. What waits
 * in memory is bounded by POOL_QUEUES for all of them together: the oldest is dropped first, and counted. No
 * call blocks longer than one request's timeout and the disk; exporter_stop() gives what waits in memory a last
 * try within a deadline.
 */
#ifndef STACKTAP_EXPORT_EXPORTER_H
#define STACKTAP_EXPORT_EXPORTER_H

#include "base/macro.h"
#include "export/cut.h"
#include "export/destination.h"
#include "export/encode.h"
#include "export/journal.h"

struct exporter;

enum { EXPORTER_DESTINATIONS = 8 };

struct exporter_options {
	const struct destination_options *destinations;
	size_t destination_count;	/* EXPORTER_DESTINATIONS at most; 0: local store only */
	unsigned int form_count;	/* that each window comes in, 0: one */
	const char *store_directory;	/* NULL: no local store */
	uint64_t store_max_bytes, store_max_age_ms;
	bool with_journal;		/* in the directory of the first spool, or the store's */
};

/* The options' strings stay the caller's and last as long as the exporter. */
int exporter_new(const struct exporter_options *options, struct exporter **ret_exporter);
/* Takes payload->data. An error is counted and told in last_error as well. */
int exporter_send(struct exporter *exporter, struct payload *payload);
/*
 * Keep a cut of a window on disk until exporter_send() has the last payload of that window, or
 * exporter_window_done() says that there is none. From any thread; journal_add()'s errors.
 */
int exporter_journal(struct exporter *exporter, const struct cut *cut, const uint8_t *data, size_t size);
/* Rules may leave out what the last payload would have been made of. */
void exporter_window_done(struct exporter *exporter, uint64_t window);
/* Bytes that a file of the journal is to have at most, 0: there is no directory for it yet. From any thread, waits for none. */
uint64_t exporter_journal_room(const struct exporter *exporter);
/* Does more than one payload wait for some receiver? From any thread, waits for none. */
bool exporter_is_behind(const struct exporter *exporter);
/* Try what is due; returns milliseconds until the next try is due, -1: nothing waits. */
int exporter_poll(struct exporter *exporter);
/* Last tries of what waits in memory until @deadline_ms from now, then it is dropped and counted. */
void exporter_stop(struct exporter *exporter, unsigned int deadline_ms);
void exporter_free(struct exporter *exporter);

struct exporter_stats {
	struct destination_stats sum;	/* of all, with the last error of any */
	struct destination_stats destinations[EXPORTER_DESTINATIONS];
	size_t destination_count;
	uint64_t payloads_stored;
	struct journal_stats journal;
};
/* From any thread. */
void exporter_stats(struct exporter *exporter, struct exporter_stats *ret_stats);

#endif /* STACKTAP_EXPORT_EXPORTER_H */
