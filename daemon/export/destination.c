// SPDX-License-Identifier: Apache-2.0
#include "export/destination.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "export/backoff.h"
#include "export/complaint.h"
#include "export/encoding.h"
#include "export/spool.h"
#include "export/waiting.h"

#define TIMEOUT_MS 10000
#define BACKOFF_MIN_MS 1000
#define BACKOFF_MAX_MS 30000
#define SPOOL_RETRY_MS 60000
#define FAILURES_MAX 8u			/* in a row, before a later payload is tried */

struct destination {
	struct destination_options options;
	struct http *http;		/* the poller's */
	pthread_mutex_t lock;		/* of all that follows; never held during a request */
	pthread_cond_t changed;
	bool is_awake;			/* there was reason to poll since destination_wait() */
	struct spool *spool;
	/* the newest, to be sent at once, in the poller's hands afterwards */
	struct body *body;		/* NULL: none */
	enum destination_want want;
	uint64_t number;		/* in the spool */
	uint64_t tried;			/* the last that was sent from the spool; 0: none */
	bool is_busy;			/* something is in its hands that does not wait elsewhere */
	struct waiting_list waiting;	/* in memory alone */
	struct encoding encoding;
	struct backoff backoff;		/* while something waits */
	unsigned int failures;		/* of the oldest, in a row */
	bool is_oldest_bad;		/* a later one was taken while it was not */
	struct complaints complaints;
	struct destination_stats stats;
	pthread_mutex_t publishing;	/* of published: a disk that is slow delays nobody who asks */
	struct destination_stats published;
};

/* Another thread may ask for the counts while a request is under way. */
static void publish(struct destination *destination)
{
	struct destination_stats stats = destination->stats;

	stats.spool = spool_stats(destination->spool);
	snprintf(stats.spool_error, sizeof(stats.spool_error), "%s", spool_error(destination->spool));
	stats.payloads_waiting += stats.spool.messages;
	stats.samples_waiting += stats.spool.samples;
	stats.payloads_dropped += spool_losses(&stats.spool);
	stats.samples_dropped += stats.spool.full_samples + stats.spool.old_samples +
				 stats.spool.damaged_samples;
	pthread_mutex_lock(&destination->publishing);
	destination->published = stats;
	pthread_mutex_unlock(&destination->publishing);
}

static void unlock(struct destination *destination)
{
	publish(destination);
	pthread_mutex_unlock(&destination->lock);
}

int destination_new(const struct destination_options *options, struct destination **ret_destination)
{
	struct destination *destination = calloc(1, sizeof(*destination));
	struct destination_options *own;
	pthread_condattr_t monotonic;
	int err;

	if (!destination)
		return -ENOMEM;
	pthread_mutex_init(&destination->lock, NULL);
	pthread_mutex_init(&destination->publishing, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&destination->changed, &monotonic);
	pthread_condattr_destroy(&monotonic);
	waiting_list_init(&destination->waiting);
	own = &destination->options;
	*own = *options;
	own->timeout_ms = own->timeout_ms ? own->timeout_ms : TIMEOUT_MS;
	destination->backoff.min_ms = options->backoff_min_ms ? options->backoff_min_ms : BACKOFF_MIN_MS;
	destination->backoff.max_ms = options->backoff_max_ms ? options->backoff_max_ms : BACKOFF_MAX_MS;
	destination->encoding.name = options->name;
	destination->encoding.compression = options->compression;
	destination->complaints.name = options->name;
	err = http_new(&options->http, &destination->http);
	if (!err)
		err = spool_new(&(struct spool_options){
			.directory = options->spool_directory,
			.max_bytes = options->spool_max_bytes,
			.max_age_ms = options->spool_max_age_ms,
			.retry_ms = options->spool_retry_ms ? options->spool_retry_ms : SPOOL_RETRY_MS,
			.name = options->name,
			.recovered_form = options->recovered_form,
		}, &destination->spool);
	if (err) {
		destination_free(destination);
		return err;
	}
	publish(destination);
	*ret_destination = destination;
	return 0;
}

static void count_dropped(struct destination *destination, uint64_t samples)
{
	destination->stats.payloads_dropped++;
	destination->stats.samples_dropped += samples;
}

static void count_waiting(struct destination *destination, const struct body *body)
{
	destination->stats.payloads_waiting++;
	destination->stats.samples_waiting += body->samples;
}

