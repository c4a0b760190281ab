// SPDX-License-Identifier: Apache-2.0
#include "service/endpoint.h"

#include <string.h>

#include "base/clock.h"
#include "service/busy.h"
#include "service/metrics.h"
#include "web/address.h"
#include "web/listener.h"

enum { OK = 200, NOT_FOUND = 404, UNAVAILABLE = 503 };

struct endpoint {
	struct listener *listener;
	struct endpoint_ops ops;
};

static const char unix_prefix[] = "unix:";

const char *endpoint_bare_address(const char *listen)
{
	if (!strncmp(listen, unix_prefix, strlen(unix_prefix)))
		return strchr(listen, '/') == listen + strlen(unix_prefix) ? listen + strlen(unix_prefix) : NULL;
	return strchr(listen, '/') ? NULL : listen;
}

int endpoint_check(const char *listen, char *ret_error, size_t error_size)
{
	const char *bare = endpoint_bare_address(listen);
	struct address address;
	int err = bare ? address_parse(bare, &address) : -EINVAL;

	if (!err)
		return 0;
	if (err == -EADDRNOTAVAIL)
		snprintf(ret_error, error_size, "listen must be an address of the loopback "
			 "interface, not `%s'; for access from other hosts use a proxy that "
			 "authenticates", listen);
	else
		snprintf(ret_error, error_size, "listen must be 127.0.0.1:PORT, [::1]:PORT or unix:/PATH, not `%s'",
			 listen);
	return -EINVAL;
}

static void say(struct web_answer *answer, unsigned int status, const char *text)
{
	answer->status = status;
	fprintf(answer->body, "%s\n", text);
}

static void say_ready(struct web_answer *answer, const struct snapshot *snapshot)
{
	if (!snapshot->session_id)
		say(answer, UNAVAILABLE, snapshot->error ? snapshot->error : "not sampling");
	else if (snapshot->pipeline && snapshot->pipeline->busy_ns[THREAD_NAMES] > BUSY_SECONDS * NSEC_PER_SEC)
		say(answer, UNAVAILABLE, "the thread that finds names is blocked by one file or window; see the log");
	else
		say(answer, OK, "sampling");
}

void endpoint_tell(const struct endpoint *endpoint, struct snapshot *snapshot)
{
	const struct listener_counts *counts = listener_counts(endpoint->listener);

	snapshot->metrics = listener_name(endpoint->listener);
	snapshot->requests = counts->answered;
	snapshot->requests_failed = counts->failed;
	snapshot->connections_expired = counts->expired;
	for (size_t i = 0; i < ARRAY_SIZE(counts->refused); i++)
		snapshot->requests_refused += counts->refused[i];
}

static void answer_request(void *ctx, const char *path, const struct web_request *request _unused_,
			   struct web_answer *answer)
{
	struct endpoint *endpoint = ctx;
	struct pipeline_stats pipeline;
	struct exporter_stats exporter;
	struct snapshot snapshot;
	bool is_known;

	/* asking takes the locks that the threads publish under: one that hangs there is noticed */
	is_known = endpoint->ops.snapshot(endpoint->ops.ctx, &snapshot, &pipeline, &exporter);
	if (!strcmp(path, "/healthz")) {
		say(answer, OK, "alive");
	} else if (strcmp(path, "/metrics") && strcmp(path, "/readyz")) {
		say(answer, NOT_FOUND, "Not found. Ask for /metrics, /healthz or /readyz.");
	} else if (!is_known) {
		say(answer, UNAVAILABLE, "The configuration is being read again. Try again in a moment.");
	} else if (!strcmp(path, "/readyz")) {
		say_ready(answer, &snapshot);
	} else {
		endpoint_tell(endpoint, &snapshot);
		answer->type = METRICS_TYPE;
		metrics_print(answer->body, &snapshot);
	}
	if (is_known)
		endpoint->ops.done(endpoint->ops.ctx);
}

int endpoint_open(const char *listen, const struct endpoint_ops *ops, struct endpoint **ret_endpoint,
		  char *ret_error, size_t error_size)
{
	struct endpoint *endpoint;
	int err = endpoint_check(listen, ret_error, error_size);

	if (err)
		return err;
	endpoint = calloc(1, sizeof(*endpoint));
	if (!endpoint) {
		snprintf(ret_error, error_size, "out of memory");
		return -ENOMEM;
	}
	endpoint->ops = *ops;
	err = listener_open(&(struct listener_options){
		.address = endpoint_bare_address(listen),
		.pool = POOL_ENCODE,
		.handler = answer_request,
		.ctx = endpoint,
	}, &endpoint->listener, ret_error, error_size);
	if (err) {
		free(endpoint);
		return err;
	}
	*ret_endpoint = endpoint;
	return 0;
}

void endpoint_close(struct endpoint *endpoint)
{
	if (!endpoint)
		return;
	listener_close(endpoint->listener);
	free(endpoint);
}
