// SPDX-License-Identifier: Apache-2.0
/* Profiles of the moment: a tap on payloads, and what is made of them for who asks. */
#include "fixture.h"
#include "synthetic.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/clock.h"
#include "export/gzip.h"
#include "export/store.h"
#include "pprof.pb-c.h"
#include "service/server.h"
#include "service/viewer.h"
#include "service/viewer_wire.h"
#include "web/guard.h"

enum {
	INSIDE = 40, OTHERS = 7, OUTSIDE = 1000,
	PERIOD_NS = 10000000,
	ANSWER_MAX = 1 << 20,
	PIPELINE_SIZE = 3,	/* as if the third look found all of it through */
};

static struct taps taps = { .lock = PTHREAD_MUTEX_INITIALIZER };
static struct image *burner, *other;
static struct mapped_file *program;

/* What the daemon does; the moments are those of requests. */
static struct {
	int err;
	bool never, is_idle, has_rules;
	const char *store;	/* NULL: none */
	_Atomic unsigned int closings, looks;
	uint64_t sampled;	/* 0: now */
} host;

static void add(struct aggregator *aggregator, struct image *image, uint64_t time, uint64_t ip, size_t count)
{
	const struct synthetic_sample sample = {
		.time = time, .period = PERIOD_NS, .tid = image->tgid, .comm = "thread", .image = image,
		.user_end = STACKTAP_END_COMPLETE, .kernel_end = STACKTAP_END_COMPLETE, .user = &ip, .user_count = 1,
	};

	for (size_t i = 0; i < count; i++)
		assert_int_equal(synthetic_add(aggregator, &sample), 0);
}

static int put_payload(void *ctx _unused_, struct payload *payload)
{
	taps_put(&taps, payload->data, payload->size);
	free(payload->data);
	return 0;
}

/* The window that a request ends has samples of its time, and of times before and after. */
static int close_window(void *ctx _unused_, uint64_t *ret_closing)
{
	const struct encode_options options = { .max_bytes = 1 << 20, .service_name = "shop" };
	const uint64_t now = clock_monotonic();
	struct aggregator *aggregator;
	struct window *window;

	if (host.err)
		return host.err;
	assert_int_equal(aggregator_new(&aggregator), 0);
	assert_int_equal(aggregator_set_profile(aggregator, &synthetic_clock), 0);
	add(aggregator, burner, now - NSEC_PER_SEC / 2, 0x7f1000, INSIDE);
	add(aggregator, other, now - NSEC_PER_SEC / 2, 0x7f2000, OTHERS);
	add(aggregator, burner, now - 100 * NSEC_PER_SEC, 0x7f3000, OUTSIDE);
	add(aggregator, burner, now + 100 * NSEC_PER_SEC, 0x7f3000, OUTSIDE);
	assert_int_equal(aggregator_close(aggregator, now, &window), 0);
	synthetic_resolve(window);
	assert_int_equal(encode_window(&options, window, put_payload, NULL), 0);
	window_free(window);
	aggregator_free(aggregator);
	*ret_closing = atomic_fetch_add(&host.closings, 1) + 1;
	return 0;
}

static bool has_closed(void *ctx _unused_, uint64_t closing _unused_)
{
	return !host.never && atomic_fetch_add(&host.looks, 1) % PIPELINE_SIZE == PIPELINE_SIZE - 1;
}

