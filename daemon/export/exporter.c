// SPDX-License-Identifier: Apache-2.0
#include "export/exporter.h"

#include <inttypes.h>
#include <pthread.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/pool.h"
#include "export/gzip.h"
#include "export/http.h"
#include "export/store.h"

#define REQUEST_MAX ((size_t)64 << 20)	/* uncompressed, by the specification */
#define TIMEOUT_MS 10000
#define BACKOFF_MIN_MS 1000
#define BACKOFF_MAX_MS 30000
#define COMPLAIN_NS (60 * NSEC_PER_SEC)	/* between two that say the same */
#define COMPLAINTS 4u			/* that are told apart */
/* Of the pool, in quarters: what waits here must not stop the queues between the threads. */
#define QUEUE_SHARE 3

/* What waits for another try. */
struct waiting {
	struct waiting *next;
	uint8_t *body;
	size_t size, raw_size;
	size_t charged;			/* to POOL_QUEUES, since it waits */
	uint64_t samples;
	bool is_gzip;
};

/* What was logged of the receiver, when, and how often it has been so since. */
struct complaint {
	long status;
	int error;
	char text[sizeof(((struct http_answer *)NULL)->text)];
	uint64_t time;		/* 0: none */
	uint64_t more;
};

struct exporter {
	struct http *http;		/* NULL: no endpoint */
	struct store *store;		/* NULL: no local store */
	bool compress;
	unsigned int timeout_ms, backoff_min_ms, backoff_max_ms;
	unsigned int backoff_ms;	/* next pause, 0: the last try went well */
	uint64_t next_try;		/* CLOCK_MONOTONIC ns, while something waits */
	struct waiting *first, **last;
	size_t waiting_bytes;
	struct complaint complaints[COMPLAINTS];
	unsigned int next_complaint;
	struct exporter_stats stats;	/* thread C's */
	pthread_mutex_t lock;		/* of published */
	struct exporter_stats published;
};

/* Another thread may ask for the counts while a request is under way. */
static void publish(struct exporter *exporter)
{
	pthread_mutex_lock(&exporter->lock);
	exporter->published = exporter->stats;
	pthread_mutex_unlock(&exporter->lock);
}

int exporter_new(const struct exporter_options *options, struct exporter **ret_exporter)
{
	struct exporter *exporter = calloc(1, sizeof(*exporter));
	int err = 0;

	if (!exporter)
		return -ENOMEM;
	pthread_mutex_init(&exporter->lock, NULL);
	exporter->last = &exporter->first;
	exporter->compress = options->compress;
	exporter->timeout_ms = options->timeout_ms ? options->timeout_ms : TIMEOUT_MS;
	exporter->backoff_min_ms = options->backoff_min_ms ? options->backoff_min_ms :
							     BACKOFF_MIN_MS;
	exporter->backoff_max_ms = options->backoff_max_ms ? options->backoff_max_ms :
							     BACKOFF_MAX_MS;
	if (options->endpoint)
		err = http_new(options, &exporter->http);
	if (!err && options->store_directory)
		err = store_open(options->store_directory, options->store_max_bytes,
				 &exporter->store);
	if (err) {
		exporter_free(exporter);
		return err;
	}
	*ret_exporter = exporter;
	return 0;
}

static void waiting_free(struct waiting *waiting)
{
	pool_uncharge(POOL_QUEUES, waiting->charged);
	free(waiting->body);
	free(waiting);
}

static void waiting_drop(struct exporter *exporter, struct waiting *waiting)
{
	exporter->stats.payloads_dropped++;
	exporter->stats.samples_dropped += waiting->samples;
	waiting_free(waiting);
}

/* It stays charged: it may come back. */
static struct waiting *queue_pop(struct exporter *exporter)
{
	struct waiting *waiting = exporter->first;

	exporter->first = waiting->next;
	if (!exporter->first)
		exporter->last = &exporter->first;
	exporter->stats.payloads_waiting--;
	exporter->waiting_bytes -= waiting->size;
	return waiting;
}

/* The newest profiles are worth most: the oldest make room. */
static void queue_push(struct exporter *exporter, struct waiting *waiting)
{
	const size_t share = pool_get(POOL_QUEUES)->limit / 4 * QUEUE_SHARE;

	/* one that could never fit does not drive the others out */
	if (waiting->size > share) {
		waiting_drop(exporter, waiting);
		return;
	}
	while (exporter->waiting_bytes + waiting->size > share ||
	       !pool_charge(POOL_QUEUES, waiting->size)) {
		if (!exporter->first) {
			waiting_drop(exporter, waiting);
			return;
		}
		waiting_drop(exporter, queue_pop(exporter));
	}
	waiting->charged = waiting->size;
	waiting->next = NULL;
	*exporter->last = waiting;
	exporter->last = &waiting->next;
	exporter->waiting_bytes += waiting->size;
	exporter->stats.payloads_waiting++;
}

