/* SPDX-License-Identifier: Apache-2.0 */
/* What a daemon knows of itself at one moment: the values of counter/counters.def. */
#ifndef STACKTAP_SERVICE_SNAPSHOT_H
#define STACKTAP_SERVICE_SNAPSHOT_H

#include "counter/counter.h"
#include "export/exporter.h"
#include "export/relabel.h"
#include "pipeline/pipeline.h"
#include "service/module.h"

struct snapshot {
	uint64_t uptime_s, cpu_ns;
	const char *user, *kept_rights;		/* that it runs as; why with the rights it was started with, or NULL */
	pid_t broker_pid;			/* 0: none */
	uint64_t session_id;			/* 0: not sampling */
	const char *error;			/* why it is not sampling, or NULL */
	const char *paused;			/* why not for now, or NULL */
	uint64_t pauses, paused_ns;
	uint64_t reloads, reloads_failed;	/* of the configuration */
	const char *endpoint, *store;		/* where profiles go; NULL: not there */
	const char *spool;			/* where they wait; NULL: in memory alone */
	const struct destination_options *destinations; /* all of them, where there are several */
	size_t destination_count;
	const struct relabel *relabel;		/* NULL: no rules */
	const char *metrics, *metrics_error;	/* where they are to be had, or why not; NULL: nowhere */
	uint64_t requests, requests_failed, requests_refused, connections_expired;
	struct {
		const char *endpoint, *error;	/* NULL, both: it is not asked for */
		uint64_t sent, failed, points, points_rejected;
		char last_error[HTTP_TEXT_MAX];
	} push;					/* metrics to an OTLP receiver */
	struct {
		const char *address, *error;	/* NULL, both: it is not asked for */
		uint64_t requests, failed, refused, expired, views_failed;
	} serve;				/* profiles of the moment */
	const struct module_cpu *cpus;		/* [cpu_count]; of metrics alone */
	size_t cpu_count;
	uint64_t module_failed;			/* times that there were none */
	unsigned int exporters;			/* so far: a reload may make another one */
	const struct pipeline_stats *pipeline;	/* NULL: not sampling */
	const struct exporter_stats *exporter;
};

/* Is there anything of this group to be told? */
bool snapshot_has(const struct snapshot *snapshot, enum counter_group group);
/* How many objects of it, and the label of each; NULL: it has one, without a label. */
unsigned int snapshot_instances(const struct snapshot *snapshot, enum counter_group group);
const char *snapshot_label(const struct snapshot *snapshot, enum counter_group group, unsigned int instance);

/* Of a group that is there. */
uint64_t snapshot_counter(const struct snapshot *snapshot, enum counter_id id, unsigned int instance);
/* Of what counts it: another one counts from nothing. 0: the process itself. */
uint64_t snapshot_generation(const struct snapshot *snapshot, enum counter_id id);
/* NULL rather than "" */
const char *snapshot_fact(const struct snapshot *snapshot, enum fact_id id, unsigned int instance);

#endif /* STACKTAP_SERVICE_SNAPSHOT_H */
