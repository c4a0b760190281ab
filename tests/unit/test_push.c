// SPDX-License-Identifier: Apache-2.0
/* The daemon's counters as OTLP metrics: their names, values and starts, and how they are sent. */
#include "loopback.h"

#include <pthread.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/work.h"
#include "metrics.pb-c.h"
#include "service/metrics.h"
#include "service/push.h"

#define STARTED UINT64_C(1700000000000000000)

typedef Opentelemetry__Proto__Metrics__V1__MetricsData Data;
typedef Opentelemetry__Proto__Metrics__V1__ScopeMetrics Scope;
typedef Opentelemetry__Proto__Metrics__V1__Metric Metric;
typedef Opentelemetry__Proto__Metrics__V1__NumberDataPoint Point;

static struct pipeline_stats pipeline;
static struct exporter_stats exporter;

static struct snapshot snapshot_now(void)
{
	return (struct snapshot){ .uptime_s = 60, .cpu_ns = 1500000000, .session_id = 7, .pipeline = &pipeline,
				  .exporter = &exporter };
}

static struct {
	pthread_t thread;
	int fd, status;
	_Atomic bool hangs;		/* it reads, and does not answer */
	_Atomic bool is_busy;		/* the daemon, which has no figures then */
	_Atomic unsigned int requests, asked;
	const char *_Atomic at_work;	/* while it was asked last */
	char request[1 << 18];
	size_t body, size;
} host;

static unsigned int retry_after_s;	/* that the receiver says; 0: it does not */

static bool tell(void *ctx _unused_, struct snapshot *ret_snapshot, struct pipeline_stats *ret_pipeline,
		 struct exporter_stats *ret_exporter)
{
	host.asked++;
	if (host.is_busy)
		return false;
	*ret_pipeline = pipeline;
	*ret_exporter = exporter;
	*ret_snapshot = snapshot_now();
	return true;
}

static void done(void *ctx _unused_)
{
}

static bool read_request(int fd)
{
	const char *body = NULL, *length;
	size_t want = 0;
	ssize_t n;

	host.size = 0;
	while (!body || host.size - host.body < want) {
		n = read(fd, host.request + host.size, sizeof(host.request) - 1 - host.size);
		if (n <= 0)
			return false;
		host.size += (size_t)n;
		host.request[host.size] = '\0';
		body = strstr(host.request, "\r\n\r\n");
		if (!body)
			continue;
		host.body = (size_t)(body - host.request) + 4;
		length = strcasestr(host.request, "\r\ncontent-length:");
		want = length ? strtoul(length + strlen("\r\ncontent-length:"), NULL, 10) : 0;
	}
	return true;
}

