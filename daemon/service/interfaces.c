// SPDX-License-Identifier: Apache-2.0
/*
 * The daemon's interfaces to others. Their threads ask for what they need under its lock, which a reload may hold for
 * long: they give up then.
 */
#include <fcntl.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "broker/broker.h"
#include "service/daemon.h"
#include "service/module.h"

enum { LOCK_MS = 200 };

void daemon_snapshot(struct daemon *daemon, struct snapshot *ret_snapshot, struct pipeline_stats *ret_pipeline,
		     struct exporter_stats *ret_exporter)
{
	struct pause_stats pause;
	const char *paused = pause_text(service_pause(daemon->service, &pause));

	*ret_snapshot = (struct snapshot){
		.uptime_s = (clock_monotonic() - daemon->started) / NSEC_PER_SEC,
		.cpu_ns = clock_read(CLOCK_PROCESS_CPUTIME_ID),
		.user = daemon->rights.user,
		.kept_rights = daemon->rights.kept[0] ? daemon->rights.kept : NULL,
		.broker_pid = broker_pid(),
		.session_id = service_session_id(daemon->service),
		.paused = paused,
		.pauses = pause.pauses,
		.paused_ns = pause.paused_ns,
		.reloads = daemon->reloads,
		.reloads_failed = daemon->reloads_failed,
		.endpoint = service_endpoint(daemon->service),
		.store = service_store(daemon->service),
		.spool = service_spool(daemon->service),
		.relabel = service_relabel(daemon->service),
		.metrics_error = daemon->endpoint_error[0] ? daemon->endpoint_error : NULL,
		.module_failed = daemon->module_failed,
		.serve.error = daemon->server_error[0] ? daemon->server_error : NULL,
		.push.error = daemon->push_error[0] ? daemon->push_error : NULL,
		.exporters = service_exporters(daemon->service),
		.pipeline = ret_pipeline,
		.exporter = ret_exporter,
	};
	ret_snapshot->destinations = service_destinations(daemon->service, &ret_snapshot->destination_count);
	service_stats(daemon->service, ret_pipeline, ret_exporter);
	if (daemon->server)
		server_tell(daemon->server, ret_snapshot);
	if (daemon->push)
		push_tell(daemon->push, ret_snapshot);
}

/* Others have it for a moment only; but a reload may take long. */
static bool lock_soon(struct daemon *daemon)
{
	const uint64_t until = clock_monotonic() + LOCK_MS * NSEC_PER_MSEC;
	const struct timespec time = { .tv_sec = (time_t)(until / NSEC_PER_SEC),
				       .tv_nsec = (long)(until % NSEC_PER_SEC) };

	return !pthread_mutex_clocklock(&daemon->lock, CLOCK_MONOTONIC, &time);
}

static bool endpoint_snapshot(void *ctx, struct snapshot *ret_snapshot, struct pipeline_stats *ret_pipeline,
			      struct exporter_stats *ret_exporter)
{
	struct daemon *daemon = ctx;

	if (!lock_soon(daemon))
		return false;
	daemon_snapshot(daemon, ret_snapshot, ret_pipeline, ret_exporter);
	buffer_init(&daemon->cpus, POOL_ENCODE);
	if (ret_snapshot->session_id && module_read(ret_snapshot->session_id, &daemon->cpus)) {
		ret_snapshot->module_failed = ++daemon->module_failed;
		/* some of the CPUs would look as if the others had begun anew */
		daemon->cpus.size = 0;
	}
	ret_snapshot->cpus = (const struct module_cpu *)(const void *)daemon->cpus.data;
	ret_snapshot->cpu_count = daemon->cpus.size / sizeof(*ret_snapshot->cpus);
	return true;
}

static void endpoint_done(void *ctx)
{
	struct daemon *daemon = ctx;

	buffer_free(&daemon->cpus);
	pthread_mutex_unlock(&daemon->lock);
}

void daemon_open_endpoint(struct daemon *daemon)
{
	const struct endpoint_ops ops = { .snapshot = endpoint_snapshot, .done = endpoint_done, .ctx = daemon };
	const char *listen = service_config(daemon->service)->metrics_listen;

	/* which its first request waits for */
	pthread_mutex_lock(&daemon->lock);
	daemon->endpoint_error[0] = '\0';
	if (listen && endpoint_open(listen, &ops, &daemon->endpoint, daemon->endpoint_error,
				    sizeof(daemon->endpoint_error)) < 0)
		log_error("metrics are not served: %s", daemon->endpoint_error);
	pthread_mutex_unlock(&daemon->lock);
}

void daemon_close_endpoint(struct daemon *daemon)
{
	struct endpoint *endpoint = daemon->endpoint;

	/* its thread may wait for the lock, and the push's looks at it */
	pthread_mutex_lock(&daemon->lock);
	daemon->endpoint = NULL;
	pthread_mutex_unlock(&daemon->lock);
	endpoint_close(endpoint);
}

static bool push_snapshot(void *ctx, struct snapshot *ret_snapshot, struct pipeline_stats *ret_pipeline,
			  struct exporter_stats *ret_exporter)
{
	struct daemon *daemon = ctx;

