// SPDX-License-Identifier: Apache-2.0
#include "service/push.h"

#include <pthread.h>
#include <string.h>

#include "base/clock.h"
#include "base/work.h"
#include "export/complaint.h"
#include "export/gzip.h"
#include "export/otlp_json.h"
#include "export/zstd.h"
#include "metrics.pb-c.h"
#include "service/host.h"

#define AGAIN_NS NSEC_PER_SEC	/* after a moment in which there are no figures */
#define INTERVAL_MIN_MS 1000u

struct push {
	struct endpoint_ops ops;
	struct otlp_series *series;
	struct host_resource resource;
	char *endpoint;
	bool is_json;
	enum compression compression;
	unsigned int timeout_ms;
	uint64_t interval_ns;
	uint64_t not_before;		/* CLOCK_MONOTONIC ns, as the receiver said */
	struct http *http;
	struct complaints complaints;
	pthread_t thread;
	pthread_mutex_t lock;		/* of what follows */
	pthread_cond_t wake;
	bool stop, with_last;
	uint64_t sent, failed, points, points_rejected;
	char last_error[HTTP_TEXT_MAX];	/* empty once they are taken again */
};

/* Returns the data points, or -errno; -EAGAIN: they cannot be told for the moment. */
static int make(struct push *push, struct buffer *plain)
{
	struct pipeline_stats pipeline;
	struct exporter_stats exporter;
	struct snapshot snapshot;
	int points;

	if (!push->ops.snapshot(push->ops.ctx, &snapshot, &pipeline, &exporter))
		return -EAGAIN;
	otlp_series_take(push->series, &snapshot, clock_read(CLOCK_REALTIME));
	points = otlp_metrics_append(plain, &snapshot, push->series, push->resource.attributes, push->resource.count);
	push->ops.done(push->ops.ctx);
	return points;
}

static int to_json(struct buffer *plain)
{
	struct buffer json;
	int err;

	buffer_init(&json, POOL_ENCODE);
	err = otlp_json_append(&json, &opentelemetry__proto__metrics__v1__metrics_data__descriptor, plain->data,
			       plain->size);
	buffer_free(plain);
	*plain = json;
	return err;
}

static void see_failed(struct push *push, const char *reason)
{
	pthread_mutex_lock(&push->lock);
	push->failed++;
	snprintf(push->last_error, sizeof(push->last_error), "%s", reason);
	pthread_mutex_unlock(&push->lock);
}

static void send_bytes(struct push *push, const struct buffer *plain, unsigned int points)
{
	enum compression compression = push->compression;
	struct http_answer answer;
	struct buffer packed;

	buffer_init(&packed, POOL_ENCODE);
	if ((compression == COMPRESSION_GZIP && gzip_compress(&packed, plain->data, plain->size)) ||
	    (compression == COMPRESSION_ZSTD && zstd_compress(&packed, plain->data, plain->size)))
		compression = COMPRESSION_NONE;
	if (compression == COMPRESSION_NONE)
		http_post(push->http, plain->data, plain->size, compression, push->timeout_ms, &answer);
	else
		http_post(push->http, packed.data, packed.size, compression, push->timeout_ms, &answer);
	buffer_free(&packed);
	if (answer.result == HTTP_RETRY && answer.retry_after_ms > 0)
		push->not_before = clock_monotonic() + (uint64_t)answer.retry_after_ms * NSEC_PER_MSEC;
	if (answer.result != HTTP_ACCEPTED) {
		see_failed(push, answer.text);
		complain(&push->complaints, answer.result == HTTP_UNCONFIRMED ?
			 "did not confirm a request; the next one has its sums as well" :
			 "did not accept a request; the next one has its sums", &answer);
		return;
	}
	complaints_end(&push->complaints);
	pthread_mutex_lock(&push->lock);
	push->sent++;
	push->points += points;
	push->points_rejected += (uint64_t)answer.rejected;
	push->last_error[0] = '\0';
	pthread_mutex_unlock(&push->lock);
}

