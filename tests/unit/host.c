// SPDX-License-Identifier: Apache-2.0
#include "host.h"

#include <pthread.h>
#include <string.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "export/gzip.h"
#include "pipeline/threads.h"

enum {
	QUEUE_BYTES = 1 << 20,
	ROUND_MS = 200,		/* thread A's, while nothing fills up */
	PART_ROUNDS = 1500 / ROUND_MS,
	PAYLOAD_BYTES = 3584 << 10,
};

struct host {
	struct pipeline pipeline;
	struct journal *journal;
	struct host_result *result;	/* thread C's part of it until it is joined */
};

static int take_payload(void *ctx, struct payload *payload)
{
	struct buffer body = { .pool = POOL_QUEUES };
	struct host *host = ctx;
	int err = gzip_compress(&body, payload->data, payload->size);

	host->result->samples += payload->samples;
	host->result->raw_bytes += payload->size;
	host->result->gzip_bytes += body.size;
	buffer_free(&body);
	free(payload->data);
	return err;
}

static void take_end(void *ctx, uint64_t window)
{
	struct host *host = ctx;

	if (host->journal)
		journal_done(host->journal, window);
}

static int take_part(void *ctx, const struct cut *cut, const uint8_t *data, size_t size)
{
	struct host *host = ctx;

	return journal_add(host->journal, cut->window, data, size, cut->samples, cut->begins);
}

static int open_journal(struct host *host, const char *directory)
{
	return journal_new((uint64_t)64 << 20, &host->journal) ?: journal_open(host->journal, directory);
}

static int open_host(struct host *host, const struct host_options *options)
{
	const struct symbolizer_options symbolizer = { .sysroot = "" };
	const struct drain_options drain = { 0 };
	struct pipeline *pipeline = &host->pipeline;
	struct drain_output output;

	pipeline->options.encode = (struct encode_options){ .max_bytes = PAYLOAD_BYTES, .number = 1 };
	pipeline->options.sink = (struct pipeline_sink){
		.payload = take_payload, .done = take_end, .ctx = host,
		.journal = options->directory ? take_part : NULL,
	};
	pthread_mutex_init(&pipeline->lock, NULL);
	pthread_cond_init(&pipeline->window_gone, NULL);
	output = drain_thread_output(pipeline);
	/* there is no module that has stacks to be unwound */
	output.deferred = NULL;
	output.missing = NULL;
	return (options->directory ? open_journal(host, options->directory) : 0) ?:
	       queue_new(POOL_QUEUES, QUEUE_BYTES, &pipeline->requests) ?:
	       queue_new(POOL_QUEUES, QUEUE_BYTES, &pipeline->windows) ?:
	       queue_new(POOL_QUEUES, QUEUE_BYTES, &pipeline->results) ?:
	       queue_new(POOL_QUEUES, QUEUE_BYTES, &pipeline->parts) ?:
	       symbolizer_new(&symbolizer, &pipeline->symbolizer) ?:
	       drain_new(&drain, &output, &pipeline->drain);
}

static int start_threads(struct pipeline *pipeline)
{
	return -(pthread_create(&pipeline->symbol_thread, NULL, symbol_thread, pipeline) ?:
		 pthread_create(&pipeline->export_thread, NULL, export_thread, pipeline) ?:
		 pthread_create(&pipeline->journal_thread, NULL, journal_thread, pipeline));
}

static uint64_t cpu_of(pthread_t thread)
{
	clockid_t clock;

	return pthread_getcpuclockid(thread, &clock) ? 0 : clock_read(clock);
}

/* On a host thread D has a second and a half for a part; here it gets as long as it takes. */
static void await_part(struct pipeline *pipeline)
{
	while (atomic_load_explicit(&pipeline->has_part, memory_order_acquire))
		usleep(100);
	pipeline->next_part = 0;
}

/* With hours in minutes all threads would be behind, and windows longer than on a host. */
static void await_windows(struct pipeline *pipeline)
{
	pthread_mutex_lock(&pipeline->lock);
	while (pipeline->windows_under_way)
		pthread_cond_wait(&pipeline->window_gone, &pipeline->lock);
	pthread_mutex_unlock(&pipeline->lock);
}

