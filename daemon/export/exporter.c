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
#define FAILURES_MAX 8u			/* in a row, before a later payload is tried */
/* Of the pool, in quarters: what waits here must not stop the queues between the threads. */
#define QUEUE_SHARE 3
#define JOURNAL_SHARE 8u	/* of the spool's or store's bytes */

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
	struct journal *journal;	/* NULL: none */
	struct store_options spool_options; /* directory NULL: no spool */
	struct store *spool;		/* NULL: none, or not to be had yet */
	struct store_stats spool_before; /* losses of those that were closed */
	uint64_t spool_try, spool_retry_ns; /* CLOCK_MONOTONIC ns, when to open it again; the pause */
	uint64_t spool_told;		/* CLOCK_MONOTONIC ns, when its state was logged, 0: never */
	uint64_t losses_told;		/* payloads that it lost, of which the log has heard */
	bool compress;
	unsigned int timeout_ms, backoff_min_ms, backoff_max_ms;
	unsigned int backoff_ms;	/* next pause, 0: the last try went well */
	unsigned int failures;		/* of the oldest, in a row */
	bool is_oldest_bad;		/* a later one was taken while it was not */
	bool is_told_to_wait;		/* until next_try, by the receiver */
	uint64_t next_try;		/* CLOCK_MONOTONIC ns, while something waits */
	struct waiting *first, **last;
	size_t waiting_bytes;
	struct complaint complaints[COMPLAINTS];
	unsigned int next_complaint;
	struct exporter_stats stats;	/* thread C's */
	pthread_mutex_t lock;		/* of published */
	struct exporter_stats published;
};

static uint64_t spool_losses(const struct store_stats *spool)
{
	return spool->full_messages + spool->old_messages + spool->damaged_messages;
}

/* With the losses of spools that were closed, as somebody removed their directory. */
static struct store_stats spool_stats(const struct exporter *exporter)
{
	const struct store_stats *before = &exporter->spool_before;
	struct store_stats stats = { 0 };

	if (exporter->spool)
		stats = store_stats(exporter->spool);
	stats.full_messages += before->full_messages;
	stats.full_samples += before->full_samples;
	stats.old_messages += before->old_messages;
	stats.old_samples += before->old_samples;
	stats.damaged_messages += before->damaged_messages;
	stats.damaged_samples += before->damaged_samples;
	stats.damaged_bytes += before->damaged_bytes;
	return stats;
}

/* Another thread may ask for the counts while a request is under way. */
static void publish(struct exporter *exporter)
{
	struct exporter_stats stats = exporter->stats;

	stats.spool = spool_stats(exporter);
	stats.payloads_waiting += stats.spool.messages;
	stats.samples_waiting += stats.spool.samples;
	stats.payloads_dropped += spool_losses(&stats.spool);
	stats.samples_dropped += stats.spool.full_samples + stats.spool.old_samples +
				 stats.spool.damaged_samples;
	pthread_mutex_lock(&exporter->lock);
	exporter->published = stats;
	pthread_mutex_unlock(&exporter->lock);
}

/* Once a minute at most: a state that lasts is in the status. */
static bool may_tell(struct exporter *exporter)
{
	const uint64_t now = clock_monotonic();

	if (exporter->spool_told && now - exporter->spool_told < COMPLAIN_NS)
		return false;
	exporter->spool_told = now;
	return true;
}

static void tell_losses(struct exporter *exporter)
{
	const struct store_stats spool = spool_stats(exporter);
	const uint64_t losses = spool_losses(&spool);

	if (losses == exporter->losses_told || !may_tell(exporter))
		return;
	log_warning("the spool dropped %" PRIu64 " payloads: %" PRIu64 " as it was full, %" PRIu64
		    " as they were too old, %" PRIu64 " as they were damaged", losses,
		    spool.full_messages, spool.old_messages, spool.damaged_messages);
	exporter->losses_told = losses;
}