static void *receive(void *ctx _unused_)
{
	char answer[128], retry_after[32] = "";
	int fd, length;

	while ((fd = accept4(host.fd, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
		if (read_request(fd)) {
			if (retry_after_s)
				snprintf(retry_after, sizeof(retry_after), "Retry-After: %u\r\n", retry_after_s);
			length = snprintf(answer, sizeof(answer),
					  "HTTP/1.1 %d X\r\nConnection: close\r\n%sContent-Length: 0\r\n\r\n",
					  host.status, retry_after);
			host.at_work = work_hung(UINT64_MAX, NULL);
			host.requests++;
			while (host.hangs && read(fd, &(char){ 0 }, 1) > 0)
				;
			if (!host.hangs && write(fd, answer, (size_t)length) != length)
				abort();
		}
		close(fd);
	}
	return NULL;
}

static Data *unpack(const void *data, size_t size)
{
	Data *message = opentelemetry__proto__metrics__v1__metrics_data__unpack(NULL, size, data);

	assert_non_null(message);
	assert_int_equal(message->n_resource_metrics, 1);
	assert_int_equal(message->resource_metrics[0]->n_scope_metrics, 1);
	return message;
}

static void let_go(Data *message)
{
	opentelemetry__proto__metrics__v1__metrics_data__free_unpacked(message, NULL);
}

static const char *attribute(const Data *message, const char *key)
{
	const Opentelemetry__Proto__Resource__V1__Resource *resource = message->resource_metrics[0]->resource;

	for (size_t i = 0; i < resource->n_attributes; i++)
		if (!strcmp(resource->attributes[i]->key, key))
			return resource->attributes[i]->value->string_value;
	return NULL;
}

static const Metric *find(const Data *message, const char *name)
{
	const Scope *scope = message->resource_metrics[0]->scope_metrics[0];

	for (size_t i = 0; i < scope->n_metrics; i++)
		if (!strcmp(scope->metrics[i]->name, name))
			return scope->metrics[i];
	fail_msg("no metric %s", name);
	return NULL;
}

static const Point *only_point(const Metric *metric)
{
	if (metric->data_case == OPENTELEMETRY__PROTO__METRICS__V1__METRIC__DATA_SUM) {
		assert_int_equal(metric->sum->n_data_points, 1);
		return metric->sum->data_points[0];
	}
	assert_int_equal(metric->gauge->n_data_points, 1);
	return metric->gauge->data_points[0];
}

/* What the Collector's translation for Prometheus makes of a name and a unit. */
static void test_names(void **state _unused_)
{
	char metric[COUNTER_METRIC_MAX], name[COUNTER_METRIC_MAX], unit[COUNTER_METRIC_MAX],
		translated[COUNTER_METRIC_MAX + 16];

	for (unsigned int id = COUNTER_NONE + 1; id < COUNTER_COUNT; id++) {
		if (counters[id].kind == KIND_ID)
			continue;
		counter_metric(id, metric);
		counter_otlp_name(id, name);
		counter_otlp_unit(id, unit);
		assert_int_equal(!unit[0], counters[id].kind == KIND_FLAG);
		for (char *c = name; *c; c++)
			*c = *c == '.' ? '_' : *c;
		snprintf(translated, sizeof(translated), "%s%s", name,
			 !strcmp(unit, "s") ? "_seconds" : !strcmp(unit, "By") ? "_bytes" : "");
		assert_string_equal(translated, metric);
	}
}

static void test_values(void **state _unused_)
{
	const struct encode_attribute resource[] = {
		{ "service.name", "shop" }, { "host.id", "4711" }, { "host.name", "box" },
	};
	struct snapshot snapshot = snapshot_now();
	struct otlp_series series;
	_cleanup_free_ char *text = NULL;
	struct buffer buffer;
	size_t size, families = 0, points;
	bool is_new = false;
	const Scope *scope;
	FILE *stream;
	Data *message;

	pipeline = (struct pipeline_stats){ .counts.samples = 4711, .drain.degraded = 2 };
	exporter = (struct exporter_stats){ .sum.retries = 3 };
	otlp_series_init(&series, STARTED);
	otlp_series_take(&series, &snapshot, STARTED + NSEC_PER_SEC);
	buffer_init(&buffer, POOL_ENCODE);
	points = (size_t)otlp_metrics_append(&buffer, &snapshot, &series, resource, ARRAY_SIZE(resource));
	message = unpack(buffer.data, buffer.size);
	scope = message->resource_metrics[0]->scope_metrics[0];
	assert_string_equal(attribute(message, "service.name"), "stacktapd");
	assert_string_equal(attribute(message, "service.instance.id"), "4711");
	assert_string_equal(attribute(message, "host.name"), "box");

	assert_int_equal(only_point(find(message, "stacktap.windows.samples"))->as_int, 4711);
	assert_int_equal(only_point(find(message, "stacktap.windows.samples"))->start_time_unix_nano, STARTED);
	assert_int_equal(only_point(find(message, "stacktap.windows.samples"))->time_unix_nano,
			 STARTED + NSEC_PER_SEC);
	assert_true(find(message, "stacktap.windows.samples")->sum->is_monotonic);
	assert_true(only_point(find(message, "stacktap.cpu"))->as_double == 1.5);
	assert_string_equal(find(message, "stacktap.cpu")->unit, "s");
	assert_int_equal(only_point(find(message, "stacktap.windows.degraded"))->as_int, 2);
	assert_int_equal(only_point(find(message, "stacktap.windows.degraded"))->start_time_unix_nano, 0);
	assert_int_equal(find(message, "stacktap.pool.used")->gauge->n_data_points, POOL_COUNT);
	assert_string_equal(find(message, "stacktap.pool.used")->gauge->data_points[0]->attributes[0]->value->string_value,
			    pool_get(0)->name);

	/* as many families with values as there are for Prometheus, where stacktap_info is one more */
	stream = open_memstream(&text, &size);
	metrics_print(stream, &snapshot);
	fclose(stream);
	for (const char *line = text; line; line = strchr(line, '\n'), line += line != NULL) {
		is_new |= !strncmp(line, "# TYPE ", 7);
		if (*line && *line != '#') {
			points--;
			families += is_new;
			is_new = false;
		}
	}
	assert_int_equal(scope->n_metrics, families - 1);
	assert_int_equal(points, (size_t)-1);
	let_go(message);
	buffer_free(&buffer);
}

/* A new session counts from nothing; what the daemon itself counts goes on. */
static void test_starts(void **state _unused_)
{
	struct snapshot snapshot = snapshot_now();
	struct otlp_series series;

	pipeline = (struct pipeline_stats){ .counts.samples = 100 };
	otlp_series_init(&series, STARTED);
	otlp_series_take(&series, &snapshot, STARTED + 10);
	pipeline.counts.samples = 150;
	otlp_series_take(&series, &snapshot, STARTED + 20);
	assert_int_equal(series.start[COUNTER_WINDOWS_samples], STARTED);
	pipeline.counts.samples = 3;
	otlp_series_take(&series, &snapshot, STARTED + 30);
	assert_int_equal(series.start[COUNTER_WINDOWS_samples], STARTED + 20);
	assert_int_equal(series.start[COUNTER_DAEMON_cpu_nano], STARTED);
	/* there is no session for a while */
	snapshot.pipeline = NULL;
	otlp_series_take(&series, &snapshot, STARTED + 40);
	assert_int_equal(series.start[COUNTER_WINDOWS_samples], STARTED + 20);
	pipeline.counts.samples = 1;
	snapshot.pipeline = &pipeline;
	otlp_series_take(&series, &snapshot, STARTED + 50);
	assert_int_equal(series.start[COUNTER_WINDOWS_samples], STARTED + 40);
	/* the clock was set back */
	otlp_series_take(&series, &snapshot, STARTED - 10);
	assert_int_equal(series.start[COUNTER_WINDOWS_samples], STARTED - 10);
	assert_int_equal(series.start[COUNTER_DAEMON_cpu_nano], STARTED - 10);
}

/* It may pass what the one before had come to, before it is told. */
static void test_starts_with_its_source(void **state _unused_)
{
	struct snapshot snapshot = snapshot_now();
	struct otlp_series series;

	snapshot.session_id = 1;
	snapshot.exporters = 1;
	pipeline = (struct pipeline_stats){ .counts.samples = 100, .parts_refused = 5 };
	exporter = (struct exporter_stats){ .sum.payloads_sent = 7,
					    .journal = { .samples = 5, .recovered_samples = 3 } };
	otlp_series_init(&series, STARTED);
	otlp_series_take(&series, &snapshot, STARTED + 10);
	assert_int_equal(series.start[COUNTER_WINDOWS_samples], STARTED);
	snapshot.session_id = 2;
	pipeline.counts.samples = 150;
	otlp_series_take(&series, &snapshot, STARTED + 20);
	assert_int_equal(series.start[COUNTER_WINDOWS_samples], STARTED + 10);
	assert_int_equal(series.start[COUNTER_JOURNAL_parts_refused], STARTED + 10);
	assert_int_equal(series.start[COUNTER_JOURNAL_samples], STARTED);
	assert_int_equal(series.start[COUNTER_EXPORTER_payloads_sent], STARTED);
	assert_int_equal(series.start[COUNTER_DAEMON_cpu_nano], STARTED);
	snapshot.exporters = 2;
	otlp_series_take(&series, &snapshot, STARTED + 30);
	assert_int_equal(series.start[COUNTER_WINDOWS_samples], STARTED + 10);
	assert_int_equal(series.start[COUNTER_JOURNAL_samples], STARTED + 20);
	assert_int_equal(series.start[COUNTER_EXPORTER_payloads_sent], STARTED + 20);
	assert_int_equal(series.start[COUNTER_JOURNAL_recovered], STARTED);
}

/* What the pipeline counts of the journal begins anew without what the exporter does. */
static void test_starts_apart(void **state _unused_)
{
	struct snapshot snapshot = snapshot_now();
	struct otlp_series series;

	pipeline = (struct pipeline_stats){ .parts_refused = 5 };
	exporter = (struct exporter_stats){ .journal.samples = 10000 };
	otlp_series_init(&series, STARTED);
	otlp_series_take(&series, &snapshot, STARTED + 10);
	pipeline.parts_refused = 0;
	exporter.journal.samples = 20000;
	otlp_series_take(&series, &snapshot, STARTED + 20);
	assert_int_equal(series.start[COUNTER_JOURNAL_parts_refused], STARTED + 10);
	assert_int_equal(series.start[COUNTER_JOURNAL_samples], STARTED);
}

/* The module did not answer once. */
static void test_absent_once(void **state _unused_)
{
	const struct module_cpu cpus[] = { { .name = "0", .calls = 70 }, { .name = "1", .calls = 30 } };
	struct snapshot snapshot = snapshot_now();
	struct otlp_series series;

	snapshot.cpus = cpus;
	snapshot.cpu_count = ARRAY_SIZE(cpus);
	otlp_series_init(&series, STARTED);
	otlp_series_take(&series, &snapshot, STARTED + 10);
	snapshot.cpu_count = 0;
	otlp_series_take(&series, &snapshot, STARTED + 20);
	snapshot.cpu_count = ARRAY_SIZE(cpus);
	otlp_series_take(&series, &snapshot, STARTED + 30);
	assert_int_equal(series.start[COUNTER_MODULE_calls], STARTED);
}

static bool own_receiver = true;	/* not that of [export] */
static const char *push_headers, *headers_file;

/* @age_s: since the last snapshot. */
static struct push *open_aged(struct otlp_series *series, int status, unsigned int protocol, unsigned int age_s)
{
	const struct endpoint_ops ops = { .snapshot = tell, .done = done };
	struct push *push;
	struct config config;
	char url[64], error[256];

	memset(&host, 0, sizeof(host));
	host.status = status;
	host.fd = loopback_listen(url, sizeof(url));
	assert_int_equal(pthread_create(&host.thread, NULL, receive, NULL), 0);
	config_init(&config);
	config.with_push = true;
	config.push_seconds = 3600;
	config.protocol = protocol;
	config.compression = COMPRESSION_NONE;
	config.headers = strdup("x-of=export");
	*(own_receiver ? &config.push_endpoint : &config.endpoint) = strdup(url);
	config.push_headers = push_headers ? strdup(push_headers) : NULL;
	config.headers_file = headers_file ? strdup(headers_file) : NULL;
	otlp_series_init(series, clock_read(CLOCK_REALTIME) - age_s * NSEC_PER_SEC);
	if (push_open(&config, &ops, series, &push, error, sizeof(error)))
		fail_msg("%s", error);
	config_done(&config);
	return push;
}

static struct push *open_push(struct otlp_series *series, int status, unsigned int protocol)
{
	return open_aged(series, status, protocol, 0);
}

static void close_receiver(void)
{
	shutdown(host.fd, SHUT_RDWR);
	pthread_join(host.thread, NULL);
	close(host.fd);
}

static void test_last(void **state _unused_)
{
	struct otlp_series series;
	Data *message;

	pipeline = (struct pipeline_stats){ .counts.samples = 99 };
	push_close(open_push(&series, 200, PROTOCOL_HTTP_PROTOBUF), true);
	close_receiver();
	assert_int_equal(host.requests, 1);
	assert_non_null(strstr(host.request, "POST /x/v1/metrics HTTP/1.1\r\n"));
	assert_non_null(strcasestr(host.request, "\r\nContent-Type: application/x-protobuf\r\n"));
	assert_null(strcasestr(host.request, "profiles"));
	message = unpack(host.request + host.body, host.size - host.body);
	assert_int_equal(only_point(find(message, "stacktap.windows.samples"))->as_int, 99);
	let_go(message);

	push_close(open_push(&series, 200, PROTOCOL_HTTP_PROTOBUF), false);
	close_receiver();
	assert_int_equal(host.requests, 0);
}

static void check_headers(const char *is, const char *is_not)
{
	struct otlp_series series;

	push_close(open_push(&series, 200, PROTOCOL_HTTP_PROTOBUF), true);
	close_receiver();
	assert_int_equal(host.requests, 1);
	if (is)
		assert_non_null(strcasestr(host.request, is));
	if (is_not)
		assert_null(strcasestr(host.request, is_not));
}

/* What lets in at one receiver is no business of another one. */
static void test_credentials(void **state _unused_)
{
	char file[] = "/tmp/stacktap-test-XXXXXX";
	int fd = mkstemp(file);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, "x-file: export\n", 15), 15);
	close(fd);
	own_receiver = false;
	check_headers("\r\nx-of: export\r\n", NULL);
	headers_file = file;
	check_headers("\r\nx-file: export\r\n", NULL);
	push_headers = "x-of=push";
	check_headers("\r\nx-of: push\r\n", "x-of: export");
	check_headers(NULL, "x-file");
	own_receiver = true;
	check_headers("\r\nx-of: push\r\n", "x-of: export");
	push_headers = NULL;
	check_headers(NULL, "x-of");
	check_headers(NULL, "x-file");
	headers_file = NULL;
	unlink(file);

	setenv("OTEL_EXPORTER_OTLP_PROFILES_HEADERS", "x-of=profiles", 1);
	check_headers(NULL, "x-of");
	setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-of=generic", 1);
	check_headers("\r\nx-of: generic\r\n", "x-of: profiles");
	own_receiver = false;
	check_headers("\r\nx-of: profiles\r\n", "x-of: generic");
	/* profiles go elsewhere than [export] says */
	setenv("OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT", "http://127.0.0.1:9/", 1);
	check_headers("\r\nx-of: generic\r\n", "x-of: profiles");
	unsetenv("OTEL_EXPORTER_OTLP_HEADERS");
	check_headers("\r\nx-of: export\r\n", "x-of: profiles");
	setenv("OTEL_EXPORTER_OTLP_METRICS_HEADERS", "x-of=metrics", 1);
	check_headers("\r\nx-of: metrics\r\n", "x-of: export");
	own_receiver = true;
	push_headers = "x-of=push";
	check_headers("\r\nx-of: metrics\r\n", "x-of: push");
	push_headers = NULL;
	unsetenv("OTEL_EXPORTER_OTLP_METRICS_HEADERS");
	unsetenv("OTEL_EXPORTER_OTLP_PROFILES_HEADERS");
	unsetenv("OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT");
}

