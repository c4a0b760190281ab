// SPDX-License-Identifier: Apache-2.0
/*
 * export_driver URL COUNT RUN-MS [NAME=VALUE...]: send COUNT payloads of a synthetic window, retry
 * for RUN-MS at most or until nothing waits, stop, and print what the exporter counted. Names:
 * compress (enum compression), grpc, json, timeout, backoff_min, backoff_max, stop (ms), queue (bytes), headers, store, spool, spool_max
 * (bytes), spool_retry (ms), log, pad (bytes), wait (ms, before the first payload), pause (ms, after each), journal.
 *
 * to=NAME,SPOOL,URL adds a destination, all else as the first one's, whose name is `first' then; SPOOL may be empty.
 * Counts of each have its name before them. until=N ends the run when so many payloads were sent or dropped.
 *
 * With a log each payload has a number, 1 + the lines that the file has, as attribute `number' of a resource
 * of its own, which is all of it if there is a pad, put behind the number. The file gets a line when
 * exporter_send() is back, so that such a driver may be killed at any time.
 *
 * With journal=N a payload is a window of N parts: each has a number, as its process says, goes to the journal, and then
 * into the log; the payload has all N numbers.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/pool.h"
#include "export/cut.h"
#include "export/exporter.h"
#include "synthetic.h"

struct driver {
	struct destination_options destination, all[EXPORTER_DESTINATIONS];
	size_t others;
	uint64_t until;
	struct exporter_options options;
	unsigned int count, run_ms, stop_ms, pause_ms, wait_ms, parts;
	struct payload payload;		/* one of them, to copy */
	const char *log;
	size_t pad;
	struct aggregator *aggregator;	/* with a journal: its windows */
	struct cutter *cutter;
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

static int add_destination(struct driver *driver, char *text)
{
	char *name = strsep(&text, ","), *spool = strsep(&text, ",");

	if (!text || driver->others + 1 == EXPORTER_DESTINATIONS)
		return -EINVAL;
	driver->all[++driver->others] = (struct destination_options){
		.name = name, .spool_directory = *spool ? spool : NULL, .http.endpoint = text,
	};
	return 0;
}

/* What was not said of the others is as the first one's. */
static void complete(struct driver *driver)
{
	if (driver->others)
		driver->destination.name = "first";
	driver->all[0] = driver->destination;
	for (size_t i = 1; i <= driver->others; i++) {
		const struct destination_options said = driver->all[i];

		driver->all[i] = driver->destination;
		driver->all[i].name = said.name;
		driver->all[i].spool_directory = said.spool_directory;
		driver->all[i].http.endpoint = said.http.endpoint;
	}
	driver->options.destinations = driver->all;
	driver->options.destination_count = driver->destination.http.endpoint[0] ? 1 + driver->others : 0;
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
		driver->destination.compression = (enum compression)number;
	else if (!strcmp(argument, "timeout"))
		driver->destination.timeout_ms = (unsigned int)number;
	else if (!strcmp(argument, "backoff_min"))
		driver->destination.backoff_min_ms = (unsigned int)number;
	else if (!strcmp(argument, "backoff_max"))
		driver->destination.backoff_max_ms = (unsigned int)number;
	else if (!strcmp(argument, "stop"))
		driver->stop_ms = (unsigned int)number;
	else if (!strcmp(argument, "queue"))
		pool_get(POOL_QUEUES)->limit = number;
	else if (!strcmp(argument, "headers"))
		driver->destination.http.headers = value;
	else if (!strcmp(argument, "certificate"))
		driver->destination.http.certificate = value;
	else if (!strcmp(argument, "client_certificate"))
		driver->destination.http.client_certificate = value;
	else if (!strcmp(argument, "client_key"))
		driver->destination.http.client_key = value;
	else if (!strcmp(argument, "store"))
		driver->options.store_directory = value;
	else if (!strcmp(argument, "spool"))
		driver->destination.spool_directory = value;
	else if (!strcmp(argument, "spool_max"))
		driver->destination.spool_max_bytes = number;
	else if (!strcmp(argument, "log"))
		driver->log = value;
	else if (!strcmp(argument, "pad"))
		driver->pad = number;
	else if (!strcmp(argument, "grpc"))
		driver->destination.http.protocol = number ? PROTOCOL_GRPC : PROTOCOL_HTTP_PROTOBUF;
	else if (!strcmp(argument, "json"))
		driver->destination.http.protocol = number ? PROTOCOL_HTTP_JSON : PROTOCOL_HTTP_PROTOBUF;
	else if (!strcmp(argument, "spool_retry"))
		driver->destination.spool_retry_ms = (unsigned int)number;
	else if (!strcmp(argument, "to"))
		return add_destination(driver, value);
	else if (!strcmp(argument, "until"))
		driver->until = number;
	else if (!strcmp(argument, "journal"))
		driver->parts = (unsigned int)number;
	else if (!strcmp(argument, "wait"))
		driver->wait_ms = (unsigned int)number;
	else if (!strcmp(argument, "pause"))
		driver->pause_ms = (unsigned int)number;
	else
		return -EINVAL;
	return 0;
}