static void spool_failed(struct exporter *exporter, int err)
{
	char *error = exporter->stats.spool_error;
	const bool is_new = !error[0];

	snprintf(error, sizeof(exporter->stats.spool_error), "%s",
		 err == -EBUSY ? "another process has it open" : strerror(-err));
	if (is_new || may_tell(exporter))
		log_warning("the spool %s: %s; payloads wait in memory meanwhile",
			    exporter->spool_options.directory, error);
}

/* Beside the store or the spool, whose lock is held. */
static void open_journal(struct exporter *exporter, const char *directory)
{
	int err = exporter->journal ? journal_open(exporter->journal, directory) : 0;

	if (err)
		log_warning("no journal in %s: %s; a kill loses the open window", directory,
			    strerror(-err));
}

/* A disk may come later, or back. */
static void open_spool(struct exporter *exporter)
{
	const uint64_t now = clock_monotonic();
	struct store_stats spool;
	int err;

	if (exporter->spool || !exporter->spool_options.directory || now < exporter->spool_try)
		return;
	exporter->spool_try = now + exporter->spool_retry_ns;
	err = store_open(&exporter->spool_options, &exporter->spool);
	if (err) {
		spool_failed(exporter, err);
		return;
	}
	open_journal(exporter, exporter->spool_options.directory);
	spool = store_stats(exporter->spool);
	if (spool.messages)
		log_info("%" PRIu64 " payloads with %" PRIu64 " samples of an earlier run wait in the "
			 "spool", spool.messages, spool.samples);
	tell_losses(exporter);
}

static bool spool_waits(const struct exporter *exporter)
{
	return exporter->spool && store_stats(exporter->spool).messages;
}

static bool something_waits(const struct exporter *exporter)
{
	return exporter->first || spool_waits(exporter);
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
	if (!err && options->with_journal)
		err = journal_new((options->endpoint ? options->spool_max_bytes :
						       options->store_max_bytes) / JOURNAL_SHARE,
				  &exporter->journal);
	if (!err && options->store_directory) {
		const struct store_options store_options = {
			.directory = options->store_directory,
			.max_bytes = options->store_max_bytes,
			.max_age_ms = options->store_max_age_ms,
		};

		err = store_open(&store_options, &exporter->store);
		if (!err)
			open_journal(exporter, options->store_directory);
	}
	if (err) {
		exporter_free(exporter);
		return err;
	}
	if (options->endpoint) {
		exporter->spool_options = (struct store_options){
			.directory = options->spool_directory,
			.max_bytes = options->spool_max_bytes,
			.max_age_ms = options->spool_max_age_ms,
			.is_spool = true,
		};
		exporter->spool_retry_ns = options->spool_retry_ms ?
						   options->spool_retry_ms * NSEC_PER_MSEC : COMPLAIN_NS;
		open_spool(exporter);
	}
	publish(exporter);
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
	exporter->stats.samples_waiting -= waiting->samples;
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
	exporter->stats.samples_waiting += waiting->samples;
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
	exporter->stats.samples_waiting += waiting->samples;
}

/* Half of the pause is certain, half random, so that a fleet does not come back in step. */
static void schedule(struct exporter *exporter, int64_t retry_after_ms)
{
	uint64_t pause_ms;
	uint32_t random = 0;

	exporter->is_told_to_wait = retry_after_ms > 0;
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
		exporter->next_try = 0;
		exporter->failures = 0;
		stop_complaining(exporter);
		return true;
	case HTTP_RETRY:
		complain(exporter, "did not take a payload, which is sent again", &answer);
		schedule(exporter, answer.retry_after_ms);
		exporter->failures++;
		return false;
	case HTTP_REFUSED:
		break;
	}
	complain(exporter, "refused a payload, which is dropped", &answer);
	stats->payloads_dropped++;
	stats->samples_dropped += waiting->samples;
	/* a receiver that refuses all for a while, its token expired, costs one of those that wait per pause */
	schedule(exporter, 0);
	exporter->failures = 0;
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
	int err = store_append(exporter->store, payload->data, payload->size,
			       payload->samples);

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

