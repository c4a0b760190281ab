// SPDX-License-Identifier: Apache-2.0
#include "pipeline/threads.h"

#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "resolve/jit.h"

enum {
	WAIT_MS = 200,			/* between rounds: for records below the watermark */
	SCAN_ALL_INTERVAL_MS = 2000,
	SCAN_ALL_TIMEOUT_MS = 30000,
	SCAN_BLIND_INTERVAL_MS = 5000,	/* without a side band */
};

/*
 * Nothing here waits for thread B: while it is at one piece of work rings fill up. What finds no room it looks at when
 * there are samples of it, at the end of their window. Thread B is woken up once for all that the side band has of a
 * round, as programs may be gone before the round is over, and once for what samples, scans and lists add: on one CPU it
 * would else take thread A's place, and give it back, for each.
 */
static bool announce(struct pipeline *pipeline, struct message *message)
{
	const bool is_told = message_add(pipeline->requests, message, 0, QUEUE_URGENT) == 0;

	pipeline->unannounced += !is_told;
	return is_told;
}

static void on_image(void *ctx, struct image *image, struct image *parent)
{
	struct message *message = message_new(MESSAGE_IMAGE);

	if (message) {
		message->image = image_ref(image);
		message->parent = parent ? image_ref(parent) : NULL;
	}
	if (!announce(ctx, message))
		atomic_store_explicit(&image->is_untold, true, memory_order_relaxed);
}

static bool tell_file(struct pipeline *pipeline, struct image *image, struct mapped_file *file)
{
	struct message *message = message_new(MESSAGE_FILE);

	if (message) {
		message->image = image_ref(image);
		message->file = mapped_file_ref(file);
	}
	return message_add(pipeline->requests, message, 0, QUEUE_URGENT) == 0;
}

/* No sample is ever of a jitdump, and its process maps it once: what finds no room is told of later. */
static bool on_file(void *ctx, struct image *image, struct mapped_file *file)
{
	struct pipeline *pipeline = ctx;

	if (tell_file(pipeline, image, file))
		return true;
	pipeline->unannounced++;
	if (!jit_is_dump(file) || pipeline->untold_count == UNTOLD_MAX)
		return false;
	pipeline->untold[pipeline->untold_count++] =
		(struct untold){ .image = image_ref(image), .file = mapped_file_ref(file) };
	return true;
}

/* The first @count. */
static void drop_untold(struct pipeline *pipeline, unsigned int count)
{
	for (unsigned int i = 0; i < count; i++) {
		image_unref(pipeline->untold[i].image);
		mapped_file_unref(pipeline->untold[i].file);
	}
	pipeline->untold_count -= count;
	memmove(pipeline->untold, pipeline->untold + count, pipeline->untold_count * sizeof(*pipeline->untold));
}

/* In order: the newest dump of a process counts. */
static void tell_rest(struct pipeline *pipeline)
{
	unsigned int told = 0;

	while (told < pipeline->untold_count &&
	       tell_file(pipeline, pipeline->untold[told].image, pipeline->untold[told].file))
		told++;
	drop_untold(pipeline, told);
}

void drain_thread_forget(struct pipeline *pipeline)
{
	drop_untold(pipeline, pipeline->untold_count);
}

static void on_announced(void *ctx)
{
	struct pipeline *pipeline = ctx;

	queue_rouse(pipeline->requests);
}

static void on_kernel_changed(void *ctx)
{
	struct pipeline *pipeline = ctx;

	pipeline->wants_kernel = message_send(pipeline->requests, message_new(MESSAGE_KERNEL), 0, QUEUE_URGENT, 0) < 0;
}

void pipeline_window_left(struct pipeline *pipeline)
{
	pthread_mutex_lock(&pipeline->lock);
	pipeline->windows_under_way--;
	pthread_cond_broadcast(&pipeline->window_gone);
	pthread_mutex_unlock(&pipeline->lock);
}

static void on_window(void *ctx, struct window *window)
{
	struct pipeline *pipeline = ctx;
	struct message *message = message_new(MESSAGE_WINDOW);

	pthread_mutex_lock(&pipeline->lock);
	pipeline->windows_under_way++;
	pipeline->stats.windows++;
	pthread_mutex_unlock(&pipeline->lock);
	if (message)
		message->window = window;
	else
		window_free(window);
	/*
	 * Bounded by the memory of windows. Before lists, which may take long: who waits for a window waits for its names
	 * alone. Behind what was announced by now, which has its names in it.
	 */
	if (message_put(pipeline->requests, message, QUEUE_URGENT) == 0)
		return;
	pthread_mutex_lock(&pipeline->lock);
	pipeline->stats.windows_dropped++;
	pthread_mutex_unlock(&pipeline->lock);
	pipeline_window_left(pipeline);
}

