// SPDX-License-Identifier: Apache-2.0
#include "pipeline/threads.h"

#include <string.h>

#include "base/clock.h"
#include "base/log.h"

enum {
	RESULT_WAIT_MS = 500,	/* for thread A to take what /proc said */
	LARGE_SNAPSHOT = 65536,	/* bytes: of more mappings than programs have */
	STATS_MS = 500,		/* the oldest that figures are while there is work */
	TURN_MS = 100,		/* that lists and deferred stacks have between two windows, or in one, where names have it, too */
	NAMING_FROM_MS = 2000,	/* names at the end that take so long are told of */
	NAMING_EVERY_MS = 1000,
};

static size_t snapshot_bytes(const struct process_snapshot *snapshot)
{
	size_t bytes = sizeof(*snapshot);

	for (size_t i = 0; i < snapshot->mapping_count; i++)
		bytes += sizeof(snapshot->mappings[i]) + strlen(snapshot->mappings[i].path) + 1;
	return bytes;
}

/* Thread A may itself be waiting for us: give up after a while, it asks again. */
static int send_snapshot(void *ctx, struct process_snapshot *snapshot)
{
	struct pipeline *pipeline = ctx;
	struct message *message = message_new(MESSAGE_SNAPSHOT);

	if (!message) {
		process_snapshot_free(snapshot);
		return -ENOMEM;
	}
	message->snapshot = snapshot;
	return message_send(pipeline->results, message, snapshot_bytes(snapshot), QUEUE_NORMAL,
			    RESULT_WAIT_MS);
}

/* It hangs, or what it maps does. Its mappings are what they were, for all that is known. */
static int send_unread(struct pipeline *pipeline, uint32_t tgid)
{
	struct message *message = message_new(MESSAGE_UNREAD);

	if (!message)
		return -ENOMEM;
	message->tgid = tgid;
	message->time = clock_monotonic();
	return message_send(pipeline->results, message, 0, QUEUE_NORMAL, RESULT_WAIT_MS);
}

/*
 * One of all. A process that has more mappings than there is memory for at the moment costs itself
 * their names, and no other its own: the scan goes on.
 */
static int send_each(void *ctx, uint32_t tgid)
{
	struct pipeline *pipeline = ctx;
	struct process_snapshot *snapshot;
	size_t bytes;
	int r;

	r = opener_scan(symbolizer_opener(pipeline->symbolizer), tgid, &snapshot);
	if (r == -EHOSTDOWN || r == -EBUSY || r == -EPIPE)
		return send_unread(pipeline, tgid);
	/* without an opener, or time for it, nothing is known of the rest either */
	if (r == -EAGAIN || r == -ETIME)
		return r;
	/* a process that went away or may not be read is no failure of the scan */
	if (r < 0)
		return 0;
	bytes = snapshot_bytes(snapshot);
	r = send_snapshot(pipeline, snapshot);
	if (r != -EAGAIN || bytes < LARGE_SNAPSHOT)
		return r;
	log_warning("process %u: no memory for its %zu bytes of mappings, code that it has mapped since "
		    "gets no names", tgid, bytes);
	return 0;
}

static void scan(struct pipeline *pipeline, uint32_t tgid)
{
	uint64_t began = clock_monotonic();
	struct process_snapshot *snapshot;
	struct message *message;
	int r;

	if (tgid) {
		r = opener_scan(symbolizer_opener(pipeline->symbolizer), tgid, &snapshot);
		if (!r && snapshot->is_cut && pipeline->cut_tgid != tgid)
			log_warning("process %u (%s) has more executable mappings than %zu, the rest "
				    "of its code gets no names", tgid, snapshot->comm,
				    snapshot->mapping_count);
		if (!r && snapshot->is_cut)
			pipeline->cut_tgid = tgid;
		if (!r)
			send_snapshot(pipeline, snapshot);
		if (r != -ESRCH)
			return;
		message = message_new(MESSAGE_GONE);
	} else {
		r = opener_processes(symbolizer_opener(pipeline->symbolizer), send_each, pipeline);
		message = message_new(MESSAGE_SCANNED_ALL);
	}
	if (!message)
		return;
	message->tgid = tgid;
	message->time = began;
	message->complete = !r;
	message_send(pipeline->results, message, 0, QUEUE_NORMAL, RESULT_WAIT_MS);
}

/* A window may be an hour away: the figures are told between windows too. */
static void publish(struct pipeline *pipeline)
{
	struct symbolizer_stats stats;

	symbolizer_stats(pipeline->symbolizer, &stats);
	pthread_mutex_lock(&pipeline->lock);
	pipeline->stats.symbolizer = stats;
	pthread_mutex_unlock(&pipeline->lock);
}