static void count_left(struct destination *destination, const struct body *body)
{
	destination->stats.payloads_waiting--;
	destination->stats.samples_waiting -= body->samples;
}

/* Takes the caller's reference. @is_oldest: back to where it came from. */
static void queue_push(struct destination *destination, struct body *body, bool is_oldest)
{
	struct waiting *waiting = waiting_new(body);

	if (!waiting) {
		count_dropped(destination, body->samples);
		count_left(destination, body);
		body_unref(body);
	} else if (is_oldest) {
		waiting_prepend(&destination->waiting, waiting);
	} else {
		waiting_append(&destination->waiting, waiting);
	}
}

static void queue_drop(struct destination *destination)
{
	struct waiting *waiting = waiting_pop(&destination->waiting);

	count_dropped(destination, waiting->body->samples);
	count_left(destination, waiting->body);
	waiting_free(waiting);
}

uint64_t destination_oldest(struct destination *destination)
{
	uint64_t number;

	pthread_mutex_lock(&destination->lock);
	number = destination->waiting.first ? destination->waiting.first->body->number : UINT64_MAX;
	pthread_mutex_unlock(&destination->lock);
	return number;
}

void destination_drop_oldest(struct destination *destination, uint64_t number)
{
	pthread_mutex_lock(&destination->lock);
	if (destination->waiting.first && destination->waiting.first->body->number == number)
		queue_drop(destination);
	unlock(destination);
}

uint64_t destination_spool_opened(struct destination *destination)
{
	uint64_t opened;

	pthread_mutex_lock(&destination->lock);
	opened = spool_opened(destination->spool);
	pthread_mutex_unlock(&destination->lock);
	return opened;
}

struct body *destination_body(const struct destination *destination, struct cargo *cargo)
{
	return cargo_body(cargo, destination->options.http.protocol == PROTOCOL_HTTP_JSON,
			  atomic_load(&destination->encoding.compression));
}

static bool something_waits(const struct destination *destination)
{
	return destination->is_busy || destination->body || destination->waiting.first ||
	       spool_waits(destination->spool);
}

/*
 * The oldest is not taken, again and again. If a new one is, it is not the receiver, but something about the
 * oldest, which would hold up the others for as long as it may wait: it is dropped.
 */
static bool may_go_around(const struct destination *destination)
{
	return destination->failures >= FAILURES_MAX && !destination->body && !destination->is_busy &&
	       !(destination->backoff.is_told_to_wait && clock_monotonic() < destination->backoff.next_try);
}

enum destination_want destination_keep(struct destination *destination, const struct payload *payload,
				       uint64_t *ret_number)
{
	enum destination_want want = WANT_MEMORY;
	bool must_wait;

	pthread_mutex_lock(&destination->lock);
	spool_open(destination->spool);
	/* in order, and no request while a pause is on */
	must_wait = something_waits(destination);
	if (spool_append(destination->spool, payload, ret_number)) {
		want = !must_wait ? WANT_SPOOLED : may_go_around(destination) ? WANT_AROUND : WANT_NOTHING;
		if (want == WANT_NOTHING)
			spool_sync(destination->spool);
	}
	destination->is_awake = true;
	pthread_cond_signal(&destination->changed);
	unlock(destination);
	return want;
}

bool destination_hand(struct destination *destination, enum destination_want want, struct body *body,
		      uint64_t number)
{
	bool is_at_once;

	pthread_mutex_lock(&destination->lock);
	if (want == WANT_MEMORY)
		count_waiting(destination, body);
	is_at_once = want == WANT_MEMORY ? !something_waits(destination) : !destination->body;
	/* the poller may have found it in the spool since destination_keep() */
	is_at_once &= want != WANT_SPOOLED || destination->tried != number;
	if (is_at_once) {
		destination->body = body_ref(body);
		destination->want = want;
		destination->number = number;
	} else if (want == WANT_MEMORY) {
		queue_push(destination, body_ref(body), false);
	} else {
		spool_sync(destination->spool);
	}
	destination->is_awake = true;
	pthread_cond_signal(&destination->changed);
	unlock(destination);
	return is_at_once;
}