/* Are all windows that are under way still with thread B, or before it? The lock is held. */
static bool is_for_names(const struct pipeline *pipeline)
{
	return pipeline->stats.windows - pipeline->stats.windows_dropped -
	       atomic_load_explicit(&pipeline->named, memory_order_acquire) >= pipeline->windows_under_way;
}

/* For memory, which thread C gives back: samples do not wait for names. */
static bool on_wait(void *ctx)
{
	struct pipeline *pipeline = ctx;
	unsigned int before;

	queue_rouse(pipeline->requests);
	pthread_mutex_lock(&pipeline->lock);
	before = pipeline->windows_under_way;
	if (before && is_for_names(pipeline)) {
		symbolizer_hurry(pipeline->symbolizer, true);
		pipeline->stats.hurries++;
	}
	/* for as long as thread C may wait for a receiver, which is more than a piece of work may take */
	work_end();
	while (before && pipeline->windows_under_way == before)
		pthread_cond_wait(&pipeline->window_gone, &pipeline->lock);
	work_begin();
	symbolizer_hurry(pipeline->symbolizer, false);
	pthread_mutex_unlock(&pipeline->lock);
	return before != 0;
}

static bool request_scan(struct pipeline *pipeline, uint32_t tgid)
{
	struct message *message = message_new(MESSAGE_SCAN);

	if (message)
		message->tgid = tgid;
	if (message_send(pipeline->requests, message, 0, QUEUE_URGENT, 0) < 0)
		return false;
	pipeline->scans++;
	return true;
}

void drain_thread_scans(struct pipeline *pipeline, uint64_t now)
{
	uint32_t tgid = pipeline->unscanned;

	/* what there is no room for waits in the table: a scan of all would be the most work when there is most already */
	while (tgid || process_table_wants_scan(drain_processes(pipeline->drain), &tgid)) {
		if (tgid && !request_scan(pipeline, tgid))
			break;
		pipeline->wants_all |= !tgid;
		tgid = 0;
	}
	pipeline->unscanned = tgid;
	if (pipeline->options.capture.without_sideband && now >= pipeline->next_scan_all)
		pipeline->wants_all = true;
	/* its end may have found no room in the queue */
	if (pipeline->scanning_until && now >= pipeline->scanning_until) {
		pipeline->scanning_until = 0;
		pipeline->wants_all = true;
	}
	/* one after the other: what is asked for meanwhile needs a scan that begins later */
	if (pipeline->wants_all && !pipeline->scanning_until && now >= pipeline->next_scan_all &&
	    request_scan(pipeline, 0)) {
		pipeline->wants_all = false;
		pipeline->scanning_until = now + SCAN_ALL_TIMEOUT_MS * NSEC_PER_MSEC;
	}
}

static void merge_result(struct pipeline *pipeline, const struct message *message)
{
	struct process_table *processes = drain_processes(pipeline->drain);
	unsigned int interval = pipeline->options.capture.without_sideband ?
					SCAN_BLIND_INTERVAL_MS : SCAN_ALL_INTERVAL_MS;

	switch (message->kind) {
	case MESSAGE_SNAPSHOT:
		process_table_merge(processes, message->snapshot);
		break;
	case MESSAGE_GONE:
		process_table_gone(processes, message->tgid, message->time);
		break;
	case MESSAGE_UNREAD:
		process_table_unread(processes, message->tgid, message->time);
		break;
	case MESSAGE_SCANNED_ALL:
		pipeline->scanning_until = 0;
		pipeline->next_scan_all = clock_monotonic() + interval * NSEC_PER_MSEC;
		if (message->complete)
			process_table_scanned_all(processes, message->time);
		else
			pipeline->wants_all = true;
		break;
	case MESSAGE_RELIST:
		process_table_relist(processes, clock_monotonic());
		break;
	default:
		break;
	}
}