static void test_json(void **state _unused_)
{
	struct otlp_series series;

	pipeline = (struct pipeline_stats){ .counts.samples = 99 };
	push_close(open_push(&series, 200, PROTOCOL_HTTP_JSON), true);
	close_receiver();
	assert_non_null(strstr(host.request + host.body, "\"name\":\"stacktap.windows.samples\""));
	assert_non_null(strstr(host.request + host.body, "\"asInt\":\"99\""));
	assert_non_null(strstr(host.request + host.body, "\"aggregationTemporality\":2"));
}

static void wait_for(bool (*is_so)(struct push *push), struct push *push)
{
	for (unsigned int i = 0; !is_so(push); i++) {
		if (i == 6000)
			fail_msg("it did not come about in a minute");
		usleep(10000);
	}
}

static bool has_failed(struct push *push)
{
	struct snapshot snapshot = { 0 };

	push_tell(push, &snapshot);
	return snapshot.push.failed;
}

static bool was_asked_twice(struct push *push _unused_)
{
	return host.asked >= 2;
}

static bool has_sent(struct push *push)
{
	struct snapshot snapshot = { 0 };

	push_tell(push, &snapshot);
	return snapshot.push.sent;
}

static void test_refused(void **state _unused_)
{
	struct snapshot snapshot = { 0 };
	struct otlp_series series;
	struct push *push;

	setenv("OTEL_METRIC_EXPORT_INTERVAL", "20", 1);
	push = open_push(&series, 404, PROTOCOL_HTTP_PROTOBUF);
	wait_for(has_failed, push);
	push_tell(push, &snapshot);
	assert_string_equal(snapshot.push.last_error, "HTTP 404");
	assert_int_equal(snapshot.push.sent, 0);
	host.status = 200;
	wait_for(has_sent, push);
	push_tell(push, &snapshot);
	assert_string_equal(snapshot.push.last_error, "");
	assert_true(snapshot.push.points > 0);
	push_close(push, false);
	close_receiver();
	unsetenv("OTEL_METRIC_EXPORT_INTERVAL");
}