/* Its directory is gone, with what waited there. */
static void leave_spool(struct exporter *exporter)
{
	struct store_stats stats = spool_stats(exporter);

	stats.damaged_messages += stats.messages;
	stats.damaged_samples += stats.samples;
	exporter->spool_before = stats;
	store_close(exporter->spool);
	exporter->spool = NULL;
	exporter->spool_try = 0;
}

/* What is in the store or the spool needs no parts any more. */
static void leave_journal(struct exporter *exporter, const struct payload *payload)
{
	if (exporter->journal && payload->is_last)
		journal_done(exporter->journal, payload->window);
}

/* True: it is on disk, or on its way there. */
static bool spool_payload(struct exporter *exporter, const struct payload *payload)
{
	int err;

	if (!exporter->spool)
		return false;
	err = store_append(exporter->spool, payload->data, payload->size, payload->samples);
	if (err == -ESTALE) {
		leave_spool(exporter);
		open_spool(exporter);
		if (!exporter->spool)
			return false;
		err = store_append(exporter->spool, payload->data, payload->size, payload->samples);
	}
	tell_losses(exporter);
	if (err) {
		spool_failed(exporter, err);
		return false;
	}
	exporter->stats.spool_error[0] = '\0';
	leave_journal(exporter, payload);
	return true;
}

/* It has to wait: from now on a power cut does not take it. */
static void sync_spool(struct exporter *exporter)
{
	int err = store_sync(exporter->spool);

	if (err && may_tell(exporter))
		log_warning("the spool %s cannot be synced: %s; a power cut may take what waits there",
			    exporter->spool_options.directory, strerror(-err));
}

/*
 * The oldest is not taken, again and again. If a new one is, it is not the receiver, but something about the oldest, which
 * would hold up the others for as long as it may wait: it is dropped.
 */
static bool try_around(struct exporter *exporter, const struct payload *payload,
		       const struct waiting *waiting)
{
	if (exporter->failures < FAILURES_MAX ||
	    (exporter->is_told_to_wait && clock_monotonic() < exporter->next_try))
		return false;
	exporter->failures = 0;
	if (!try_send(exporter, waiting, exporter->timeout_ms))
		return false;
	store_retract(exporter->spool, payload->size, payload->samples);
	exporter->is_oldest_bad = true;
	return true;
}

static int send_payload(struct exporter *exporter, struct payload *payload)
{
	struct waiting *waiting;
	struct payload bare = *payload;
	bool is_spooled, must_wait;
	int err = 0;

	if (exporter->store)
		err = store_payload(exporter, payload);
	if (!exporter->http)
		return err;
	open_spool(exporter);
	/* in order, and no request while a pause is on */
	must_wait = something_waits(exporter);
	is_spooled = spool_payload(exporter, payload);
	if (is_spooled && must_wait && exporter->failures < FAILURES_MAX) {
		sync_spool(exporter);
		return 0;
	}
	waiting = payload->size <= REQUEST_MAX ? waiting_new(exporter, payload) : NULL;
	if (!waiting && is_spooled)
		return 0;
	if (!waiting) {
		exporter->stats.payloads_dropped++;
		exporter->stats.samples_dropped += payload->samples;
		return -ENOMEM;
	}
	if (!is_spooled && (must_wait || !try_send(exporter, waiting, exporter->timeout_ms))) {
		queue_push(exporter, waiting);
		return 0;
	}
	if (is_spooled && must_wait) {
		if (!try_around(exporter, &bare, waiting))
			sync_spool(exporter);
	} else if (is_spooled) {
		if (try_send(exporter, waiting, exporter->timeout_ms))
			store_take(exporter->spool);
		else
			sync_spool(exporter);
	}
	waiting_free(waiting);
	return 0;
}

int exporter_send(struct exporter *exporter, struct payload *payload)
{
	int err = send_payload(exporter, payload);

	leave_journal(exporter, payload);
	free(steal_ptr(payload->data));
	publish(exporter);
	return err;
}

void exporter_window_done(struct exporter *exporter, uint64_t window)
{
	if (exporter->journal)
		journal_done(exporter->journal, window);
}