/* Back to where it came from: it is still the oldest. */
static void queue_unpop(struct exporter *exporter, struct waiting *waiting)
{
	waiting->next = exporter->first;
	exporter->first = waiting;
	if (!waiting->next)
		exporter->last = &waiting->next;
	exporter->waiting_bytes += waiting->size;
	exporter->stats.payloads_waiting++;
}

/* Half of the pause is certain, half random, so that a fleet does not come back in step. */
static void schedule(struct exporter *exporter, int64_t retry_after_ms)
{
	uint64_t pause_ms;
	uint32_t random = 0;

	/* a receiver that says "at once" gets the usual pause: that it is in trouble is certain */
	if (retry_after_ms > 0) {
		pause_ms = (uint64_t)retry_after_ms;
	} else {
		exporter->backoff_ms = exporter->backoff_ms ? exporter->backoff_ms * 2 :
							      exporter->backoff_min_ms;
		exporter->backoff_ms = min_of(exporter->backoff_ms, exporter->backoff_max_ms);
		if (getrandom(&random, sizeof(random), GRND_NONBLOCK) < 0)
			random = (uint32_t)clock_monotonic();
		pause_ms = exporter->backoff_ms / 2;
		pause_ms += random % (exporter->backoff_ms - pause_ms + 1);
	}
	exporter->next_try = clock_monotonic() + pause_ms * NSEC_PER_MSEC;
}

static struct complaint *find_complaint(struct exporter *exporter, const struct http_answer *answer)
{
	for (unsigned int i = 0; i < COMPLAINTS; i++) {
		struct complaint *complaint = &exporter->complaints[i];

		if (complaint->time && complaint->status == answer->status &&
		    complaint->error == answer->error &&
		    (!answer->status || !strcmp(complaint->text, answer->text)))
			return complaint;
	}
	return NULL;
}

/* The first of a kind at once, then once a minute with their number. */
static void complain(struct exporter *exporter, const char *what, const struct http_answer *answer)
{
	struct complaint *complaint = find_complaint(exporter, answer);
	const uint64_t now = clock_monotonic();

	if (complaint && now - complaint->time < COMPLAIN_NS) {
		complaint->more++;
		return;
	}
	if (complaint && complaint->more) {
		log_warning("the receiver %s: %s (%" PRIu64 " times more)", what, answer->text,
			    complaint->more);
	} else {
		log_warning("the receiver %s: %s", what, answer->text);
	}
	if (!complaint)
		complaint = &exporter->complaints[exporter->next_complaint++ % COMPLAINTS];
	*complaint = (struct complaint){ .status = answer->status, .error = answer->error, .time = now };
	snprintf(complaint->text, sizeof(complaint->text), "%s", answer->text);
}

static void stop_complaining(struct exporter *exporter)
{
	bool any = false;

	for (unsigned int i = 0; i < COMPLAINTS; i++)
		any |= exporter->complaints[i].time;
	if (any)
		log_info("the receiver takes profiles again");
	memset(exporter->complaints, 0, sizeof(exporter->complaints));
}

/* True when it is done with, for better or worse; false when it must wait. */
static bool try_send(struct exporter *exporter, const struct waiting *waiting,
		     unsigned int timeout_ms)
{
	struct exporter_stats *stats = &exporter->stats;
	struct http_answer answer;

	http_post(exporter->http, waiting->body, waiting->size, waiting->is_gzip, timeout_ms,
		  &answer);
	stats->connections += (uint64_t)max_of(answer.connections, 0L);
	stats->bad_responses += answer.is_bad;
	stats->throttled += answer.is_throttled;
	/* an error is over when a payload is taken; a warning comes with one that is */
	if (answer.text[0] || answer.result == HTTP_ACCEPTED)
		snprintf(stats->last_error, sizeof(stats->last_error), "%s", answer.text);
	switch (answer.result) {
	case HTTP_ACCEPTED:
		stats->payloads_sent++;
		stats->samples_sent += waiting->samples;
		stats->bytes_raw += waiting->raw_size;
		stats->bytes_sent += waiting->size;
		stats->partial_rejected += (uint64_t)answer.rejected;
		stats->partial_warnings += answer.has_warning;
		exporter->backoff_ms = 0;
		stop_complaining(exporter);
		return true;
	case HTTP_RETRY:
		complain(exporter, "did not take a payload, which is sent again", &answer);
		schedule(exporter, answer.retry_after_ms);
		return false;
	case HTTP_REFUSED:
		break;
	}
	complain(exporter, "refused a payload, which is dropped", &answer);
	stats->payloads_dropped++;
	stats->samples_dropped += waiting->samples;
	exporter->backoff_ms = 0;
	return true;
}