static bool was_requested_twice(struct push *push _unused_)
{
	return host.requests >= 2;
}

/* Who says when it wants to be asked again is not asked before, and not at the end either. */
static void test_told_to_wait(void **state _unused_)
{
	struct otlp_series series;
	unsigned int requests;
	struct push *push;
	uint64_t start;

	setenv("OTEL_METRIC_EXPORT_INTERVAL", "1", 1);
	retry_after_s = 3600;
	push = open_push(&series, 503, PROTOCOL_HTTP_PROTOBUF);
	wait_for(has_failed, push);
	usleep(2500000);
	assert_int_equal(host.requests, 1);
	push_close(push, true);
	assert_int_equal(host.requests, 1);
	close_receiver();

	/* without that, after an interval, which is a second at least */
	retry_after_s = 0;
	start = clock_monotonic();
	push = open_push(&series, 503, PROTOCOL_HTTP_PROTOBUF);
	usleep(300000);
	requests = host.requests;
	if (clock_monotonic() - start < NSEC_PER_SEC)
		assert_int_equal(requests, 0);
	wait_for(was_requested_twice, push);
	push_close(push, false);
	close_receiver();
	unsetenv("OTEL_METRIC_EXPORT_INTERVAL");
}

/* Sampling ends only afterwards. */
static void test_last_is_short(void **state _unused_)
{
	struct otlp_series series;
	struct push *push = open_push(&series, 200, PROTOCOL_HTTP_PROTOBUF);
	uint64_t start = clock_monotonic();

	host.hangs = true;
	push_close(push, true);
	assert_true(clock_monotonic() - start < PUSH_TIMEOUT_MS * NSEC_PER_MSEC);
	close_receiver();
	assert_int_equal(host.requests, 1);
	assert_string_equal(host.at_work, "push");
}