void destination_miss(struct destination *destination, enum destination_want want, uint64_t samples)
{
	if (want == WANT_NOTHING)
		return;
	pthread_mutex_lock(&destination->lock);
	if (want == WANT_MEMORY)
		count_dropped(destination, samples);
	else
		spool_sync(destination->spool);
	unlock(destination);
}

static void count_answer(struct destination_stats *stats, const struct http_answer *answer)
{
	stats->connections += (uint64_t)max_of(answer->connections, 0L);
	stats->bad_responses += answer->is_bad;
	stats->throttled += answer->is_throttled;
	/* an error is over when a payload is taken; a warning comes with one that is */
	if (answer->text[0] || answer->result == HTTP_ACCEPTED)
		snprintf(stats->last_error, sizeof(stats->last_error), "%s", answer->text);
}

static void count_accepted(struct destination_stats *stats, const struct body *body,
			   const struct http_answer *answer)
{
	stats->payloads_sent++;
	stats->samples_sent += body->samples;
	stats->bytes_raw += body->plain_size;
	stats->bytes_sent += body->size;
	stats->partial_rejected += (uint64_t)answer->rejected;
	stats->partial_warnings += answer->has_warning;
}

static void post(struct destination *destination, const struct body *body, unsigned int timeout_ms,
		 struct http_answer *ret_answer)
{
	pthread_mutex_unlock(&destination->lock);
	http_post(destination->http, body->data, body->size, body->compression, timeout_ms, ret_answer);
	pthread_mutex_lock(&destination->lock);
	count_answer(&destination->stats, ret_answer);
}

/* As it is, or compressed otherwise where the receiver takes no zstd: *ret_again then. -ENOMEM: not now. */
static int post_body(struct destination *destination, const struct body *body, unsigned int timeout_ms,
		     struct http_answer *ret_answer, struct body **ret_again)
{
	*ret_again = NULL;
	if (encoding_suits(&destination->encoding, body->compression)) {
		post(destination, body, timeout_ms, ret_answer);
		if (encoding_learn(&destination->encoding, body->compression, ret_answer))
			return 0;
	}
	*ret_again = body_again(body, COMPRESSION_GZIP);
	if (!*ret_again)
		return -ENOMEM;
	post(destination, *ret_again, timeout_ms, ret_answer);
	return 0;
}

/* Without the lock meanwhile. True when it is done with, for better or worse; false when it must wait. */
static bool try_send(struct destination *destination, const struct body *body, unsigned int timeout_ms)
{
	struct http_answer answer;
	struct body *again;

	if (post_body(destination, body, timeout_ms, &answer, &again)) {
		backoff_begin(&destination->backoff, 0);
		return false;
	}
	if (answer.result == HTTP_ACCEPTED)
		count_accepted(&destination->stats, again ?: body, &answer);
	body_unref(again);
	switch (answer.result) {
	case HTTP_ACCEPTED:
		backoff_end(&destination->backoff);
		destination->failures = 0;
		complaints_end(&destination->complaints);
		return true;
	case HTTP_RETRY:
		complain(&destination->complaints, "did not accept a payload, which is sent again", &answer);
		backoff_begin(&destination->backoff, answer.retry_after_ms);
		destination->failures++;
		return false;
	case HTTP_UNCONFIRMED:
		complain(&destination->complaints, "did not confirm a payload, which is not sent again", &answer);
		destination->stats.payloads_unconfirmed++;
		destination->stats.samples_unconfirmed += body->samples;
		/* one that knows how to confirm does so again some day: what waits must not all go before */
		if (destination->stats.payloads_sent)
			backoff_begin(&destination->backoff, 0);
		else
			backoff_end(&destination->backoff);
		destination->failures = 0;
		return true;
	case HTTP_REFUSED:
		break;
	}
	complain(&destination->complaints, "refused a payload, which is dropped", &answer);
	count_dropped(destination, body->samples);
	/* a receiver that refuses all for a while, its token expired, costs one of those that wait per pause */
	backoff_begin(&destination->backoff, 0);
	destination->failures = 0;
	return true;
}

