// SPDX-License-Identifier: Apache-2.0
/*
 * push_driver PROTOCOL: send the counters of a daemon that has nothing but 4711 samples, 2.5 s of CPU time and its own
 * pools, once, to where OTEL_EXPORTER_OTLP_* says. Prints the data points, or the reason.
 */
#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "service/push.h"

static bool tell(void *ctx, struct snapshot *ret_snapshot, struct pipeline_stats *ret_pipeline,
		 struct exporter_stats *ret_exporter)
{
	(void)ctx;
	*ret_pipeline = (struct pipeline_stats){ .counts.samples = 4711 };
	*ret_exporter = (struct exporter_stats){ .sum.retries = 3 };
	*ret_snapshot = (struct snapshot){ .uptime_s = 60, .cpu_ns = 2500 * NSEC_PER_MSEC, .session_id = 7,
					   .pipeline = ret_pipeline, .exporter = ret_exporter };
	return true;
}

static void done(void *ctx)
{
	(void)ctx;
}

int main(int argc, char **argv)
{
	static const char *const names[] = { PROTOCOL_NAMES };
	const struct endpoint_ops ops = { .snapshot = tell, .done = done };
	struct snapshot snapshot = { 0 };
	struct otlp_series series;
	struct config config;
	struct push *push;
	char error[256];
	int err;

	config_init(&config);
	config.with_push = true;
	for (unsigned int i = 0; argc == 2 && i < PROTOCOL_COUNT; i++)
		if (!strcmp(argv[1], names[i]))
			config.protocol = i;
	setenv("OTEL_METRIC_EXPORT_INTERVAL", "10", 1);
	otlp_series_init(&series, clock_read(CLOCK_REALTIME) - NSEC_PER_SEC);
	err = push_open(&config, &ops, &series, &push, error, sizeof(error));
	config_done(&config);
	if (err < 0) {
		puts(error);
		return EXIT_FAILURE;
	}
	while (!snapshot.push.sent && !snapshot.push.failed) {
		usleep(1000);
		push_tell(push, &snapshot);
	}
	printf("%" PRIu64 "\n%s", snapshot.push.points - snapshot.push.points_rejected, snapshot.push.last_error);
	push_close(push, false);
	return snapshot.push.failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