static int feed(struct host *host, const struct host_options *options, struct load *load)
{
	struct pipeline *pipeline = &host->pipeline;
	struct message *message;
	uint64_t time, began, busy_ms = 0;
	uint32_t ms;
	int r = 0, ignored;

	for (uint64_t done = 0, i = 0; !r && done < options->seconds * UINT64_C(1000); done += ms, i++) {
		ms = (uint32_t)(options->is_paced ? max_of(busy_ms, (uint64_t)ROUND_MS) : ROUND_MS);
		if (!options->is_paced)
			await_windows(pipeline);
		began = clock_monotonic();
		r = load_round(load, pipeline->drain, ms, &time);
		while ((message = message_take(pipeline->results, 0, &ignored)))
			message_free(message);
		if (options->directory && i % PART_ROUNDS == 0)
			await_part(pipeline);
		host->result->drain_ns -= clock_read(CLOCK_THREAD_CPUTIME_ID);
		drain_round(pipeline->drain, time);
		queue_rouse(pipeline->requests);
		host->result->drain_ns += clock_read(CLOCK_THREAD_CPUTIME_ID);
		/* it is set by the host's clock, which the load's is far ahead of */
		pipeline->next_part = UINT64_MAX;
		busy_ms = (clock_monotonic() - began) / NSEC_PER_MSEC;
	}
	return r;
}

/* From left to right, as pipeline_stop() does. */
static void join_all(struct pipeline *pipeline, struct host_result *result)
{
	result->journal_thread_ns = cpu_of(pipeline->journal_thread);
	queue_close(pipeline->parts);
	pthread_join(pipeline->journal_thread, NULL);
	/* their clocks end with them */
	await_windows(pipeline);
	result->names_ns = cpu_of(pipeline->symbol_thread);
	result->export_ns = cpu_of(pipeline->export_thread);
	queue_close(pipeline->results);
	queue_close(pipeline->requests);
	pthread_join(pipeline->symbol_thread, NULL);
	queue_close(pipeline->windows);
	pthread_join(pipeline->export_thread, NULL);
}

static void close_host(struct host *host)
{
	struct pipeline *pipeline = &host->pipeline;

	queue_free(pipeline->requests, message_drop);
	queue_free(pipeline->windows, message_drop);
	queue_free(pipeline->results, message_drop);
	queue_free(pipeline->parts, message_drop);
	journal_forget(pipeline);
	drain_free(pipeline->drain);
	symbolizer_free(pipeline->symbolizer);
	journal_free(host->journal);
	pthread_cond_destroy(&pipeline->window_gone);
	pthread_mutex_destroy(&pipeline->lock);
}

static void measure_memory(struct host_result *result)
{
	struct rusage usage;

	for (int id = 0; id < POOL_COUNT; id++) {
		result->pool_bytes += pool_get((enum pool_id)id)->peak;
		result->pool_limits += pool_get((enum pool_id)id)->limit;
	}
	getrusage(RUSAGE_SELF, &usage);
	result->resident = (size_t)usage.ru_maxrss << 10;
}

int host_run(const struct host_options *options, struct host_result *ret_result)
{
	struct host host = { .result = ret_result };
	struct load *load;
	int r;

	memset(ret_result, 0, sizeof(*ret_result));
	r = load_new(&options->load, &load);
	if (r < 0)
		return r;
	r = open_host(&host, options) ?: start_threads(&host.pipeline);
	if (!r) {
		r = feed(&host, options, load);
		drain_finish(host.pipeline.drain);
		drain_stats(host.pipeline.drain, &host.pipeline.stats.drain);
		join_all(&host.pipeline, ret_result);
		pipeline_stats(&host.pipeline, &ret_result->pipeline);
		ret_result->load = *load_stats(load);
		ret_result->drain_ns += ret_result->load.drain_ns;
		if (host.journal)
			ret_result->journal = journal_stats(host.journal);
		measure_memory(ret_result);
	}
	close_host(&host);
	load_free(load);
	return r;
}