/* The newest, which was handed over. */
static void try_newest(struct destination *destination, unsigned int timeout_ms)
{
	struct body *body = steal_ptr(destination->body);
	const enum destination_want want = destination->want;
	const uint64_t number = destination->number;
	const uint64_t sent = destination->stats.payloads_sent;
	bool is_done;

	/* the oldest was taken meanwhile, or something of those before */
	if (want == WANT_AROUND && destination->failures < FAILURES_MAX) {
		spool_sync(destination->spool);
		body_unref(body);
		return;
	}
	if (want == WANT_AROUND)
		destination->failures = 0;
	if (want != WANT_MEMORY)
		spool_lend(destination->spool, number, body->samples);
	destination->is_busy = true;
	is_done = try_send(destination, body, timeout_ms);
	destination->is_busy = false;
	if (want == WANT_MEMORY && !is_done) {
		queue_push(destination, body, true);
		return;
	}
	if (want == WANT_MEMORY) {
		count_left(destination, body);
	} else if (!is_done) {
		spool_return(destination->spool);
		spool_sync(destination->spool);
	} else if (want == WANT_SPOOLED) {
		spool_take(destination->spool, number);
	} else {
		spool_retract(destination->spool, number, body->payload_size, body->samples);
		/* one that was refused says nothing of the oldest */
		destination->is_oldest_bad = destination->stats.payloads_sent > sent;
	}
	body_unref(body);
}

/* The oldest of the spool: 1, 0: none waits, -EAGAIN: there is no memory for it now, -E2BIG: nor for its JSON. */
static int read_spool(struct destination *destination, struct body **ret_body, uint64_t *ret_number,
		      uint64_t *ret_samples)
{
	/* it is here twice, raw and compressed; one of more than that no run could have encoded */
	const size_t max_bytes = pool_get(POOL_ENCODE)->limit / 2;
	struct payload payload;
	struct cargo cargo;
	size_t size;
	int ret;

	ret = spool_oldest(destination->spool, max_bytes, &payload, ret_number);
	if (ret != 1)
		return ret;
	*ret_samples = payload.samples;
	size = payload.size;
	ret = -EAGAIN;
	if (pool_charge(POOL_ENCODE, size)) {
		if (!cargo_init(&cargo, &payload, 0)) {
			*ret_body = destination_body(destination, &cargo);
			ret = *ret_body ? 1 : -E2BIG;
			if (*ret_body)
				body_ref(*ret_body);
			cargo_done(&cargo);
		}
		pool_uncharge(POOL_ENCODE, size);
	}
	free(payload.data);
	return ret;
}

static void drop_bad(struct destination *destination, const struct body *body)
{
	log_warning("a payload of %" PRIu64 " samples is dropped: the receiver takes others, but never this one",
		    body->samples);
	count_dropped(destination, body->samples);
	destination->failures = 0;
	destination->backoff.next_try = 0;
}

/* What a run with another protocol left may be too large for as long as it waits. */
static void pass_over(struct destination *destination, uint64_t number, uint64_t samples)
{
	if (++destination->failures < FAILURES_MAX)
		return spool_return(destination->spool);
	log_warning("a payload in the spool is dropped: there is no memory for it as JSON; set protocol = "
		    "http/protobuf");
	count_dropped(destination, samples);
	destination->failures = 0;
	spool_take(destination->spool, number);
}

static void try_spool(struct destination *destination, unsigned int timeout_ms)
{
	struct body *body;
	uint64_t number = 0, samples = 0;
	bool is_done;
	int ret = read_spool(destination, &body, &number, &samples);

	if (ret < 0)
		backoff_begin(&destination->backoff, 0);
	if (ret == -E2BIG)
		pass_over(destination, number, samples);
	else if (ret != 1)
		spool_return(destination->spool);
	if (ret != 1)
		return;
	destination->stats.retries++;
	destination->tried = number;
	is_done = try_send(destination, body, timeout_ms);
	if (!is_done && destination->is_oldest_bad) {
		drop_bad(destination, body);
		is_done = true;
	}
	destination->is_oldest_bad = false;
	if (is_done)
		spool_take(destination->spool, number);
	else
		spool_return(destination->spool);
	body_unref(body);
}

static void try_queue(struct destination *destination, unsigned int timeout_ms)
{
	struct waiting *waiting = waiting_pop(&destination->waiting);
	bool is_done;

	destination->stats.retries++;
	destination->is_busy = true;
	is_done = try_send(destination, waiting->body, timeout_ms);
	destination->is_busy = false;
	if (!is_done) {
		waiting_prepend(&destination->waiting, waiting);
		return;
	}
	count_left(destination, waiting->body);
	waiting_free(waiting);
}