/* False: the daemon's figures cannot be told for the moment. */
static bool push_once(struct push *push)
{
	struct buffer plain;
	int points;

	buffer_init(&plain, POOL_ENCODE);
	points = make(push, &plain);
	if (points == -EAGAIN)
		return false;
	if (points > 0 && push->is_json && to_json(&plain))
		points = -ENOMEM;
	if (points > 0)
		send_bytes(push, &plain, (unsigned int)points);
	else
		see_failed(push, "out of memory: the pool `encode' is full, see `stacktap status'");
	buffer_free(&plain);
	return true;
}

/* False: it is to end. */
static bool wait_until(struct push *push, uint64_t until)
{
	const struct timespec time = { .tv_sec = (time_t)(until / NSEC_PER_SEC),
				       .tv_nsec = (long)(until % NSEC_PER_SEC) };
	int err = 0;
	bool stop;

	pthread_mutex_lock(&push->lock);
	while (!push->stop && err != ETIMEDOUT)
		err = pthread_cond_clockwait(&push->wake, &push->lock, CLOCK_MONOTONIC, &time);
	stop = push->stop;
	pthread_mutex_unlock(&push->lock);
	return !stop;
}

/* An interval after the snapshot that the series took last: reloads that come more often do not put it off. */
static uint64_t first_due(const struct push *push)
{
	const uint64_t now = clock_read(CLOCK_REALTIME);
	const uint64_t elapsed = now > push->series->time ? now - push->series->time : 0;

	return clock_monotonic() + push->interval_ns - min_of(elapsed, push->interval_ns);
}

/* What there is at the end, if the receiver is there: sampling goes on until it has it. */
static void push_last(struct push *push)
{
	bool has_failed;

	pthread_mutex_lock(&push->lock);
	has_failed = push->last_error[0];
	pthread_mutex_unlock(&push->lock);
	push->timeout_ms = min_of(push->timeout_ms, (unsigned int)PUSH_LAST_MS);
	if (!has_failed)
		push_once(push);
}

static void *run(void *arg)
{
	struct push *push = arg;
	uint64_t next = first_due(push);
	struct work work;

	work_enter(&work, "push");
	while (wait_until(push, next)) {
		work_begin();
		next += push_once(push) ? push->interval_ns : AGAIN_NS;
		/* what was due while it waited for a receiver is left out */
		if (next < clock_monotonic())
			next = clock_monotonic() + push->interval_ns;
		next = max_of(next, push->not_before);
		work_end();
	}
	work_begin();
	if (push->with_last)
		push_last(push);
	work_leave();
	return NULL;
}

static void push_free(struct push *push)
{
	http_free(push->http);
	host_resource_done(&push->resource);
	free(push->endpoint);
	free(push);
}

/* Its own first, of those the environment's; else where profiles go. */
static char *find_endpoint(const struct config *config, const struct environment *environment, bool is_grpc)
{
	const char *given = is_grpc ? environment->metrics_grpc_endpoint : environment->metrics_endpoint;
	const char *base = config->push_endpoint ?: config->endpoint;

	if (given)
		return strdup(given);
	return base ? environment_signal_url(base, &otlp_metrics, is_grpc) : NULL;
}

/* They are for one receiver: those of [export] and of the profiles signal go to no other. */
static void add_credentials(struct http_options *options, const struct config *config,
			    const struct environment *environment)
{
	const bool is_own = environment->metrics_endpoint ?
				    environment->has_metrics_endpoint || environment->has_profiles_endpoint :
				    config->push_endpoint != NULL;
	/* the variables of profiles may be of a receiver that [export] does not name */
	const bool is_of_profiles = !is_own && !environment->has_profiles_endpoint;
	const char *headers = environment->metrics_headers ?: config->push_headers;

	if (is_of_profiles) {
		options->headers = headers ?: environment->headers;
		options->certificate = environment->certificate;
		options->client_certificate = environment->client_certificate;
		options->client_key = environment->client_key;
	} else {
		options->headers = headers ?: environment->generic_headers;
		options->certificate = environment->metrics_certificate;
		options->client_certificate = environment->metrics_client_certificate;
		options->client_key = environment->metrics_client_key;
	}
	options->certificate = options->certificate ?: config->certificate;
	if (is_own)
		return;
	options->headers = options->headers ?: config->headers;
	/* as those of [export], which others take the place of */
	options->headers_file = headers ? NULL : config->headers_file;
	options->client_certificate = options->client_certificate ?: config->client_certificate;
	options->client_key = options->client_key ?: config->client_key;
}