static int open_store(void *ctx _unused_)
{
	return host.store ? open(host.store, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -ENOENT;
}

static bool is_sampling(void *ctx _unused_)
{
	return !host.is_idle;
}

/* What a configuration leaves out, and has no quotes for. */
static char **record_arguments(void *ctx _unused_)
{
	static const char *const text[] = { "--uid=root", "--relabel=drop service.name pay roll" };
	char **list = calloc(ARRAY_SIZE(text) + 1, sizeof(*list));

	for (size_t i = 0; i < ARRAY_SIZE(text) && host.has_rules; i++)
		list[i] = (char *)(uintptr_t)text[i];
	return list;
}

static const struct server_ops ops = { .taps = &taps, .close_window = close_window, .has_closed = has_closed,
				       .open_store = open_store, .is_sampling = is_sampling,
				       .record_arguments = record_arguments };

static int setup(void **state _unused_)
{
	memset(&host, 0, sizeof(host));
	program = synthetic_file("/usr/bin/burner", true);
	burner = synthetic_image(4711, "burner", "0123456789ab");
	other = synthetic_image(4712, "other", NULL);
	synthetic_map(burner, 0x7f0000, 1, program);
	synthetic_map(other, 0x7f0000, 1, program);
	return 0;
}

static int teardown(void **state _unused_)
{
	image_unref(burner);
	image_unref(other);
	mapped_file_unref(program);
	synthetic_check_pools();
	return pool_get(POOL_REPORT)->used ? -1 : 0;
}

static struct server *open_server_with(const char *stacktap, unsigned int wait_ms, const char **ret_path)
{
	struct server_ops with = ops;
	struct server *server;
	char listen[160], error[256];

	snprintf(listen, sizeof(listen), "unix:%s", fixture_path("s"));
	with.stacktap = stacktap;
	if (server_open(listen, &with, wait_ms, &server, error, sizeof(error)) < 0)
		fail_msg("%s", error);
	*ret_path = server_name(server);
	return server;
}

static struct server *open_server(unsigned int wait_ms, const char **ret_path)
{
	return open_server_with(NULL, wait_ms, ret_path);
}

struct answer {
	char *bytes;
	size_t size;
	const uint8_t *body;
	size_t body_size;
	unsigned int status;
};

static int send_request(const char *path, const char *target)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	char text[512];

	snprintf(un.sun_path, sizeof(un.sun_path), "%s", path);
	snprintf(text, sizeof(text), "GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", target);
	assert_int_equal(connect(fd, (struct sockaddr *)&un, sizeof(un)), 0);
	assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
	return fd;
}

static struct answer read_answer(int fd)
{
	struct answer answer = { .bytes = malloc(ANSWER_MAX + 1) };
	const char *body;
	ssize_t got;

	assert_non_null(answer.bytes);
	while (answer.size < ANSWER_MAX &&
	       (got = recv(fd, answer.bytes + answer.size, ANSWER_MAX - answer.size, 0)) > 0)
		answer.size += (size_t)got;
	close(fd);
	answer.bytes[answer.size] = '\0';
	if (sscanf(answer.bytes, "HTTP/1.1 %u ", &answer.status) != 1)
		fail_msg("no answer: %s", answer.bytes);
	body = strstr(answer.bytes, "\r\n\r\n");
	assert_non_null(body);
	answer.body = (const uint8_t *)body + 4;
	answer.body_size = answer.size - (size_t)(body + 4 - answer.bytes);
	return answer;
}

static void assert_says(const char *path, const char *target, unsigned int status, const char *text)
{
	struct answer answer = read_answer(send_request(path, target));

	if (answer.status != status || !strstr((const char *)answer.body, text))
		fail_msg("no %u with `%s' but %s", status, text, answer.bytes);
	free(answer.bytes);
}

static const char *text_of(const Pprof__Profile *profile, int64_t i)
{
	assert_true(i >= 0 && (size_t)i < profile->n_string_table);
	return profile->string_table[i];
}