static void name_window(struct pipeline *pipeline, struct message *message)
{
	symbolizer_resolve(pipeline->symbolizer, message->window);
	atomic_fetch_add_explicit(&pipeline->named, 1, memory_order_release);
	publish(pipeline);
	/* what follows waits for thread C */
	work_end();
	if (message_send(pipeline->windows, message, 0, QUEUE_NORMAL, -1) < 0)
		pipeline_window_left(pipeline);
	work_begin();
	symbolizer_after_window(pipeline->symbolizer);
	tables_check_lists(pipeline);
	if (pipeline->owes_scan)
		scan(pipeline, 0);
	pipeline->owes_scan = false;
}

/* Takes @message. */
static void take(struct pipeline *pipeline, struct message *message)
{
	switch (message->kind) {
	case MESSAGE_IMAGE:
		symbolizer_see_image(pipeline->symbolizer, message->image, message->parent);
		break;
	case MESSAGE_FILE:
		symbolizer_see_file(pipeline->symbolizer, message->image, message->file);
		break;
	case MESSAGE_KERNEL:
		symbolizer_see_kernel_change(pipeline->symbolizer);
		break;
	case MESSAGE_LIST:
		tables_load(pipeline, message->list);
		break;
	case MESSAGE_DEFERRED:
		tables_unwind_deferred(pipeline);
		break;
	case MESSAGE_SCAN:
		scan(pipeline, message->tgid);
		break;
	case MESSAGE_WINDOW:
		name_window(pipeline, steal_ptr(message));
		break;
	default:
		break;
	}
	if (message)
		message_free(message);
}

static void handle(struct pipeline *pipeline, struct message *message)
{
	work_begin();
	take(pipeline, message);
	work_end();
}

/*
 * Lists and deferred stacks come after windows. Where these come faster than they are named, there is some time for the
 * others between two of them, in which programs and files that are new still come first.
 */
static void give_turn(struct pipeline *pipeline, void (*to)(struct pipeline *pipeline, struct message *message))
{
	const uint64_t until = clock_monotonic() + TURN_MS * NSEC_PER_MSEC;
	struct message *message;

	while (clock_monotonic() < until && (message = message_take_beside_windows(pipeline->requests)))
		to(pipeline, message);
}

/* Takes @message. A window is under way: looking at all of /proc, which may take seconds, comes after it. */
static void take_in_turn(struct pipeline *pipeline, struct message *message)
{
	if (message->kind != MESSAGE_SCAN || message->tgid) {
		take(pipeline, message);
		return;
	}
	pipeline->owes_scan = true;
	message_free(message);
}

static void show_naming(struct pipeline *pipeline, size_t done, size_t count)
{
	const uint64_t now = clock_monotonic();

	if (!pipeline->options.naming || !atomic_load_explicit(&pipeline->stop, memory_order_acquire))
		return;
	if (!pipeline->naming_told_at)
		pipeline->naming_told_at = now + NAMING_FROM_MS * NSEC_PER_MSEC;
	if (now < pipeline->naming_told_at)
		return;
	pipeline->options.naming(done, count);
	pipeline->naming_told_at = now + NAMING_EVERY_MS * NSEC_PER_MSEC;
}

void names_turn(void *ctx, size_t done, size_t count)
{
	struct pipeline *pipeline = ctx;
	const uint64_t began = clock_monotonic();
	uint64_t end;

	show_naming(pipeline, done, count);
	if (began < pipeline->turn_at)
		return;
	give_turn(pipeline, take_in_turn);
	end = clock_monotonic();
	/* names have as long as the others had, whose last piece of work may have been long */
	pipeline->turn_at = end + max_of(end - began, (uint64_t)TURN_MS * NSEC_PER_MSEC);
}

void *symbol_thread(void *ctx)
{
	struct pipeline *pipeline = ctx;
	struct message *message;
	uint64_t told = 0;
	bool is_stale = false, is_window;
	int r;

	pipeline_enter(pipeline, THREAD_NAMES);
	while ((message = message_take(pipeline->requests, is_stale ? STATS_MS : -1, &r)) || !r) {
		if (!message || clock_monotonic() - told >= STATS_MS * NSEC_PER_MSEC) {
			publish(pipeline);
			told = clock_monotonic();
			is_stale = false;
		}
		if (!message)
			continue;
		is_stale = true;
		is_window = message->kind == MESSAGE_WINDOW;
		handle(pipeline, message);
		if (is_window)
			give_turn(pipeline, handle);
	}
	work_leave();
	return NULL;
}