static int prepare(struct push *push, const struct config *config, const struct environment *environment,
		   char *ret_error, size_t error_size)
{
	const enum protocol protocol = environment->has_protocol ? environment->protocol : config->protocol;
	struct http_options options = { .protocol = protocol, .of = &otlp_metrics };
	int err;

	push->endpoint = find_endpoint(config, environment, protocol == PROTOCOL_GRPC);
	if (!push->endpoint) {
		snprintf(ret_error, error_size, "no receiver: set [export] endpoint, [metrics] push_endpoint or "
			 "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT");
		return -EINVAL;
	}
	push->is_json = protocol == PROTOCOL_HTTP_JSON;
	push->compression = environment->has_compression ? environment->compression : config->compression;
	push->timeout_ms = min_of(environment->timeout_ms ?: (unsigned int)config->timeout_seconds * 1000,
				  (unsigned int)PUSH_TIMEOUT_MS);
	push->interval_ns = environment->metrics_interval_ms ?
				    max_of(environment->metrics_interval_ms, (uint64_t)INTERVAL_MIN_MS) * NSEC_PER_MSEC :
				    config->push_seconds * NSEC_PER_SEC;
	err = host_resource_load(environment, config->attributes, &push->resource, ret_error, error_size);
	if (err < 0)
		return err;
	options.endpoint = push->endpoint;
	add_credentials(&options, config, environment);
	err = http_new(&options, &push->http);
	if (err < 0)
		snprintf(ret_error, error_size, "cannot prepare requests to %s: %s", push->endpoint, strerror(-err));
	return err;
}

static int start(struct push *push, char *ret_error, size_t error_size)
{
	int err;

	pthread_mutex_init(&push->lock, NULL);
	pthread_cond_init(&push->wake, NULL);
	err = pthread_create(&push->thread, NULL, run, push);
	if (!err) {
		pthread_setname_np(push->thread, "stacktap-push");
		return 0;
	}
	snprintf(ret_error, error_size, "cannot start a thread: %s", strerror(err));
	return -err;
}

int push_open(const struct config *config, const struct endpoint_ops *ops, struct otlp_series *series,
	      struct push **ret_push, char *ret_error, size_t error_size)
{
	struct environment environment;
	struct push *push;
	int err;

	*ret_push = NULL;
	if (!config->with_push)
		return 0;
	err = environment_load(&environment, ret_error, error_size);
	if (err < 0)
		return err;
	push = environment.is_disabled ? NULL : calloc(1, sizeof(*push));
	if (!push) {
		err = environment.is_disabled ? 0 : -ENOMEM;
		snprintf(ret_error, error_size, "out of memory");
		environment_free(&environment);
		return err;
	}
	push->ops = *ops;
	push->series = series;
	push->complaints.name = "of metrics";
	err = prepare(push, config, &environment, ret_error, error_size) ?: start(push, ret_error, error_size);
	environment_free(&environment);
	if (err < 0)
		push_free(push);
	else
		*ret_push = push;
	return err;
}

void push_close(struct push *push, bool with_last)
{
	if (!push)
		return;
	pthread_mutex_lock(&push->lock);
	push->stop = true;
	push->with_last = with_last;
	pthread_cond_signal(&push->wake);
	pthread_mutex_unlock(&push->lock);
	pthread_join(push->thread, NULL);
	pthread_cond_destroy(&push->wake);
	pthread_mutex_destroy(&push->lock);
	push_free(push);
}

void push_tell(struct push *push, struct snapshot *snapshot)
{
	pthread_mutex_lock(&push->lock);
	snapshot->push.endpoint = push->endpoint;
	snapshot->push.sent = push->sent;
	snapshot->push.failed = push->failed;
	snapshot->push.points = push->points;
	snapshot->push.points_rejected = push->points_rejected;
	memcpy(snapshot->push.last_error, push->last_error, sizeof(push->last_error));
	pthread_mutex_unlock(&push->lock);
}