static void print_stats(const struct driver *driver, struct exporter *exporter)
{
	struct exporter_stats stats;

	exporter_stats(exporter, &stats);
#define PRINT(name) printf(#name " %llu\n", (unsigned long long)stats.sum.name)
	PRINT(payloads_sent);
	PRINT(payloads_dropped);
	printf("payloads_stored %llu\n", (unsigned long long)stats.payloads_stored);
	PRINT(payloads_waiting);
	PRINT(samples_sent);
	PRINT(samples_dropped);
	PRINT(payloads_unconfirmed);
	PRINT(samples_unconfirmed);
	PRINT(bytes_raw);
	PRINT(bytes_sent);
	PRINT(retries);
	PRINT(throttled);
	PRINT(partial_rejected);
	PRINT(partial_warnings);
	PRINT(bad_responses);
	PRINT(connections);
	PRINT(samples_waiting);
#undef PRINT
#define PRINT(name) printf("spool_" #name " %llu\n", (unsigned long long)stats.sum.spool.name)
	PRINT(messages);
	PRINT(full_messages);
	PRINT(damaged_messages);
	printf("last_error %s\n", stats.sum.last_error);
#undef PRINT
#define PRINT(field) printf("%s." #field " %llu\n", driver->all[i].name, (unsigned long long)one->field)
	for (size_t i = 0; driver->others && i < stats.destination_count; i++) {
		const struct destination_stats *one = &stats.destinations[i];

		PRINT(payloads_sent);
		PRINT(payloads_dropped);
		PRINT(payloads_waiting);
		PRINT(samples_sent);
		PRINT(bytes_sent);
	}
#undef PRINT
}

/* The pause after each try, as it was drawn or less: a busy host makes it no longer. */
static void print_pause(struct exporter *exporter, int wait, uint64_t *tries)
{
	struct exporter_stats stats;

	exporter_stats(exporter, &stats);
	if (wait >= 0 && *tries != stats.sum.retries + 1)
		printf("pause.%llu %d\n", (unsigned long long)stats.sum.retries, wait);
	*tries = stats.sum.retries + 1;
}

/* Has all become of the payloads that is waited for? */
static bool is_over(const struct driver *driver, struct exporter *exporter, int wait)
{
	struct exporter_stats stats;

	if (!driver->until && !driver->others)
		return wait < 0;
	exporter_stats(exporter, &stats);
	if (!driver->until)
		return !stats.sum.payloads_waiting;
	return stats.sum.payloads_sent + stats.sum.payloads_dropped + stats.sum.payloads_unconfirmed >= driver->until;
}

/* One more message of the repeated field: a resource with nothing but the attribute. */
static void append_number(struct buffer *buffer, unsigned int number, size_t pad)
{
	const size_t value = sizeof("x00000") - 1 + pad;
	const size_t any = buffer_field_size(value), pair = 8 + buffer_field_size(any);
	const size_t resource = buffer_field_size(pair);
	uint8_t *text;
	char digits[16];

	assert_int_equal(buffer_field(buffer, 1, buffer_field_size(resource)), 0);
	assert_int_equal(buffer_field(buffer, 1, resource), 0);
	assert_int_equal(buffer_field(buffer, 1, pair), 0);
	assert_int_equal(buffer_append(buffer, "\x0a\x06number", 8), 0);
	assert_int_equal(buffer_field(buffer, 2, any), 0);
	assert_int_equal(buffer_field(buffer, 1, value), 0);
	text = buffer_reserve(buffer, value);
	assert_non_null(text);
	snprintf(digits, sizeof(digits), "x%05u", number);
	memcpy(text, digits, sizeof("x00000") - 1);
	memset(text + sizeof("x00000") - 1, 'y', pad);
	buffer->size += value;
}

/* A process that has it in OTEL_RESOURCE_ATTRIBUTES. */
static struct image *make_numbered(unsigned int number)
{
	struct image_details *details = calloc(1, sizeof(*details));
	struct image *image = image_new(NULL, number, 0, "numbered");

	assert_non_null(image);
	assert_non_null(details);
	assert_true(asprintf(&details->attributes, "number=x%05u", number) > 0);
	image_set_details(image, details);
	return image;
}

/* As thread A does with what comes between two parts. */
static void add_part(const struct driver *driver, struct exporter *exporter, unsigned int number)
{
	struct image *image = make_numbered(number);
	const struct synthetic_sample sample = { .time = clock_monotonic(), .comm = "numbered", .image = image };
	struct buffer bytes = { .pool = POOL_ENCODE };
	struct cut cut;

	assert_int_equal(synthetic_add(driver->aggregator, &sample), 0);
	assert_int_equal(cutter_cut(driver->cutter, aggregator_window(driver->aggregator), 1 << 20, 0, &bytes, &cut), 0);
	assert_int_equal(cut.samples, 1);
	assert_int_equal(exporter_journal(exporter, &cut, bytes.data, bytes.size), 0);
	buffer_free(&bytes);
	image_unref(image);
}