int exporter_journal(struct exporter *exporter, struct payload *payload)
{
	int err = -ENOTDIR;

	if (exporter->journal)
		err = journal_add(exporter->journal, payload->window, payload->data, payload->size,
				  payload->samples, payload->continues);
	free(steal_ptr(payload->data));
	return err;
}

bool exporter_has_journal(const struct exporter *exporter)
{
	return exporter->journal && journal_is_open(exporter->journal);
}

/* 0: a try is due; -1: nothing waits. */
static int wait_ms(const struct exporter *exporter)
{
	uint64_t now = clock_monotonic();

	if (!something_waits(exporter))
		return -1;
	if (now >= exporter->next_try)
		return 0;
	return (int)((exporter->next_try - now + NSEC_PER_MSEC - 1) / NSEC_PER_MSEC);
}

/* The oldest of the spool: 1, 0: none waits, -EAGAIN: there is no memory for it now. */
static int read_spool(struct exporter *exporter, struct waiting **ret_waiting)
{
	/* it is here twice, raw and compressed; one of more than that no run could have encoded */
	const size_t max_bytes = pool_get(POOL_ENCODE)->limit / 2;
	struct store_message message;
	struct payload payload;
	int ret;

	ret = store_oldest(exporter->spool, max_bytes, &message);
	tell_losses(exporter);
	if (ret != 1)
		return ret;
	payload = (struct payload){
		.data = message.data, .size = message.size, .samples = message.samples,
	};
	ret = -EAGAIN;
	if (pool_charge(POOL_ENCODE, message.size)) {
		*ret_waiting = waiting_new(exporter, &payload);
		pool_uncharge(POOL_ENCODE, message.size);
		ret = *ret_waiting ? 1 : -EAGAIN;
	}
	free(payload.data);
	return ret;
}

static void drop_bad(struct exporter *exporter, const struct waiting *waiting)
{
	log_warning("a payload of %" PRIu64 " samples is dropped: the receiver takes others, but never this one",
		    waiting->samples);
	exporter->stats.payloads_dropped++;
	exporter->stats.samples_dropped += waiting->samples;
	exporter->failures = 0;
	exporter->next_try = 0;
}

static void try_spool(struct exporter *exporter)
{
	struct waiting *waiting;
	bool is_done;
	int ret = read_spool(exporter, &waiting);

	if (ret == -EAGAIN)
		schedule(exporter, 0);
	if (ret != 1)
		return;
	exporter->stats.retries++;
	is_done = try_send(exporter, waiting, exporter->timeout_ms);
	if (!is_done && exporter->is_oldest_bad) {
		drop_bad(exporter, waiting);
		is_done = true;
	}
	exporter->is_oldest_bad = false;
	if (is_done)
		store_take(exporter->spool);
	waiting_free(waiting);
}

static void try_queue(struct exporter *exporter)
{
	struct waiting *waiting = queue_pop(exporter);

	exporter->stats.retries++;
	if (try_send(exporter, waiting, exporter->timeout_ms))
		waiting_free(waiting);
	else
		queue_unpop(exporter, waiting);
}

int exporter_poll(struct exporter *exporter)
{
	int wait = wait_ms(exporter);

	if (wait)
		return wait;
	/* one request per call; after one that is taken the next one may follow at once */
	if (spool_waits(exporter))
		try_spool(exporter);
	else
		try_queue(exporter);
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
	if (exporter->spool)
		sync_spool(exporter);
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
	store_close(exporter->spool);
	journal_free(exporter->journal);
	pthread_mutex_destroy(&exporter->lock);
	free(exporter);
}

void exporter_stats(struct exporter *exporter, struct exporter_stats *ret_stats)
{
	pthread_mutex_lock(&exporter->lock);
	*ret_stats = exporter->published;
	pthread_mutex_unlock(&exporter->lock);
	/* it grows between windows, when thread C sleeps */
	if (exporter->journal)
		ret_stats->journal = journal_stats(exporter->journal);
}