/* 0: a try is due; -1: nothing waits. */
static int wait_ms(const struct destination *destination)
{
	uint64_t now = clock_monotonic();

	if (destination->body)
		return 0;
	if (!something_waits(destination))
		return -1;
	if (now >= destination->backoff.next_try)
		return 0;
	return (int)((destination->backoff.next_try - now + NSEC_PER_MSEC - 1) / NSEC_PER_MSEC);
}

int destination_poll(struct destination *destination)
{
	const unsigned int timeout_ms = destination->options.timeout_ms;
	int wait;

	pthread_mutex_lock(&destination->lock);
	wait = wait_ms(destination);
	/* one request per call; after one that is taken the next one may follow at once */
	if (!wait) {
		if (destination->body)
			try_newest(destination, timeout_ms);
		else if (spool_waits(destination->spool))
			try_spool(destination, timeout_ms);
		else
			try_queue(destination, timeout_ms);
		wait = wait_ms(destination);
	}
	unlock(destination);
	return wait;
}

void destination_wait(struct destination *destination, int timeout_ms)
{
	const uint64_t end = clock_monotonic() + (uint64_t)max_of(timeout_ms, 0) * NSEC_PER_MSEC;
	const struct timespec until = { .tv_sec = (time_t)(end / NSEC_PER_SEC),
					.tv_nsec = (long)(end % NSEC_PER_SEC) };
	int err = 0;

	pthread_mutex_lock(&destination->lock);
	while (!destination->is_awake && !err)
		err = timeout_ms < 0 ? pthread_cond_wait(&destination->changed, &destination->lock) :
				       pthread_cond_timedwait(&destination->changed, &destination->lock, &until);
	destination->is_awake = false;
	pthread_mutex_unlock(&destination->lock);
}

void destination_wake(struct destination *destination)
{
	pthread_mutex_lock(&destination->lock);
	destination->is_awake = true;
	pthread_cond_signal(&destination->changed);
	pthread_mutex_unlock(&destination->lock);
}

/* No time is left for it. */
static void leave_newest(struct destination *destination)
{
	struct body *body = steal_ptr(destination->body);

	if (body && destination->want == WANT_MEMORY)
		queue_push(destination, body, true);
	else
		body_unref(body);
}

static unsigned int time_left(const struct destination *destination, uint64_t end)
{
	const uint64_t now = clock_monotonic();

	if (now + NSEC_PER_MSEC > end)
		return 0;
	return (unsigned int)min_of((end - now) / NSEC_PER_MSEC, (uint64_t)destination->options.timeout_ms);
}

void destination_stop(struct destination *destination, uint64_t end)
{
	unsigned int left_ms;

	pthread_mutex_lock(&destination->lock);
	left_ms = time_left(destination, end);
	if (destination->body && left_ms)
		try_newest(destination, left_ms);
	leave_newest(destination);
	/* a receiver that takes all has not been asked for these yet */
	while (!destination->backoff.next_try && spool_waits(destination->spool) &&
	       (left_ms = time_left(destination, end)))
		try_spool(destination, left_ms);
	while (destination->waiting.first) {
		left_ms = time_left(destination, end);
		if (left_ms) {
			struct waiting *oldest = destination->waiting.first;

			try_queue(destination, left_ms);
			if (destination->waiting.first != oldest)
				continue;
		}
		queue_drop(destination);
	}
	spool_sync(destination->spool);
	unlock(destination);
}

void destination_free(struct destination *destination)
{
	if (!destination)
		return;
	body_unref(destination->body);
	while (destination->waiting.first)
		waiting_free(waiting_pop(&destination->waiting));
	http_free(destination->http);
	spool_free(destination->spool);
	pthread_cond_destroy(&destination->changed);
	pthread_mutex_destroy(&destination->publishing);
	pthread_mutex_destroy(&destination->lock);
	free(destination);
}

void destination_stats(struct destination *destination, struct destination_stats *ret_stats)
{
	pthread_mutex_lock(&destination->publishing);
	*ret_stats = destination->published;
	pthread_mutex_unlock(&destination->publishing);
}

uint64_t destination_waiting(struct destination *destination)
{
	uint64_t waiting;

	pthread_mutex_lock(&destination->publishing);
	waiting = destination->published.payloads_waiting;
	pthread_mutex_unlock(&destination->publishing);
	return waiting;
}