/* The body to send: compressed, or the payload as it is when that is not wanted or fails. */
static struct waiting *waiting_new(struct exporter *exporter, struct payload *payload)
{
	struct buffer body;
	struct waiting *waiting = calloc(1, sizeof(*waiting));

	if (!waiting)
		return NULL;
	waiting->raw_size = payload->size;
	waiting->samples = payload->samples;
	buffer_init(&body, POOL_ENCODE);
	if (exporter->compress && !gzip_compress(&body, payload->data, payload->size)) {
		/* the pool of the queue takes over; no bytes are kept that are not sent */
		pool_uncharge(POOL_ENCODE, body.capacity);
		waiting->body = realloc(body.data, body.size);
		if (!waiting->body)
			waiting->body = body.data;
		waiting->size = body.size;
		waiting->is_gzip = true;
		free(steal_ptr(payload->data));
		return waiting;
	}
	buffer_free(&body);
	waiting->body = steal_ptr(payload->data);
	waiting->size = payload->size;
	return waiting;
}

static int store_payload(struct exporter *exporter, const struct payload *payload)
{
	int err = store_append(exporter->store, payload->data, payload->size);

	if (!err) {
		exporter->stats.payloads_stored++;
		if (!exporter->http)
			exporter->stats.last_error[0] = '\0';
		return 0;
	}
	snprintf(exporter->stats.last_error, sizeof(exporter->stats.last_error),
		 "The local store: %s", strerror(-err));
	if (!exporter->http) {
		exporter->stats.payloads_dropped++;
		exporter->stats.samples_dropped += payload->samples;
	}
	return err;
}

static int send_payload(struct exporter *exporter, struct payload *payload)
{
	struct waiting *waiting;
	int err = 0;

	if (exporter->store)
		err = store_payload(exporter, payload);
	if (!exporter->http)
		return err;
	waiting = payload->size <= REQUEST_MAX ? waiting_new(exporter, payload) : NULL;
	if (!waiting) {
		exporter->stats.payloads_dropped++;
		exporter->stats.samples_dropped += payload->samples;
		return -ENOMEM;
	}
	/* in order, and no request while a pause is on */
	if (exporter->first || !try_send(exporter, waiting, exporter->timeout_ms))
		queue_push(exporter, waiting);
	else
		waiting_free(waiting);
	return 0;
}

int exporter_send(struct exporter *exporter, struct payload *payload)
{
	int err = send_payload(exporter, payload);

	free(steal_ptr(payload->data));
	publish(exporter);
	return err;
}

/* 0: a try is due; -1: nothing waits. */
static int wait_ms(const struct exporter *exporter)
{
	uint64_t now = clock_monotonic();

	if (!exporter->first)
		return -1;
	if (now >= exporter->next_try)
		return 0;
	return (int)((exporter->next_try - now + NSEC_PER_MSEC - 1) / NSEC_PER_MSEC);
}

int exporter_poll(struct exporter *exporter)
{
	struct waiting *waiting;
	int wait = wait_ms(exporter);

	if (wait)
		return wait;
	waiting = queue_pop(exporter);
	exporter->stats.retries++;
	if (!try_send(exporter, waiting, exporter->timeout_ms)) {
		queue_unpop(exporter, waiting);
	} else {
		waiting_free(waiting);
		/* one request per call; the next one may follow at once */
		exporter->next_try = 0;
	}
	publish(exporter);
	return wait_ms(exporter);
}

void exporter_stop(struct exporter *exporter, unsigned int deadline_ms)
{
	uint64_t end = clock_monotonic() + deadline_ms * NSEC_PER_MSEC, now;
	struct waiting *waiting;
	unsigned int left_ms;

	while (exporter->first) {
		waiting = queue_pop(exporter);
		now = clock_monotonic();
		if (now + NSEC_PER_MSEC <= end) {
			left_ms = (unsigned int)((end - now) / NSEC_PER_MSEC);
			exporter->stats.retries++;
			if (try_send(exporter, waiting, min_of(left_ms, exporter->timeout_ms))) {
				waiting_free(waiting);
				continue;
			}
		}
		waiting_drop(exporter, waiting);
	}
	publish(exporter);
}

void exporter_free(struct exporter *exporter)
{
	if (!exporter)
		return;
	while (exporter->first)
		waiting_free(queue_pop(exporter));
	http_free(exporter->http);
	store_close(exporter->store);
	pthread_mutex_destroy(&exporter->lock);
	free(exporter);
}

void exporter_stats(struct exporter *exporter, struct exporter_stats *ret_stats)
{
	pthread_mutex_lock(&exporter->lock);
	*ret_stats = exporter->published;
	pthread_mutex_unlock(&exporter->lock);
}