/* Samples of a profile for go tool pprof; its period and its time are what was asked for. */
static uint64_t samples_of(const char *path, const char *target)
{
	struct answer answer = read_answer(send_request(path, target));
	struct buffer plain = { .pool = POOL_REPORT };
	Pprof__Profile *profile;
	uint64_t samples = 0, now = clock_read(CLOCK_REALTIME);

	if (answer.status != 200)
		fail_msg("%s", answer.bytes);
	assert_int_equal(gzip_decompress(&plain, answer.body, answer.body_size, ANSWER_MAX), 0);
	profile = pprof__profile__unpack(NULL, plain.size, plain.data);
	assert_non_null(profile);
	for (size_t i = 0; i < profile->n_sample; i++) {
		samples += (uint64_t)profile->sample[i]->value[0];
		assert_int_equal(profile->sample[i]->value[1], profile->sample[i]->value[0] * PERIOD_NS);
	}
	assert_int_equal(profile->period, PERIOD_NS);
	assert_string_equal(text_of(profile, profile->period_type->unit), "nanoseconds");
	assert_true(profile->duration_nanos >= (int64_t)NSEC_PER_SEC);
	assert_true((uint64_t)(profile->time_nanos + profile->duration_nanos) <= now);
	pprof__profile__free_unpacked(profile, NULL);
	buffer_free(&plain);
	free(answer.bytes);
	return samples;
}

static void test_profiles(void **state _unused_)
{
	struct snapshot snapshot = { 0 };
	struct server *server;
	const char *path;

	server = open_server(0, &path);
	assert_int_equal(samples_of(path, "/debug/pprof/profile?seconds=1"), INSIDE + OTHERS);
	assert_int_equal(samples_of(path, "/debug/pprof/profile?seconds=1&pid=4711"), INSIDE);
	assert_int_equal(samples_of(path, "/debug/pprof/profile?seconds=1&process=other"), OTHERS);
	assert_int_equal(samples_of(path, "/debug/pprof/profile?seconds=1&container=0123&event=cpu-clock"), INSIDE);
	assert_int_equal(samples_of(path, "/debug/pprof/profile?seconds=1&service=shop&event=cycles"), INSIDE + OTHERS);
	assert_says(path, "/flamegraph?seconds=1&pid=4711", 200, "f_402000");
	assert_says(path, "/debug/pprof/profile?seconds=1&pid=9", 404, "no process 9");
	assert_int_equal(host.closings, 7);
	server_tell(server, &snapshot);
	assert_string_equal(snapshot.serve.address, path);
	assert_int_equal(snapshot.serve.requests, 7);
	assert_int_equal(snapshot.serve.failed, 0);
	assert_int_equal(pool_get(POOL_REPORT)->used, 0);
	server_close(server);
	assert_int_equal(access(fixture_path("s"), F_OK), -1);
}

static void test_refusals(void **state _unused_)
{
	static const char *const bad[] = { "seconds=0", "seconds=301", "seconds=-1", "seconds=1x", "hz=99", "pid=x",
					   "pid=1&process=a", "seconds=99999999999", "rate=x", "period=-1",
					   "rate=9&period=9" };
	char target[128];
	struct server *server;
	const char *path;

	server = open_server(100, &path);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		snprintf(target, sizeof(target), "/debug/pprof/profile?%s", bad[i]);
		assert_says(path, target, 400, ".");
	}
	assert_says(path, "/debug/pprof/heap", 404, "Not found. Ask for /debug/pprof/profile or /flamegraph");
	assert_int_equal(host.closings, 0);
	host.err = -ENODEV;
	assert_says(path, "/debug/pprof/profile?seconds=1", 503, "not sampling");
	host.err = -EAGAIN;
	assert_says(path, "/debug/pprof/profile?seconds=1", 503, "not symbolized in time");
	host.err = 0;
	host.never = true;
	assert_says(path, "/debug/pprof/profile?seconds=1", 503, "not symbolized in time");
	host.never = false;
	/* the first look finds it done */
	host.looks = PIPELINE_SIZE - 1;
	pool_get(POOL_REPORT)->limit = 2000;
	assert_says(path, "/debug/pprof/profile?seconds=1", 507, "needs more memory");
	server_close(server);
}

static size_t count_taken(void)
{
	size_t count = 0;

	pthread_mutex_lock(&taps.lock);
	for (size_t i = 0; i < TAPS_MAX; i++)
		count += taps.taps[i].is_taken;
	pthread_mutex_unlock(&taps.lock);
	return count;
}

