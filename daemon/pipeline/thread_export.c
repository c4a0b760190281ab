// SPDX-License-Identifier: Apache-2.0
#include "pipeline/threads.h"

#include <string.h>

#include "base/log.h"
#include "export/relabel.h"

static void window_done(struct pipeline *pipeline, const struct window *window, uint64_t handed)
{
	uint64_t samples = 0;

	pthread_mutex_lock(&pipeline->lock);
	for (size_t i = 0; i < window->profile_count; i++) {
		const struct window_counts *counts = &window->counts[i];
		struct window_counts *sum = &pipeline->stats.counts;

		samples += counts->samples;
		sum->samples += counts->samples;
		sum->complete += counts->complete;
		sum->named += counts->named;
		sum->by_range += counts->by_range;
		sum->lost += counts->lost;
		sum->stale += counts->stale;
		sum->moved += counts->moved;
		sum->deferred += counts->deferred;
		sum->deferred_refused += counts->deferred_refused;
		sum->deferred_expired += counts->deferred_expired;
		sum->deferred_failed += counts->deferred_failed;
		sum->throttled += counts->throttled;
		sum->stalled += counts->stalled;
		sum->missed += counts->missed;
		for (size_t k = 0; k < ARRAY_SIZE(sum->user_end); k++)
			sum->user_end[k] += counts->user_end[k];
	}
	pipeline->stats.samples_dropped += samples - min_of(handed, samples);
	pthread_mutex_unlock(&pipeline->lock);
}

struct hand_over {
	struct pipeline *pipeline;
	uint64_t samples;	/* that the sink answers for from now on */
};

static int count_payload(void *ctx, struct payload *payload)
{
	struct hand_over *hand_over = ctx;
	struct pipeline *pipeline = hand_over->pipeline;

	pthread_mutex_lock(&pipeline->lock);
	pipeline->stats.payloads++;
	pthread_mutex_unlock(&pipeline->lock);
	hand_over->samples += payload->samples;
	return pipeline->options.sink.payload(pipeline->options.sink.ctx, payload);
}

void *export_thread(void *ctx)
{
	struct pipeline *pipeline = ctx;
	const struct pipeline_sink *sink = &pipeline->options.sink;
	struct message *message;
	/* an earlier run may have left something to send */
	int r, timeout = sink->poll ? sink->poll(sink->ctx) : -1;

	for (;;) {
		message = message_take(pipeline->windows, timeout, &r);
		if (message) {
			const struct relabel *relabel = pipeline->options.encode.relabel;
			struct hand_over hand_over = { .pipeline = pipeline };
			uint64_t left_out = relabel_samples(relabel);

			r = encode_window(&pipeline->options.encode, message->window, count_payload,
					  &hand_over);
			if (r < 0)
				log_error("a window was not written to its end: %s", strerror(-r));
			left_out = relabel_samples(relabel) - left_out;
			window_done(pipeline, message->window, hand_over.samples + left_out);
			message_free(message);
			pipeline_window_left(pipeline);
			/* new windows come before what waits for another try, which may take long */
			timeout = 0;
			continue;
		}
		if (r == -EPIPE)
			return NULL;
		timeout = sink->poll ? sink->poll(sink->ctx) : -1;
	}
}
