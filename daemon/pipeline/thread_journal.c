// SPDX-License-Identifier: Apache-2.0
#include "pipeline/threads.h"

#include <string.h>

#include "base/clock.h"
#include "base/log.h"

enum {
	/* with a round of thread A and the time to write it, a kill loses less than two seconds */
	PART_INTERVAL_MS = 1500,
	FILE_BYTES = 4 << 20,	/* where the sink does not say */
};

static uint64_t room_of(const struct pipeline *pipeline)
{
	const struct pipeline_sink *sink = &pipeline->options.sink;

	return sink->journal_room ? sink->journal_room(sink->ctx) : FILE_BYTES;
}

bool journal_wants_part(void *ctx, uint64_t time)
{
	const struct pipeline *pipeline = ctx;

	return time >= pipeline->next_part &&
	       !atomic_load_explicit(&pipeline->has_part, memory_order_acquire) && room_of(pipeline);
}

static int make_cut(struct pipeline *pipeline, struct window *window)
{
	int err = 0;

	if (!pipeline->cutter) {
		buffer_init(&pipeline->part, POOL_ENCODE);
		err = cutter_new(&pipeline->options.encode, &pipeline->cutter);
	} else if (pipeline->part_is_lost) {
		cutter_begin(pipeline->cutter);
	}
	pipeline->part_is_lost = false;
	/* about as much as the last time, at once: where there is no room for that it grows as far as it can */
	if (!err)
		buffer_fit(&pipeline->part, pipeline->part_bytes + pipeline->part_bytes / 8);
	return err ?: cutter_cut(pipeline->cutter, window, room_of(pipeline),
				 atomic_load_explicit(&pipeline->named, memory_order_acquire), &pipeline->part,
				 &pipeline->cut);
}

static void count_part(struct pipeline *pipeline, unsigned int parts, bool is_refused, uint64_t since)
{
	pthread_mutex_lock(&pipeline->lock);
	pipeline->stats.parts += parts;
	pipeline->stats.parts_refused += is_refused;
	pipeline->stats.parts_samples_refused += is_refused ? pipeline->cut.samples : 0;
	pipeline->stats.parts_cpu_ns += clock_read(CLOCK_THREAD_CPUTIME_ID) - since;
	pthread_mutex_unlock(&pipeline->lock);
}

void journal_make_part(void *ctx, struct window *window)
{
	const uint64_t since = clock_read(CLOCK_THREAD_CPUTIME_ID);
	struct pipeline *pipeline = ctx;
	struct message *message;
	int err = make_cut(pipeline, window);

	pipeline->part_bytes = pipeline->part.size;
	pipeline->next_part = pipeline->cut.is_more ? 0 : clock_monotonic() + PART_INTERVAL_MS * NSEC_PER_MSEC;
	if (!err && pipeline->part.size) {
		message = message_new(MESSAGE_PART);
		atomic_store_explicit(&pipeline->has_part, true, memory_order_release);
		err = message_send(pipeline->parts, message, 0, QUEUE_NORMAL, 0);
		if (err < 0) {
			buffer_clear(&pipeline->part);
			pipeline->part_is_lost = true;
			atomic_store_explicit(&pipeline->has_part, false, memory_order_release);
		}
	}
	count_part(pipeline, 0, err < 0, since);
}

static void write_part(struct pipeline *pipeline, uint64_t since)
{
	const struct pipeline_sink *sink = &pipeline->options.sink;
	int err = sink->journal(sink->ctx, &pipeline->cut, pipeline->part.data, pipeline->part.size);

	buffer_clear(&pipeline->part);
	pipeline->part_is_lost = err;
	/* its window was faster */
	if (err == -EALREADY)
		err = 0;
	if (err)
		log_debug("a part was not written to the journal: %s", strerror(-err));
	count_part(pipeline, 1, err, since);
	atomic_store_explicit(&pipeline->has_part, false, memory_order_release);
}

void *journal_thread(void *ctx)
{
	struct pipeline *pipeline = ctx;
	struct message *message;
	uint64_t since = 0;	/* what it takes to be woken is the journal's as well */
	int r;

	pipeline_enter(pipeline, THREAD_JOURNAL);
	while ((message = message_take(pipeline->parts, -1, &r))) {
		work_begin();
		message_free(message);
		write_part(pipeline, since);
		since = clock_read(CLOCK_THREAD_CPUTIME_ID);
		work_end();
	}
	work_leave();
	return NULL;
}

void journal_forget(struct pipeline *pipeline)
{
	if (!pipeline->cutter)
		return;
	buffer_free(&pipeline->part);
	cutter_free(steal_ptr(pipeline->cutter));
}