/* Four at once; who hangs up makes room, and the end ends those that wait. */
static void test_bounds(void **state _unused_)
{
	struct server *server;
	const char *path;
	int fds[TAPS_MAX];
	char byte;

	server = open_server(0, &path);
	for (size_t i = 0; i < TAPS_MAX; i++)
		fds[i] = send_request(path, "/flamegraph?seconds=300");
	while (count_taken() < TAPS_MAX)
		usleep(1000);
	assert_says(path, "/debug/pprof/profile?seconds=1", 503, "Four profiles are being taken already");
	close(fds[0]);
	while (count_taken() == TAPS_MAX)
		usleep(1000);
	assert_int_equal(samples_of(path, "/debug/pprof/profile?seconds=1"), INSIDE + OTHERS);
	server_close(server);
	for (size_t i = 1; i < TAPS_MAX; i++) {
		while (recv(fds[i], &byte, 1, 0) > 0)
			;
		close(fds[i]);
	}
	assert_int_equal(count_taken(), 0);
}

static void test_token(void **state _unused_)
{
	struct snapshot snapshot = { 0 };
	struct server *server;
	char error[256];

	assert_int_equal(server_open("0.0.0.0:80", &ops, 0, &server, error, sizeof(error)), -EINVAL);
	assert_int_equal(server_open("127.0.0.1:0", &ops, 0, &server, error, sizeof(error)), 0);
	server_tell(server, &snapshot);
	/* what all may read of the status is no key */
	assert_int_equal(strlen(server_name(server)), strlen(snapshot.serve.address) + GUARD_TOKEN_SIZE);
	assert_memory_equal(server_name(server), snapshot.serve.address, strlen(snapshot.serve.address));
	server_close(server);
}

static int put_stored(void *ctx, struct payload *payload)
{
	assert_int_equal(store_append(ctx, payload->data, payload->size, payload->samples), 0);
	free(payload->data);
	return 0;
}

/* A store as the daemon's with @count samples of burner. */
static void fill_store(const char *directory, size_t count)
{
	const struct store_options options = { .directory = directory, .max_bytes = 1 << 20 };
	const struct encode_options encode = { .max_bytes = 1 << 20, .service_name = "shop" };
	struct aggregator *aggregator;
	struct window *window;
	struct store *store;

	assert_int_equal(store_open(&options, &store), 0);
	assert_int_equal(aggregator_new(&aggregator), 0);
	assert_int_equal(aggregator_set_profile(aggregator, &synthetic_clock), 0);
	add(aggregator, burner, clock_monotonic() - NSEC_PER_SEC, 0x7f1000, count);
	assert_int_equal(aggregator_close(aggregator, clock_monotonic(), &window), 0);
	synthetic_resolve(window);
	assert_int_equal(encode_window(&encode, window, put_stored, store), 0);
	window_free(window);
	aggregator_free(aggregator);
	store_close(store);
}

#define DIES "/dies"	/* in its PATH: such a viewer dies in the middle of its answer */

static void __attribute__((constructor(101))) die_if_viewer(int argc, char **argv)
{
	const struct viewer_head head = { .status = 200, .size = 8 };
	const char *path = getenv("PATH");
	char question[64];

	if (argc != 1 || strcmp(argv[0], viewer_name) != 0 || !path || strcmp(path, DIES) != 0)
		return;
	while (read(VIEWER_SOCKET, question, sizeof(question)) > 0)
		;
	if (write(VIEWER_SOCKET, &head, sizeof(head)) != sizeof(head) || write(VIEWER_SOCKET, "half", 4) != 4)
		abort();
	_exit(0);
}

static bool goes_on(void *ctx _unused_)
{
	return true;
}