	if (!endpoint_snapshot(ctx, ret_snapshot, ret_pipeline, ret_exporter))
		return false;
	if (daemon->endpoint)
		endpoint_tell(daemon->endpoint, ret_snapshot);
	return true;
}

void daemon_open_push(struct daemon *daemon)
{
	const struct endpoint_ops ops = { .snapshot = push_snapshot, .done = endpoint_done, .ctx = daemon };
	struct push *push;
	char error[256] = "";

	if (push_open(service_config(daemon->service), &ops, &daemon->series, &push, error, sizeof(error)) < 0)
		log_error("metrics are not pushed: %s", error);
	else
		error[0] = '\0';
	pthread_mutex_lock(&daemon->lock);
	daemon->push = push;
	memcpy(daemon->push_error, error, sizeof(error));
	pthread_mutex_unlock(&daemon->lock);
}

void daemon_close_push(struct daemon *daemon, bool with_last)
{
	struct push *push = daemon->push;

	pthread_mutex_lock(&daemon->lock);
	daemon->push = NULL;
	pthread_mutex_unlock(&daemon->lock);
	push_close(push, with_last);
}

static int close_window(void *ctx, uint64_t *ret_closing)
{
	struct daemon *daemon = ctx;
	int err;

	if (!lock_soon(daemon))
		return -EAGAIN;
	err = service_close_window(daemon->service, ret_closing);
	pthread_mutex_unlock(&daemon->lock);
	return err;
}

static bool has_closed(void *ctx, uint64_t closing)
{
	struct daemon *daemon = ctx;
	bool has;

	if (!lock_soon(daemon))
		return false;
	has = service_has_closed(daemon->service, closing);
	pthread_mutex_unlock(&daemon->lock);
	return has;
}

static int open_store(void *ctx)
{
	struct daemon *daemon = ctx;
	const char *store;
	int fd = -ENOENT;

	if (!lock_soon(daemon))
		return -EAGAIN;
	store = service_store(daemon->service);
	if (store)
		fd = open(store, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (store && fd < 0)
		fd = -EAGAIN;
	pthread_mutex_unlock(&daemon->lock);
	return fd;
}

static bool is_sampling(void *ctx)
{
	struct daemon *daemon = ctx;
	struct pause_stats stats;
	bool is;

	if (!lock_soon(daemon))
		return true;
	/* a session that is held is there, and stopped */
	is = service_session_id(daemon->service) && !service_pause(daemon->service, &stats);
	pthread_mutex_unlock(&daemon->lock);
	return is;
}

static char **record_arguments(void *ctx)
{
	struct daemon *daemon = ctx;
	char **arguments;

	if (!lock_soon(daemon))
		return NULL;
	arguments = config_record_arguments(service_config(daemon->service));
	pthread_mutex_unlock(&daemon->lock);
	return arguments;
}

/* Who may not read the address has no token. */
void daemon_open_server(struct daemon *daemon)
{
	const struct server_ops ops = { .taps = service_taps(daemon->service), .close_window = close_window,
					.has_closed = has_closed, .open_store = open_store,
					.is_sampling = is_sampling,
					.record_arguments = record_arguments, .ctx = daemon };
	const char *listen = service_config(daemon->service)->serve_listen;
	struct server *server = NULL;
	char error[256] = "";
	int err = 0;

	if (listen && !daemon->statusfile)
		snprintf(error, sizeof(error), "there is no %s to write the address to", STATUSFILE_DIRECTORY);
	else if (listen && !server_open(listen, &ops, 0, &server, error, sizeof(error)))
		err = statusfile_write_address(daemon->statusfile, server_name(server));
	if (err) {
		snprintf(error, sizeof(error), "cannot write %s/serve: %s", STATUSFILE_DIRECTORY, strerror(-err));
		server_close(server);
		server = NULL;
	}
	if (error[0])
		log_error("no on-demand profiles: %s", error);
	pthread_mutex_lock(&daemon->lock);
	memcpy(daemon->server_error, error, sizeof(error));
	daemon->server = server;
	pthread_mutex_unlock(&daemon->lock);
}

void daemon_close_server(struct daemon *daemon)
{
	struct server *server = daemon->server;

	pthread_mutex_lock(&daemon->lock);
	daemon->server = NULL;
	pthread_mutex_unlock(&daemon->lock);
	server_close(server);
	if (daemon->statusfile)
		statusfile_write_address(daemon->statusfile, NULL);
}

static bool is_same(const char *old, const char *new)
{
	return old && new && !strcmp(old, new);
}

void daemon_reopen_endpoint(struct daemon *daemon, const char *old)
{
	if (daemon->endpoint && is_same(old, service_config(daemon->service)->metrics_listen))
		return;
	daemon_close_endpoint(daemon);
	daemon_open_endpoint(daemon);
}

void daemon_reopen_server(struct daemon *daemon, const char *old)
{
	if (daemon->server && is_same(old, service_config(daemon->service)->serve_listen))
		return;
	daemon_close_server(daemon);
	daemon_open_server(daemon);
}