/* Reloads that come faster than requests are due do not put these off for ever. */
static void test_due_at_once(void **state _unused_)
{
	struct otlp_series series;
	struct push *push = open_aged(&series, 200, PROTOCOL_HTTP_PROTOBUF, 3600);

	wait_for(has_sent, push);
	push_close(push, false);
	close_receiver();
	assert_int_equal(host.requests, 1);
}

/* While a configuration is read there is nothing to tell, which is no failure. */
static void test_busy(void **state _unused_)
{
	struct otlp_series series;
	struct push *push;

	setenv("OTEL_METRIC_EXPORT_INTERVAL", "1", 1);
	pipeline = (struct pipeline_stats){ .counts.samples = 1 };
	push = open_push(&series, 200, PROTOCOL_HTTP_PROTOBUF);
	host.is_busy = true;
	host.asked = 0;
	wait_for(was_asked_twice, push);
	assert_false(has_failed(push));
	host.is_busy = false;
	wait_for(has_sent, push);
	push_close(push, false);
	close_receiver();
	unsetenv("OTEL_METRIC_EXPORT_INTERVAL");
}

static void test_nowhere(void **state _unused_)
{
	const struct endpoint_ops ops = { .snapshot = tell, .done = done };
	struct otlp_series series;
	struct config config;
	struct push *push;
	char error[256];

	config_init(&config);
	assert_int_equal(push_open(&config, &ops, &series, &push, error, sizeof(error)), 0);
	assert_null(push);
	config.with_push = true;
	assert_int_equal(push_open(&config, &ops, &series, &push, error, sizeof(error)), -EINVAL);
	assert_non_null(strstr(error, "[metrics] push_endpoint"));
	config_done(&config);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_starts),
		cmocka_unit_test(test_starts_with_its_source),
		cmocka_unit_test(test_starts_apart),
		cmocka_unit_test(test_absent_once),
		cmocka_unit_test(test_last),
		cmocka_unit_test(test_credentials),
		cmocka_unit_test(test_json),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_told_to_wait),
		cmocka_unit_test(test_last_is_short),
		cmocka_unit_test(test_due_at_once),
		cmocka_unit_test(test_busy),
		cmocka_unit_test(test_nowhere),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
