/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the daemon's loop (stacktapd.c) shares with the interfaces that others reach it by (interfaces.c): the metrics
 * endpoint, their push, and profiles on demand. Each has threads of its own; the loop opens and closes them.
 */
#pragma once

#include <pthread.h>

#include "base/buffer.h"
#include "service/busy.h"
#include "service/endpoint.h"
#include "service/keeper.h"
#include "service/otlp_metrics.h"
#include "service/pause.h"
#include "service/push.h"
#include "service/rights.h"
#include "service/server.h"
#include "service/service.h"
#include "service/snapshot.h"
#include "service/statusfile.h"
#include "service/watch.h"

struct options {
	const char *config_path;
	bool has_config, check_config, dump_config, no_load_module;
	const char *log_level;
};

struct daemon {
	struct options options;
	struct kept_fds kept;	/* until the service has it */
	struct service *service;
	struct statusfile *statusfile;
	int signals;
	uint64_t started;	/* CLOCK_MONOTONIC ns */
	struct endpoint *endpoint;	/* NULL: none */
	struct server *server;		/* the same */
	struct push *push;		/* the same */
	struct otlp_series series;	/* the push's */
	pthread_mutex_t lock;		/* of the service and what follows, for the threads of these */
	char endpoint_error[256], server_error[256], push_error[256];
	struct buffer cpus;		/* the module's; the endpoint's thread alone */
	uint64_t module_failed;
	struct busy busy;
	struct watch watch;		/* of the configuration's file */
	struct rights rights;
	uint64_t reloads, reloads_failed;
	enum pause_reason told;		/* by the log */
};

void daemon_snapshot(struct daemon *daemon, struct snapshot *ret_snapshot, struct pipeline_stats *ret_pipeline,
		     struct exporter_stats *ret_exporter);

/* Profiles come first: where one cannot be opened, the log and the status say so, and sampling goes on. */
void daemon_open_endpoint(struct daemon *daemon);
void daemon_open_push(struct daemon *daemon);
void daemon_open_server(struct daemon *daemon);
void daemon_close_endpoint(struct daemon *daemon);
void daemon_close_push(struct daemon *daemon, bool with_last);
void daemon_close_server(struct daemon *daemon);

/*
 * @old: where it was to listen before, NULL: nowhere. Where it listens as is wanted now, it goes on; where it could
 * not, it tries again.
 */
void daemon_reopen_endpoint(struct daemon *daemon, const char *old);
void daemon_reopen_server(struct daemon *daemon, const char *old);