/* As threads A and D and then thread C do with a window. */
static void send_parts(const struct driver *driver, struct exporter *exporter, int log)
{
	struct payload whole = { .is_last = true };
	struct window *window;
	struct buffer all;
	struct stat st;

	buffer_init(&all, POOL_ENCODE);
	for (unsigned int i = 0; i < driver->parts; i++) {
		assert_int_equal(fstat(log, &st), 0);
		append_number(&all, (unsigned int)st.st_size + 1, driver->pad);
		add_part(driver, exporter, (unsigned int)st.st_size + 1);
		assert_int_equal(write(log, "\n", 1), 1);
		usleep(driver->pause_ms * 1000);
	}
	assert_int_equal(aggregator_close(driver->aggregator, clock_monotonic(), &window), 0);
	whole.window = window->number;
	window_free(window);
	pool_uncharge(POOL_ENCODE, all.capacity);
	whole.data = all.data;
	whole.size = all.size;
	whole.samples = driver->parts;
	exporter_send(exporter, &whole);
}

static void make_windows(struct driver *driver)
{
	const struct encode_options options = { .max_bytes = 16 << 20 };

	assert_int_equal(aggregator_new(&driver->aggregator), 0);
	assert_int_equal(aggregator_set_profile(driver->aggregator, &synthetic_clock), 0);
	assert_int_equal(cutter_new(&options, &driver->cutter), 0);
}

static void send_one(const struct driver *driver, struct exporter *exporter, int log)
{
	struct payload payload = driver->payload;
	struct buffer buffer;
	struct stat st;

	buffer_init(&buffer, POOL_ENCODE);
	if (!driver->pad)
		assert_int_equal(buffer_append(&buffer, payload.data, payload.size), 0);
	if (log >= 0) {
		assert_int_equal(fstat(log, &st), 0);
		append_number(&buffer, (unsigned int)st.st_size + 1, driver->pad);
	}
	pool_uncharge(POOL_ENCODE, buffer.capacity);
	payload.data = buffer.data;
	payload.size = buffer.size;
	exporter_send(exporter, &payload);
	if (log >= 0)
		assert_int_equal(write(log, "\n", 1), 1);
}

int main(int argc, char **argv)
{
	struct driver driver = {
		.destination = { .name = "", .compression = COMPRESSION_GZIP, .backoff_min_ms = 50, .spool_max_bytes = 64 << 20 },
		.options = { .store_max_bytes = 64 << 20, .destination_count = 1 },
		.stop_ms = 100,
	};
	struct exporter_stats before;
	struct exporter *exporter;
	uint64_t start, elapsed, tries = 0;
	int wait, log;

	if (argc < 4)
		return 2;
	driver.destination.http.endpoint = argv[1];
	driver.count = (unsigned int)strtoul(argv[2], NULL, 10);
	driver.run_ms = (unsigned int)strtoul(argv[3], NULL, 10);
	for (int i = 4; i < argc; i++)
		if (parse(&driver, argv[i]))
			return 2;
	complete(&driver);
	driver.options.with_journal = driver.parts;
	make_payload(&driver);
	make_windows(&driver);
	if (exporter_new(&driver.options, &exporter))
		return 1;
	start = clock_monotonic();
	usleep(driver.wait_ms * 1000);
	log = driver.log ? open(driver.log, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;
	for (unsigned int i = 0; i < driver.count; i++) {
		if (driver.parts)
			send_parts(&driver, exporter, log);
		else
			send_one(&driver, exporter, log);
		if (driver.pause_ms) {
			usleep(driver.pause_ms * 1000);
			exporter_poll(exporter);
		}
	}
	for (;;) {
		elapsed = (clock_monotonic() - start) / NSEC_PER_MSEC;
		wait = exporter_poll(exporter);
		print_pause(exporter, wait, &tries);
		if (is_over(&driver, exporter, wait) || elapsed >= driver.run_ms)
			break;
		usleep(wait < 0 ? 10000 : min_of((unsigned int)wait, 20u) * 1000);
	}
	printf("elapsed_ms %llu\n", (unsigned long long)elapsed);
	exporter_stats(exporter, &before);
	printf("waiting_at_end %llu\n", (unsigned long long)before.sum.payloads_waiting);
	printf("queue_peak %zu\n", pool_get(POOL_QUEUES)->peak);
	exporter_stop(exporter, driver.stop_ms);
	print_stats(&driver, exporter);
	exporter_free(exporter);
	cutter_free(driver.cutter);
	aggregator_free(driver.aggregator);
	free(driver.payload.data);
	synthetic_check_pools();
	return 0;
}