/* What was not all sent is no answer. */
static void test_viewer_dies(void **state _unused_)
{
	const struct web_request request = { .socket = -1 };
	struct viewer_job job = { .name = "store", .path = "/", .request = &request, .goes_on = goes_on,
				  .deadline = clock_monotonic() + 60 * NSEC_PER_SEC };
	struct web_answer answer = { .status = 500 };
	char *before = strdup(getenv("PATH")), *body = NULL;
	size_t size;

	job.input = open("/dev/null", O_RDONLY | O_CLOEXEC);
	answer.body = open_memstream(&body, &size);
	assert_int_equal(setenv("PATH", DIES, 1), 0);
	assert_int_equal(viewer_ask(&job, &answer), -EIO);
	assert_int_equal(answer.status, 500);
	setenv("PATH", before, 1);
	fclose(answer.body);
	close(job.input);
	free(before);
	free(body);
}

/* The page of what is stored: what `stacktap serve' answers, by a process of its own. */
static void test_store(void **state _unused_)
{
	struct snapshot snapshot = { 0 };
	struct server *server;
	struct answer answer;
	const char *path;

	server = open_server(0, &path);
	assert_says(path, "/store/", 404, "There is no store");
	host.store = fixture_path("store");
	fixture_run("mkdir store");
	assert_says(path, "/store/timeline.json", 404, "holds no profiles");
	fill_store(host.store, INSIDE);
	answer = read_answer(send_request(path, "/"));
	assert_int_equal(answer.status, 302);
	assert_non_null(strstr(answer.bytes, "\r\nLocation: store/\r\n"));
	free(answer.bytes);
	answer = read_answer(send_request(path, "/store/"));
	assert_int_equal(answer.status, 200);
	assert_non_null(strstr(answer.bytes, "Content-Type: text/html; charset=utf-8\r\n"));
	assert_non_null(strstr(answer.bytes, "Content-Security-Policy: frame-ancestors 'none'\r\n"));
	assert_non_null(strstr(answer.bytes, "<h1>store of "));
	free(answer.bytes);
	assert_says(path, "/store/timeline.json?token=x&process=burner", 200, "\"samples\":40");
	assert_says(path, "/store/flamegraph?process=burner", 200, "f_402000");
	assert_says(path, "/store/report.json?process=other", 404, "no process");
	assert_says(path, "/store/report.json?hz=9", 400, "Unknown parameter `hz'");
	assert_says(path, "/store/../etc/passwd", 404, "Not found");
	fixture_run("for file in store/*.otlp; do printf garbage >$file; done");
	assert_says(path, "/store/timeline.json", 500, "damaged or holds no OTLP profiles");
	server_tell(server, &snapshot);
	assert_int_equal(snapshot.serve.views_failed, 0);
	assert_int_equal(pool_get(POOL_REPORT)->used, 0);
	server_close(server);
}

static const char *script(const char *text)
{
	static char path[256];

	fixture_write("stacktap", text);
	fixture_run("chmod 755 stacktap");
	/* the server keeps it for longer than fixture_path() does */
	snprintf(path, sizeof(path), "%s", fixture_path("stacktap"));
	return path;
}

