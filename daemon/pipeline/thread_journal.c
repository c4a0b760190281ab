// SPDX-License-Identifier: Apache-2.0
#include "pipeline/threads.h"

#include <string.h>

#include "base/clock.h"
#include "base/log.h"

enum {
	/* with a round of thread A and the time to encode a part, a kill loses less than two seconds */
	PART_INTERVAL_MS = 1500,
	/* of parts that continue each other; their encoder takes five times that from the pool that thread C needs */
	PART_PAYLOAD_BYTES = 512 << 10,
	PART_PAYLOADS = 32,
	PART_SHARE = 4,		/* of that pool, one in so many bytes waits for the disk; a larger part is cut */
};

/* Thread D's. */
struct journal_state {
	struct encode_options options;
	struct encoder *encoder;	/* NULL: the next part continues nothing */
};

/* A part is encoded as a whole before any of it is written: a slow disk keeps no window in memory. */
struct encoded {
	struct payload payloads[PART_PAYLOADS];
	size_t count, bytes;
};

bool journal_wants_part(void *ctx, uint64_t time)
{
	const struct pipeline *pipeline = ctx;
	const struct pipeline_sink *sink = &pipeline->options.sink;

	return time >= pipeline->next_part &&
	       !atomic_load_explicit(&pipeline->has_part, memory_order_acquire) &&
	       (!sink->has_journal || sink->has_journal(sink->ctx));
}

void journal_send_part(void *ctx, struct window *part)
{
	struct pipeline *pipeline = ctx;
	struct message *message = message_new(MESSAGE_PART);

	pipeline->next_part = clock_monotonic() + PART_INTERVAL_MS * NSEC_PER_MSEC;
	if (!message) {
		window_free(part);
		return;
	}
	message->window = part;
	atomic_store_explicit(&pipeline->has_part, true, memory_order_release);
	if (message_send(pipeline->parts, message, 0, QUEUE_NORMAL, 0) < 0)
		atomic_store_explicit(&pipeline->has_part, false, memory_order_release);
}

static int take_payload(void *ctx, struct payload *payload)
{
	struct encoded *encoded = ctx;

	if (encoded->count == PART_PAYLOADS ||
	    encoded->bytes + payload->size > pool_get(POOL_ENCODE)->limit / PART_SHARE ||
	    !pool_charge(POOL_ENCODE, payload->size)) {
		free(steal_ptr(payload->data));
		return -ENOBUFS;
	}
	encoded->bytes += payload->size;
	encoded->payloads[encoded->count++] = *payload;
	return 0;
}

static int write_part(struct pipeline *pipeline, struct encoded *encoded)
{
	const struct pipeline_sink *sink = &pipeline->options.sink;
	int err = 0;

	for (size_t i = 0; i < encoded->count; i++) {
		struct payload *payload = &encoded->payloads[i];

		pool_uncharge(POOL_ENCODE, payload->size);
		if (!err)
			err = sink->journal(sink->ctx, payload);
		free(payload->data);
	}
	return err;
}

static void forget(struct journal_state *state)
{
	encoder_free(steal_ptr(state->encoder));
}

static int encode_part(struct journal_state *state, const struct window *part, struct encoded *encoded)
{
	int err = state->encoder ? 0 : encoder_new(&state->options, &state->encoder);

	return err ?: encoder_add(state->encoder, part, take_payload, encoded);
}

static void journal_part(struct pipeline *pipeline, struct journal_state *state,
			 struct message *message)
{
	const uint64_t before = clock_read(CLOCK_THREAD_CPUTIME_ID);
	struct encoded encoded = { .count = 0 };
	int err, written;

	err = encode_part(state, message->window, &encoded);
	message_free(message);
	/* nothing continues it: its memory is thread C's while the disk is waited for */
	if (err)
		forget(state);
	written = write_part(pipeline, &encoded);
	if (written)
		forget(state);
	/* its window was faster */
	if (!err && written != -EALREADY)
		err = written;
	if (err)
		log_debug("a part was not written to the journal: %s", strerror(-err));
	pthread_mutex_lock(&pipeline->lock);
	pipeline->stats.parts++;
	pipeline->stats.parts_refused += err < 0;
	pipeline->stats.parts_cpu_ns += clock_read(CLOCK_THREAD_CPUTIME_ID) - before;
	pthread_mutex_unlock(&pipeline->lock);
	atomic_store_explicit(&pipeline->has_part, false, memory_order_release);
}

void *journal_thread(void *ctx)
{
	struct pipeline *pipeline = ctx;
	struct journal_state state = { .options = pipeline->options.encode };
	struct message *message;
	int r;

	state.options.max_bytes = PART_PAYLOAD_BYTES;
	state.options.is_draft = true;
	while ((message = message_take(pipeline->parts, -1, &r))) {
		pipeline_begin(pipeline, THREAD_JOURNAL);
		journal_part(pipeline, &state, message);
		pipeline_end(pipeline, THREAD_JOURNAL);
	}
	forget(&state);
	return NULL;
}
