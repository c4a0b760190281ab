// SPDX-License-Identifier: Apache-2.0
/*
 * export_driver URL COUNT RUN-MS [NAME=VALUE...]: send COUNT payloads of a synthetic window, retry
 * for RUN-MS at most or until nothing waits, stop, and print what the exporter counted. Names:
 * compress, timeout, backoff_min, backoff_max, stop (ms), queue (bytes), headers, store.
 */
#include <string.h>

#include "base/clock.h"
#include "base/pool.h"
#include "export/exporter.h"
#include "synthetic.h"

struct driver {
	struct exporter_options options;
	unsigned int count, run_ms, stop_ms;
	struct payload payload;		/* one of them, to copy */
};

static int keep(void *ctx, struct payload *payload)
{
	struct driver *driver = ctx;

	driver->payload = *payload;
	return 0;
}

static void make_payload(struct driver *driver)
{
	const struct encode_options options = { .max_bytes = 16 << 20 };
	struct aggregator *aggregator;
	struct window *window;

	assert_int_equal(aggregator_new(&aggregator), 0);
	window = synthetic_window(aggregator);
	assert_int_equal(encode_window(&options, window, keep, driver), 0);
	window_free(window);
	aggregator_free(aggregator);
}

static int parse(struct driver *driver, char *argument)
{
	char *value = strchr(argument, '=');
	unsigned long number;

	if (!value)
		return -EINVAL;
	*value++ = '\0';
	number = strtoul(value, NULL, 10);
	if (!strcmp(argument, "compress"))
		driver->options.compress = number;
	else if (!strcmp(argument, "timeout"))
		driver->options.timeout_ms = (unsigned int)number;
	else if (!strcmp(argument, "backoff_min"))
		driver->options.backoff_min_ms = (unsigned int)number;
	else if (!strcmp(argument, "backoff_max"))
		driver->options.backoff_max_ms = (unsigned int)number;
	else if (!strcmp(argument, "stop"))
		driver->stop_ms = (unsigned int)number;
	else if (!strcmp(argument, "queue"))
		pool_get(POOL_QUEUES)->limit = number;
	else if (!strcmp(argument, "headers"))
		driver->options.headers = value;
	else if (!strcmp(argument, "store"))
		driver->options.store_directory = value;
	else
		return -EINVAL;
	return 0;
}

static void print_stats(struct exporter *exporter)
{
	struct exporter_stats stats;

	exporter_stats(exporter, &stats);
#define PRINT(name) printf(#name " %llu\n", (unsigned long long)stats.name)
	PRINT(payloads_sent);
	PRINT(payloads_dropped);
	PRINT(payloads_stored);
	PRINT(payloads_waiting);
	PRINT(samples_sent);
	PRINT(samples_dropped);
	PRINT(bytes_raw);
	PRINT(bytes_sent);
	PRINT(retries);
	PRINT(throttled);
	PRINT(partial_rejected);
	PRINT(partial_warnings);
	PRINT(bad_responses);
	PRINT(connections);
	printf("last_error %s\n", stats.last_error);
}

int main(int argc, char **argv)
{
	struct driver driver = { .options.compress = true, .options.backoff_min_ms = 50,
				 .options.store_max_bytes = 64 << 20, .stop_ms = 100 };
	struct exporter *exporter;
	uint64_t start, elapsed;
	int wait;

	if (argc < 4)
		return 2;
	driver.options.endpoint = argv[1][0] ? argv[1] : NULL;
	driver.count = (unsigned int)strtoul(argv[2], NULL, 10);
	driver.run_ms = (unsigned int)strtoul(argv[3], NULL, 10);
	for (int i = 4; i < argc; i++)
		if (parse(&driver, argv[i]))
			return 2;
	make_payload(&driver);
	if (exporter_new(&driver.options, &exporter))
		return 1;
	start = clock_monotonic();
	for (unsigned int i = 0; i < driver.count; i++) {
		struct payload payload = driver.payload;

		payload.data = malloc(payload.size);
		assert_non_null(payload.data);
		memcpy(payload.data, driver.payload.data, payload.size);
		exporter_send(exporter, &payload);
	}
	for (;;) {
		elapsed = (clock_monotonic() - start) / NSEC_PER_MSEC;
		wait = exporter_poll(exporter);
		if (wait < 0 || elapsed >= driver.run_ms)
			break;
		usleep(min_of((unsigned int)wait, 20u) * 1000);
	}
	printf("elapsed_ms %llu\n", (unsigned long long)elapsed);
	exporter_stop(exporter, driver.stop_ms);
	print_stats(exporter);
	exporter_free(exporter);
	free(driver.payload.data);
	synthetic_check_pools();
	return 0;
}
