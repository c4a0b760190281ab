// SPDX-License-Identifier: Apache-2.0
#include "export/exporter.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/utf8.h"
#include "base/work.h"
#include "export/journal_share.h"

#define REQUEST_MAX ((size_t)64 << 20)	/* uncompressed, by the specification */
/* Of the pool, in quarters: what waits here must not stop the queues between the threads. */
#define QUEUE_SHARE 3
#define JOURNAL_SHARE 8u	/* of the spool's or store's bytes */

/* One destination, and who asks its receiver. */
struct lane {
	struct exporter *exporter;
	unsigned int form;		/* of payloads, that its receiver wants */
	struct destination *destination;
	pthread_t thread;
	bool has_thread;		/* else thread C asks */
};

struct exporter {
	struct lane lanes[EXPORTER_DESTINATIONS];
	size_t count;
	unsigned int forms;
	_Atomic bool is_stopping;
	uint64_t end;			/* CLOCK_MONOTONIC ns, of the last tries; set before is_stopping */
	struct body_budget budget;
	uint64_t payloads;		/* so far: numbers of bodies */
	struct store *store;		/* NULL: no local store */
	struct journal *journal;	/* NULL: none */
	struct destination *journal_beside; /* whose spool it is in; NULL: in the store, or nowhere */
	const char *journal_directory;
	uint64_t journal_opened;	/* how often that spool was, when it was opened there */
	struct exporter_stats stats;	/* thread C's, of the store */
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

/* Beside the store or the spool, whose lock is held. */
static void open_journal(struct exporter *exporter)
{
	int err = journal_open(exporter->journal, exporter->journal_directory);

	if (err)
		log_warning("no journal in %s: %s; a kill loses the open window", exporter->journal_directory,
			    strerror(-err));
}

/* A spool's disk may come later, or back. */
static void follow_spool(struct exporter *exporter)
{
	uint64_t opened;

	if (!exporter->journal || !exporter->journal_beside)
		return;
	opened = destination_spool_opened(exporter->journal_beside);
	if (opened == exporter->journal_opened)
		return;
	exporter->journal_opened = opened;
	open_journal(exporter);
}

/* The first destination with a spool has the journal in it; -1: none has one. */
static int journal_place(const struct exporter_options *options)
{
	for (size_t i = 0; i < options->destination_count; i++)
		if (options->destinations[i].spool_directory)
			return (int)i;
	return -1;
}

/* What it has of a run that was killed is for all of them. */
static void share_journal(const struct exporter_options *options)
{
	const int place = journal_place(options);

	for (int i = place + 1; place >= 0 && i < (int)options->destination_count; i++)
		if (options->destinations[i].spool_directory)
			journal_share(options->destinations[place].spool_directory,
				      options->destinations[i].spool_directory);
}

static int make_journal(struct exporter *exporter, const struct exporter_options *options)
{
	const int place = journal_place(options);
	uint64_t max_bytes = options->store_max_bytes;

	exporter->journal_directory = options->store_directory;
	if (place >= 0) {
		exporter->journal_beside = exporter->lanes[place].destination;
		exporter->journal_directory = options->destinations[place].spool_directory;
		max_bytes = options->destinations[place].spool_max_bytes;
	}
	return journal_new(max_bytes / JOURNAL_SHARE, &exporter->journal);
}

static void *serve(void *ctx)
{
	struct lane *lane = ctx;
	struct work work;
	int wait;

	work_enter(&work, "send");
	while (!atomic_load(&lane->exporter->is_stopping)) {
		work_begin();
		wait = destination_poll(lane->destination);
		work_end();
		if (wait)
			destination_wait(lane->destination, wait);
	}
	destination_stop(lane->destination, lane->exporter->end);
	work_leave();
	return NULL;
}

static int open_destinations(struct exporter *exporter, const struct exporter_options *options)
{
	int err = 0;

	if (options->destination_count > EXPORTER_DESTINATIONS)
		return -E2BIG;
	share_journal(options);
	for (size_t i = 0; !err && i < options->destination_count; i++) {
		struct lane *lane = &exporter->lanes[i];

		lane->exporter = exporter;
		lane->form = options->destinations[i].form;
		err = destination_new(&options->destinations[i], &lane->destination);
		exporter->count += !err;
	}
	return err;
}

static int start_threads(struct exporter *exporter)
{
	int err = 0;

	for (size_t i = 0; !err && exporter->count > 1 && i < exporter->count; i++) {
		struct lane *lane = &exporter->lanes[i];

		err = -pthread_create(&lane->thread, NULL, serve, lane);
		lane->has_thread = !err;
		if (!err)
			pthread_setname_np(lane->thread, "stacktap-send");
	}
	return err;
}

int exporter_new(const struct exporter_options *options, struct exporter **ret_exporter)
{
	struct exporter *exporter = calloc(1, sizeof(*exporter));
	int err;

	if (!exporter)
		return -ENOMEM;
	pthread_mutex_init(&exporter->lock, NULL);
	exporter->forms = max_of(options->form_count, 1u);
	err = open_destinations(exporter, options);
	if (!err && options->store_directory) {
		const struct store_options store_options = {
			.directory = options->store_directory,
			.max_bytes = options->store_max_bytes,
			.max_age_ms = options->store_max_age_ms,
		};

		err = store_open(&store_options, &exporter->store);
	}
	if (!err && options->with_journal)
		err = make_journal(exporter, options);
	if (!err && exporter->journal && !exporter->journal_beside && exporter->store)
		open_journal(exporter);
	if (!err)
		err = start_threads(exporter);
	if (err) {
		exporter_free(exporter);
		return err;
	}
	follow_spool(exporter);
	exporter->stats.destination_count = exporter->count;
	publish(exporter);
	*ret_exporter = exporter;
	return 0;
}

static int store_payload(struct exporter *exporter, const struct payload *payload)
{
	struct destination_stats *stats = &exporter->stats.sum;
	int err = store_append(exporter->store, payload->data, payload->size, payload->samples);

	if (!err) {
		exporter->stats.payloads_stored++;
		stats->last_error[0] = '\0';
		return 0;
	}
	snprintf(stats->last_error, sizeof(stats->last_error), "The local store: %s", strerror(-err));
	if (!exporter->count) {
		stats->payloads_dropped++;
		stats->samples_dropped += payload->samples;
	}
	return err;
}

/* The newest profiles are worth most: the oldest make room, whose destination ever they wait for. */
static bool make_room(struct exporter *exporter, struct body *body)
{
	const size_t share = pool_get(POOL_QUEUES)->limit / 4 * QUEUE_SHARE;
	struct destination *oldest;
	uint64_t first;

	/* one that could never fit does not drive the others out */
	if (body->size > share)
		return false;
	while (!body_charge(body, &exporter->budget, share)) {
		oldest = NULL;
		first = UINT64_MAX;
		for (size_t i = 0; i < exporter->count; i++) {
			uint64_t number = destination_oldest(exporter->lanes[i].destination);

			if (number < first) {
				first = number;
				oldest = exporter->lanes[i].destination;
			}
		}
		if (!oldest)
			return false;
		destination_drop_oldest(oldest, first);
	}
	return true;
}

/* May the destination have it in its hands? Thread C passes it on within one call, and need not charge it. */
static bool may_hand(struct exporter *exporter, enum destination_want want, struct body *body)
{
	const size_t share = pool_get(POOL_QUEUES)->limit / 4 * QUEUE_SHARE;

	if (want == WANT_MEMORY)
		return make_room(exporter, body) || exporter->count == 1;
	/* what is in the spool as well drives out nothing */
	return exporter->count == 1 || body_charge(body, &exporter->budget, share);
}

/* True: thread C is to send it now. */
static bool hand_over(struct exporter *exporter, const struct lane *lane, struct cargo *cargo,
		      const struct payload *payload)
{
	struct body *body = NULL;
	enum destination_want want;
	uint64_t number = 0;

	want = destination_keep(lane->destination, payload, &number);
	if (want == WANT_NOTHING)
		return false;
	if (cargo && payload->size <= REQUEST_MAX)
		body = destination_body(lane->destination, cargo);
	if (body && may_hand(exporter, want, body))
		return destination_hand(lane->destination, want, body, number) && !lane->has_thread;
	destination_miss(lane->destination, want, payload->samples);
	return false;
}

/* True: thread C is to send it now. */
static bool send_payload(struct exporter *exporter, struct payload *payload)
{
	const struct payload bare = *payload;
	struct cargo cargo;
	const bool has_cargo = !cargo_init(&cargo, payload, ++exporter->payloads);
	bool is_at_once = false;

	for (size_t i = 0; i < exporter->count; i++)
		if (exporter->lanes[i].form == bare.form)
			is_at_once |= hand_over(exporter, &exporter->lanes[i], has_cargo ? &cargo : NULL, &bare);
	if (has_cargo)
		cargo_done(&cargo);
	return is_at_once;
}

int exporter_send(struct exporter *exporter, struct payload *payload)
{
	int err = exporter->store ? store_payload(exporter, payload) : 0;
	bool is_at_once = false;

	if (exporter->count) {
		is_at_once = send_payload(exporter, payload);
		follow_spool(exporter);
	}
	/* what is in the store or the spools needs no parts any more */
	if (payload->is_last && payload->form + 1 == exporter->forms)
		exporter_window_done(exporter, payload->window);
	free(steal_ptr(payload->data));
	publish(exporter);
	/* a kill during the request finds the window in the spool alone; one that found no room there is lost with it */
	if (is_at_once)
		destination_poll(exporter->lanes[0].destination);
	return exporter->count ? 0 : err;
}

void exporter_window_done(struct exporter *exporter, uint64_t window)
{
	if (exporter->journal)
		journal_done(exporter->journal, window);
}

int exporter_journal(struct exporter *exporter, const struct cut *cut, const uint8_t *data, size_t size)
{
	return exporter->journal ? journal_add(exporter->journal, cut->window, data, size, cut->samples, cut->begins) :
				   -ENOTDIR;
}

uint64_t exporter_journal_room(const struct exporter *exporter)
{
	return exporter->journal ? journal_room(exporter->journal) : 0;
}

bool exporter_is_behind(const struct exporter *exporter)
{
	bool is_behind = false;

	for (size_t i = 0; i < exporter->count; i++)
		is_behind |= destination_waiting(exporter->lanes[i].destination) > 1;
	return is_behind;
}

int exporter_poll(struct exporter *exporter)
{
	publish(exporter);
	return exporter->count == 1 ? destination_poll(exporter->lanes[0].destination) : -1;
}

void exporter_stop(struct exporter *exporter, unsigned int deadline_ms)
{
	exporter->end = clock_monotonic() + deadline_ms * NSEC_PER_MSEC;
	atomic_store(&exporter->is_stopping, true);
	for (size_t i = 0; i < exporter->count; i++)
		if (exporter->lanes[i].has_thread)
			destination_wake(exporter->lanes[i].destination);
		else
			destination_stop(exporter->lanes[i].destination, exporter->end);
	for (size_t i = 0; i < exporter->count; i++)
		if (exporter->lanes[i].has_thread) {
			pthread_join(exporter->lanes[i].thread, NULL);
			exporter->lanes[i].has_thread = false;
		}
}

void exporter_free(struct exporter *exporter)
{
	if (!exporter)
		return;
	if (exporter->lanes[0].has_thread)
		exporter_stop(exporter, 0);
	for (size_t i = 0; i < exporter->count; i++)
		destination_free(exporter->lanes[i].destination);
	store_close(exporter->store);
	journal_free(exporter->journal);
	pthread_mutex_destroy(&exporter->lock);
	free(exporter);
}

static void add_up(struct destination_stats *sum, const struct destination_stats *one)
{
#define ADD(name) (sum->name += one->name)
	ADD(payloads_sent);
	ADD(payloads_dropped);
	ADD(payloads_waiting);
	ADD(samples_sent);
	ADD(samples_dropped);
	ADD(samples_waiting);
	ADD(payloads_unconfirmed);
	ADD(samples_unconfirmed);
	ADD(bytes_raw);
	ADD(bytes_sent);
	ADD(retries);
	ADD(throttled);
	ADD(partial_rejected);
	ADD(partial_warnings);
	ADD(bad_responses);
	ADD(connections);
	ADD(spool.bytes);
	ADD(spool.files);
	ADD(spool.messages);
	ADD(spool.samples);
	ADD(spool.full_messages);
	ADD(spool.full_samples);
	ADD(spool.old_messages);
	ADD(spool.old_samples);
	ADD(spool.damaged_messages);
	ADD(spool.damaged_samples);
	ADD(spool.damaged_bytes);
#undef ADD
	if (one->last_error[0])
		snprintf(sum->last_error, sizeof(sum->last_error), "%s", one->last_error);
	if (one->spool_error[0])
		snprintf(sum->spool_error, sizeof(sum->spool_error), "%s", one->spool_error);
}

/* The store's beside the last one of those of receivers. */
static void join_errors(char ret_error[HTTP_TEXT_MAX], const char *store)
{
	char both[2 * HTTP_TEXT_MAX + 2];

	if (!store[0] || !strcmp(ret_error, store))
		return;
	snprintf(both, sizeof(both), "%s; %s", store, ret_error);
	utf8_shorten(ret_error, HTTP_TEXT_MAX, both);
}

void exporter_stats(struct exporter *exporter, struct exporter_stats *ret_stats)
{
	char store[HTTP_TEXT_MAX];

	pthread_mutex_lock(&exporter->lock);
	*ret_stats = exporter->published;
	pthread_mutex_unlock(&exporter->lock);
	/* it grows between windows, when thread C sleeps */
	if (exporter->journal)
		ret_stats->journal = journal_stats(exporter->journal);
	ret_stats->journal.copies_failed = journal_share_failed();
	/* it is a sum of none so far */
	memcpy(store, ret_stats->sum.last_error, sizeof(store));
	for (size_t i = 0; i < exporter->count; i++) {
		destination_stats(exporter->lanes[i].destination, &ret_stats->destinations[i]);
		add_up(&ret_stats->sum, &ret_stats->destinations[i]);
	}
	join_errors(ret_stats->sum.last_error, store);
}