static void publish(struct pipeline *pipeline)
{
	struct absent_stats absent = { 0 };
	struct drain_stats drained;

	drain_stats(pipeline->drain, &drained);
	if (pipeline->absent)
		absent_stats(pipeline->absent, &absent);
	pipeline->has_deferred = drained.deferred.waiting;
	pthread_mutex_lock(&pipeline->lock);
	capture_stats(pipeline->capture, &pipeline->stats.capture);
	pipeline->stats.drain = drained;
	pipeline->stats.absent = absent;
	pipeline->stats.scans = pipeline->scans;
	pipeline->stats.unannounced = pipeline->unannounced;
	pthread_mutex_unlock(&pipeline->lock);
}

void drain_thread_round(struct pipeline *pipeline, uint64_t closing, uint64_t time)
{
	if (pipeline->closing != closing)
		drain_want_close(pipeline->drain);
	pipeline->closing = closing;
	tell_rest(pipeline);
	/* now, as a round may take long: it adds nothing but windows, and these wake thread B up */
	queue_rouse(pipeline->requests);
	drain_round(pipeline->drain, time);
	if (pipeline->closed == closing || drain_wants_close(pipeline->drain))
		return;
	pthread_mutex_lock(&pipeline->lock);
	pipeline->closed = closing;
	pipeline->closed_windows = pipeline->stats.windows;
	pthread_mutex_unlock(&pipeline->lock);
}

void drain_thread_end(struct pipeline *pipeline)
{
	/* which waits for the deferred stacks */
	queue_rouse(pipeline->requests);
	drain_finish(pipeline->drain);
}

/*
 * What a scan saw is merged after a round of events: those that are older than the scan have been
 * delivered by then, each at its own time.
 */
static int drain_once(struct pipeline *pipeline)
{
	struct queue_item *first = NULL, **last = &first, *item;
	/* before the rings' heads are: what is in them by now is in the window */
	const uint64_t closing = atomic_load_explicit(&pipeline_closings, memory_order_acquire);
	uint64_t time;
	int r;

	while (queue_pop(pipeline->results, 0, &item) > 0) {
		*last = item;
		last = &item->next;
	}
	r = capture_drain(pipeline->capture, &time);
	while ((item = first)) {
		first = item->next;
		merge_result(pipeline, container_of(item, struct message, item));
		message_drop(item);
	}
	if (r < 0)
		return r;
	if (pipeline->wants_kernel)
		on_kernel_changed(pipeline);
	drain_thread_scans(pipeline, time);
	pipeline->has_lists =
		process_table_send_lists(drain_processes(pipeline->drain), time, false);
	drain_thread_round(pipeline, closing, time);
	publish(pipeline);
	return 0;
}

static bool is_behind(void *ctx)
{
	const struct pipeline *pipeline = ctx;
	const struct pipeline_sink *sink = &pipeline->options.sink;

	return sink->is_behind && sink->is_behind(sink->ctx);
}

struct drain_output drain_thread_output(struct pipeline *pipeline)
{
	const bool has_journal = pipeline->options.sink.journal;

	return (struct drain_output){
		.observer = { .image = on_image, .file = on_file, .ctx = pipeline },
		.window = on_window,
		.wait = on_wait,
		.kernel_changed = on_kernel_changed,
		.announced = on_announced,
		.deferred = tables_send_deferred,
		.is_behind = is_behind,
		.missing = tables_want_page,
		.part = has_journal ? journal_make_part : NULL,
		.wants_part = journal_wants_part,
		.ctx = pipeline,
	};
}

static void let_keep(const struct pipeline *pipeline)
{
	int session, ledger = capture_ledger(pipeline->capture, &session);

	if (pipeline->options.keep && ledger >= 0)
		pipeline->options.keep(pipeline->options.sink.ctx, session, ledger);
}

void *drain_thread(void *ctx)
{
	struct pipeline *pipeline = ctx;
	bool is_first = true;
	int r = 0;

	pipeline_enter(pipeline, THREAD_DRAIN);
	while (!r && !atomic_load_explicit(&pipeline->stop, memory_order_acquire)) {
		/* what it waits for it does not wait long for, so that is to come to an end as well */
		work_begin();
		r = capture_wait(pipeline->capture,
				 pipeline->has_lists || pipeline->has_deferred ? LISTS_DELAY_MS :
									     WAIT_MS);
		if (!r)
			r = drain_once(pipeline);
		if (!r && is_first)
			let_keep(pipeline);
		is_first = false;
	}
	if (!r)
		r = capture_finish(pipeline->capture);
	drain_thread_end(pipeline);
	publish(pipeline);
	if (r < 0)
		log_error("rings are no longer drained: %s", strerror(-r));
	pipeline->error = r;
	work_leave();
	return NULL;
}
