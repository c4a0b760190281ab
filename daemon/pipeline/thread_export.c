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
		samples += window->counts[i].samples;
		window_counts_sum(&pipeline->stats.counts, &window->counts[i]);
	}
	pipeline->stats.samples_dropped += samples - min_of(handed, samples);
	pthread_mutex_unlock(&pipeline->lock);
}

struct hand_over {
	struct pipeline *pipeline;
	unsigned int form;
	uint64_t samples;	/* that the sink answers for from now on */
};

static int count_payload(void *ctx, struct payload *payload)
{
	struct hand_over *hand_over = ctx;
	struct pipeline *pipeline = hand_over->pipeline;

	pthread_mutex_lock(&pipeline->lock);
	pipeline->stats.payloads++;
	pthread_mutex_unlock(&pipeline->lock);
	payload->form = hand_over->form;
	hand_over->samples += payload->samples;
	return pipeline->options.sink.payload(pipeline->options.sink.ctx, payload);
}

/* The forms after the first, which has so many samples: what cannot be encoded is lost to the receivers that want it. */
static int encode_others(struct pipeline *pipeline, const struct window *window, uint64_t samples)
{
	struct encode_options options = pipeline->options.encode;
	int err = 0;

	options.is_again = true;
	for (size_t i = 0; i < pipeline->options.other_form_count; i++) {
		struct hand_over hand_over = { .pipeline = pipeline, .form = (unsigned int)i + 1 };

		options.form = pipeline->options.other_forms[i];
		err = encode_window(&options, window, count_payload, &hand_over) ?: err;
		pthread_mutex_lock(&pipeline->lock);
		pipeline->stats.samples_dropped += samples - min_of(hand_over.samples, samples);
		pthread_mutex_unlock(&pipeline->lock);
	}
	return err;
}

void *export_thread(void *ctx)
{
	struct pipeline *pipeline = ctx;
	const struct pipeline_sink *sink = &pipeline->options.sink;
	struct message *message;
	int r, timeout;

	pipeline_enter(pipeline, THREAD_EXPORT);
	work_begin();
	/* an earlier run may have left something to send */
	timeout = sink->poll ? sink->poll(sink->ctx) : -1;
	for (;;) {
		work_end();
		message = message_take(pipeline->windows, timeout, &r);
		work_begin();
		if (message) {
			const struct relabel *relabel = pipeline->options.encode.relabel;
			struct hand_over hand_over = { .pipeline = pipeline };
			uint64_t left_out = relabel_samples(relabel);

			r = encode_window(&pipeline->options.encode, message->window, count_payload,
					  &hand_over) ?: encode_others(pipeline, message->window, hand_over.samples);
			if (r < 0)
				log_error("a window was not written to its end: %s", strerror(-r));
			else if (sink->done)
				sink->done(sink->ctx, message->window->number);
			left_out = relabel_samples(relabel) - left_out;
			window_done(pipeline, message->window, hand_over.samples + left_out);
			message_free(message);
			pipeline_window_left(pipeline);
			/* new windows come before what waits for another try, which may take long */
			timeout = 0;
			continue;
		}
		if (r == -EPIPE) {
			work_leave();
			return NULL;
		}
		timeout = sink->poll ? sink->poll(sink->ctx) : -1;
	}
}
