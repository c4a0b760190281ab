/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One OTLP receiver, and what waits for it.
 *
 * Retries as the OTLP specification says: 429, 502, 503, 504 and broken connections, with Retry-After
 * or exponential back-off and jitter; everything else is dropped and counted. What is answered by something that is no
 * answer of OTLP counts as neither taken nor dropped, and is not sent again: a receiver that always does so would have it
 * without end. From one that has confirmed others it costs one of those that wait per pause.
 *
 * With a spool each payload is in it before its first try, and leaves it when it is taken or refused; it is
 * synced to disk once it has to wait. What a run leaves behind the next one sends, oldest first. What the
 * spool cannot take (disk full, read-only) waits in memory, as all does without one; it is sent once the
 * spool is empty. One that is never taken, while a later one is, is dropped.
 *
 * One thread keeps payloads, the same or another one polls; neither waits for a request of the other's.
 */
#ifndef STACKTAP_EXPORT_DESTINATION_H
#define STACKTAP_EXPORT_DESTINATION_H

#include "export/body.h"
#include "export/http.h"
#include "export/store.h"

struct destination;

struct destination_options {
	const char *name;		/* "": there is but one */
	struct http_options http;
	unsigned int form;		/* of payloads that are for it, see struct payload */
	enum compression compression;
	unsigned int timeout_ms;	/* of one request, 0: 10 s */
	unsigned int backoff_min_ms;	/* first pause before a retry, doubled each time; 0: 1 s */
	unsigned int backoff_max_ms;	/* 0: 30 s */
	const char *spool_directory;	/* NULL: what waits does so in memory */
	uint64_t spool_max_bytes, spool_max_age_ms;
	const struct encode_form *recovered_form; /* of what a killed run's journal has, as a store's */
	unsigned int spool_retry_ms;	/* before one that could not be opened is tried again; 0: 60 s */
};

/* The options' strings and form stay the caller's and last as long as the destination. */
int destination_new(const struct destination_options *options, struct destination **ret_destination);
void destination_free(struct destination *destination);	/* NULL is fine */

/* Whether a payload's body is wanted, after it was put into the spool. */
enum destination_want {
	WANT_NOTHING,		/* it is there, and waits for those before it */
	WANT_SPOOLED,		/* it is there; the body can be sent at once */
	WANT_AROUND,		/* the same, though others wait */
	WANT_MEMORY,		/* it could not be put there */
};

enum destination_want destination_keep(struct destination *destination, const struct payload *payload,
				       uint64_t *ret_number);
/* The payload as its receiver wants it, NULL: there is no memory for that. It lives as long as the cargo. */
struct body *destination_body(const struct destination *destination, struct cargo *cargo);
/*
 * The body that destination_keep() wanted, and the number that it gave. One that waits in memory for another
 * try has to be charged. True: destination_poll() would send it at once.
 */
bool destination_hand(struct destination *destination, enum destination_want want, struct body *body,
		      uint64_t number);
/* It is not to be had: it waits in the spool, or is dropped where it is not there. */
void destination_miss(struct destination *destination, enum destination_want want, uint64_t samples);
/* Of what waits in memory, the number of the oldest payload: UINT64_MAX: none does. */
uint64_t destination_oldest(struct destination *destination);
/* Unless it is the oldest no more: it may have left meanwhile. */
void destination_drop_oldest(struct destination *destination, uint64_t number);
/* How often its spool was opened: 0: it is not to be had yet. */
uint64_t destination_spool_opened(struct destination *destination);

/* One request at most of what is due; returns milliseconds until the next try is due, -1: nothing waits. */
int destination_poll(struct destination *destination);
/* Wait until a payload comes, destination_wake() is called or for @timeout_ms, -1: for ever. */
void destination_wait(struct destination *destination, int timeout_ms);
void destination_wake(struct destination *destination);
/* Last tries of what waits in memory until @end, CLOCK_MONOTONIC ns; then it is dropped and counted. */
void destination_stop(struct destination *destination, uint64_t end);

struct destination_stats {
	uint64_t payloads_sent, payloads_dropped, payloads_waiting;
	uint64_t samples_sent, samples_dropped, samples_waiting;
	uint64_t payloads_unconfirmed, samples_unconfirmed;
	uint64_t bytes_raw, bytes_sent;	/* of what was accepted: before and after compression */
	uint64_t retries, throttled, partial_rejected, partial_warnings, bad_responses;
	uint64_t connections;
	char last_error[HTTP_TEXT_MAX];	/* empty once a payload is taken again */
	struct store_stats spool;	/* its losses and what waits are in the numbers above, too */
	char spool_error[128];		/* empty once it takes a payload again */
};
/* Payloads. From any thread, as is the next. */
uint64_t destination_waiting(struct destination *destination);
void destination_stats(struct destination *destination, struct destination_stats *ret_stats);

#endif /* STACKTAP_EXPORT_DESTINATION_H */
