// SPDX-License-Identifier: Apache-2.0
/*
 * Writes what the daemon would say of itself, were each of its counters another number.
 * usage: status_files DIRECTORY
 */
#include <string.h>

#include "service/metrics.h"
#include "service/status.h"

static struct pipeline_stats pipeline;
static struct exporter_stats exporter;

/* A number of its own for each word. */
static void fill(void *data, size_t size, uint64_t seed)
{
	uint64_t *words = data;

	for (size_t i = 0; i < size / sizeof(*words); i++)
		words[i] = ((seed + i) * UINT64_C(0x9e3779b97f4a7c15)) >> 20 | UINT64_C(1) << 32 | 1;
}

static int write_file(const char *directory, const char *name, const struct snapshot *snapshot,
		      void (*print)(FILE *stream, const struct snapshot *snapshot))
{
	char path[4096];
	FILE *stream;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	stream = fopen(path, "we");
	if (!stream)
		return -errno;
	print(stream, snapshot);
	return fclose(stream) == EOF ? -errno : 0;
}

int main(int argc, char **argv)
{
	static const struct destination_options destinations[] = {
		{ .name = "near", .http.endpoint = "http://near:4318/", .spool_directory = "/var/lib/spool" },
		{ .name = "far", .http.endpoint = "https://far:4318/" },
	};
	struct snapshot snapshot = { .uptime_s = 11, .cpu_ns = 1234567890, .session_id = 7,
				     .pauses = 31, .paused_ns = 2345678901, .reloads = 32, .reloads_failed = 33,
				     .metrics = "http://127.0.0.1:9470/", .requests = 12, .requests_failed = 13,
				     .requests_refused = 14, .connections_expired = 15,
				     .serve = { .address = "http://127.0.0.1:9471/", .requests = 16, .failed = 17,
						.refused = 18, .expired = 19, .views_failed = 20 },
				     .push = { .endpoint = "http://localhost:4318/v1/metrics", .sent = 51, .failed = 52,
					       .points = 53, .points_rejected = 54, .last_error = "HTTP 404" },
				     .broker_pid = 55,
				     .endpoint = "http://localhost:4318/", .spool = "/var/lib/spool",
				     .destinations = destinations, .destination_count = ARRAY_SIZE(destinations),
				     .pipeline = &pipeline, .exporter = &exporter };
	struct helper_stats *helpers[] = { &pipeline.symbolizer.opener.helper,
					   &pipeline.symbolizer.parser.helper,
					   &pipeline.symbolizer.fetched.helper };
	/* two CPUs, each number its own */
	struct module_cpu cpus[2] = { 0 };
	struct relabel *relabel;
	char error[256];
	int err;

	if (argc != 2)
		return 2;
	fill(&pipeline, sizeof(pipeline), 1);
	fill(&exporter, sizeof(exporter), 10000);
	fill(cpus, sizeof(cpus), 20000);
	strcpy(cpus[0].name, "0");
	strcpy(cpus[1].name, "17");
	snapshot.cpus = cpus;
	snapshot.cpu_count = ARRAY_SIZE(cpus);
	snapshot.module_failed = 21;
	pipeline.symbolizer.fetched.is_on = true;
	strcpy(pipeline.symbolizer.fetched.last_failed, "no such host");
	pipeline.has_tables = pipeline.has_deferred = true;
	strcpy(pipeline.loader.tables.last_failed, "/bin/\"x\\: why");
	strcpy(pipeline.loader.tables.last_refused, "/bin/y: why not");
	pipeline.symbolizer.opener.last_quarantined[0] = '\0';
	pipeline.symbolizer.parser.last_set_apart[0] = '\0';
	strcpy(exporter.sum.last_error, "HTTP 503");
	exporter.sum.spool_error[0] = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(destinations); i++) {
		strcpy(exporter.destinations[i].last_error, "HTTP 503");
		exporter.destinations[i].spool_error[0] = '\0';
	}
	for (size_t i = 0; i < ARRAY_SIZE(helpers); i++) {
		helpers[i]->pid = 100 + (pid_t)i;
		helpers[i]->is_confined = true;
		helpers[i]->abandoned = 3 + (unsigned int)i;
	}
	err = relabel_new(&relabel) ?: relabel_add(relabel, "drop a b\\\"c", error, sizeof(error));
	if (err < 0)
		return 1;
	relabel_left_out(relabel, 0, 17);
	snapshot.relabel = relabel;
	err = write_file(argv[1], "status.json", &snapshot, status_print_daemon_json) ?:
	      write_file(argv[1], "status", &snapshot, status_print_daemon_text) ?:
	      write_file(argv[1], "metrics", &snapshot, metrics_print);
	relabel_free(relabel);
	return err < 0;
}