/* A rate of its own is a session of its own: what `stacktap record' writes, here one that only says how it was called. */
static void test_rate(void **state _unused_)
{
	struct snapshot snapshot = { 0 };
	struct server *server;
	const char *path;
	char text[256];

	fixture_run("mkdir rate");
	fill_store(fixture_path("rate"), OTHERS);
	snprintf(text, sizeof(text), "#!/bin/sh\necho \"$*\" >%s\ncat %s/*.otlp\n", fixture_path("called"),
		 fixture_path("rate"));
	server = open_server_with(script(text), 0, &path);
	assert_says(path, "/flamegraph?seconds=2&pid=4711&rate=999", 200, "f_402000");
	assert_string_equal(fixture_ask("cat called"),
			    "record -q -o - --duration 2 --ceiling 0.2 -p 4711 -F 999");
	assert_says(path, "/flamegraph?seconds=2&process=nobody&period=100&event=-o%20x", 404, "no process nobody");
	assert_string_equal(fixture_ask("cat called"),
			    "record -q -o - --duration 2 --ceiling 0.2 -a --event=-o x -c 100");
	host.has_rules = true;
	snprintf(text, sizeof(text), "#!/bin/sh\nprintf '<%%s>' \"$@\" >%s\ncat %s/*.otlp\n", fixture_path("called"),
		 fixture_path("rate"));
	script(text);
	assert_says(path, "/flamegraph?seconds=2&rate=99", 200, "f_402000");
	assert_string_equal(fixture_ask("cat called"), "<record><-q><-o><-><--duration><2><--ceiling><0.2><-a><-F><99>"
			    "<--uid=root><--relabel=drop service.name pay roll>");
	setenv("OTEL_SERVICE_NAME", "shop", 1);
	setenv("OTEL_RESOURCE_ATTRIBUTES", "a=b", 1);
	setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=secret", 1);
	snprintf(text, sizeof(text), "#!/bin/sh\nenv | grep ^OTEL | sort >%s\ncat %s/*.otlp\n", fixture_path("called"),
		 fixture_path("rate"));
	script(text);
	assert_says(path, "/flamegraph?seconds=2&rate=99", 200, "f_402000");
	assert_string_equal(fixture_ask("tr '\\n' ' ' <called"),
			    "OTEL_RESOURCE_ATTRIBUTES=a=b OTEL_SERVICE_NAME=shop ");
	unsetenv("OTEL_SERVICE_NAME");
	unsetenv("OTEL_RESOURCE_ATTRIBUTES");
	unsetenv("OTEL_EXPORTER_OTLP_HEADERS");
	script("#!/bin/sh\necho 'stacktap: There is no event that.' >&2\nexit 2\n");
	assert_says(path, "/debug/pprof/profile?seconds=1&rate=9&event=that", 400, "There is no event that.\n");
	script("#!/bin/sh\necho 'stacktap: The module is not loaded.' >&2\nexit 1\n");
	assert_says(path, "/debug/pprof/profile?seconds=1&rate=9", 503, "The module is not loaded.\n");
	script("");
	assert_says(path, "/debug/pprof/profile?seconds=1&rate=9", 503, "/stacktap: Exec format error. Is it installed");
	host.is_idle = true;
	assert_says(path, "/debug/pprof/profile?seconds=1&rate=9", 503, "not sampling");
	assert_int_equal(host.closings, 0);
	server_tell(server, &snapshot);
	assert_int_equal(snapshot.serve.views_failed, 0);
	server_close(server);
	host.is_idle = false;
	server = open_server(0, &path);
	assert_says(path, "/flamegraph?rate=99", 503, "`stacktap', which takes this profile, is not installed beside stacktapd");
	server_close(server);
}

/* Who hangs up ends the processes that work for him. */
static void test_hang_up(void **state _unused_)
{
	struct server *server;
	const char *path;
	char text[256];
	int fd;

	snprintf(text, sizeof(text), "#!/bin/sh\necho $$ >%s.new; mv %s.new %s\nexec sleep 300\n", fixture_path("pid"),
		 fixture_path("pid"), fixture_path("pid"));
	server = open_server_with(script(text), 0, &path);
	fd = send_request(path, "/flamegraph?seconds=300&rate=9");
	while (access(fixture_path("pid"), F_OK))
		usleep(1000);
	close(fd);
	fixture_run("while kill -0 $(cat pid) 2>&-; do sleep 0.01; done");
	server_close(server);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_profiles, setup, teardown),
		cmocka_unit_test_setup_teardown(test_refusals, setup, teardown),
		cmocka_unit_test_setup_teardown(test_bounds, setup, teardown),
		cmocka_unit_test_setup_teardown(test_token, setup, teardown),
		cmocka_unit_test_setup_teardown(test_store, setup, teardown),
		cmocka_unit_test(test_viewer_dies),
		cmocka_unit_test_setup_teardown(test_rate, setup, teardown),
		cmocka_unit_test_setup_teardown(test_hang_up, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
