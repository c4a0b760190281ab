// SPDX-License-Identifier: Apache-2.0
#include "fixture.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/clock.h"
#include "service/endpoint.h"

static struct {
	bool is_busy;
	uint64_t session, busy_ns;
	unsigned int open, asked;
} host;

static bool tell(void *ctx _unused_, struct snapshot *ret_snapshot, struct pipeline_stats *ret_pipeline,
		 struct exporter_stats *ret_exporter)
{
	if (host.is_busy)
		return false;
	host.open++;
	host.asked++;
	*ret_pipeline = (struct pipeline_stats){ .counts = { .samples = 4711 }, .busy_ns[THREAD_NAMES] = host.busy_ns };
	*ret_exporter = (struct exporter_stats){ .sum.retries = 3 };
	*ret_snapshot = (struct snapshot){ .session_id = host.session, .error = host.session ? NULL : "no module",
					   .pipeline = ret_pipeline, .exporter = ret_exporter };
	return true;
}

static void done(void *ctx _unused_)
{
	host.open--;
}

static struct endpoint *open_one(const char *listen)
{
	const struct endpoint_ops ops = { .snapshot = tell, .done = done };
	struct endpoint *endpoint;
	char error[512];

	host = (typeof(host)){ .session = 7 };
	if (endpoint_open(listen, &ops, &endpoint, error, sizeof(error)) < 0)
		fail_msg("%s", error);
	return endpoint;
}

static const char *ask_at(const struct sockaddr *address, socklen_t address_size, const char *text)
{
	static char answer[1 << 17];
	int fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct pollfd poller = { .fd = fd, .events = POLLIN };
	size_t size = 0;
	ssize_t got = 1;

	assert_int_equal(connect(fd, address, address_size), 0);
	assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
	while (got > 0 && size < sizeof(answer) - 1 && poll(&poller, 1, 5000) == 1) {
		got = recv(fd, answer + size, sizeof(answer) - 1 - size, 0);
		size += got > 0 ? (size_t)got : 0;
	}
	answer[size] = '\0';
	close(fd);
	return answer;
}

static const char *ask_unix(const char *path, const char *what)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	char text[256];

	snprintf(un.sun_path, sizeof(un.sun_path), "%s", path);
	snprintf(text, sizeof(text), "%s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", what);
	return ask_at((struct sockaddr *)&un, sizeof(un), text);
}

static void assert_says(const char *answer, unsigned int status, const char *text)
{
	char head[32];

	snprintf(head, sizeof(head), "HTTP/1.1 %u ", status);
	if (strncmp(answer, head, strlen(head)) || !strstr(answer, text))
		fail_msg("no status %u with `%s' in: %s", status, text, answer);
}

static void test_addresses(void **state _unused_)
{
	static const char *const good[] = { "127.0.0.1:9470", "[::1]:9470", "localhost:1", "unix:/run/a" };
	static const char *const foreign[] = { "0.0.0.0:9470", "[::]:9470", "192.0.2.1:9470" };
	static const char *const bad[] = { "", "/run/a", "unix:a", "unix:", "unix:./a", "127.0.0.1", "a.example:80",
					   "127.0.0.1:65536" };
	char error[512];

	for (size_t i = 0; i < ARRAY_SIZE(good); i++)
		assert_int_equal(endpoint_check(good[i], error, sizeof(error)), 0);
	for (size_t i = 0; i < ARRAY_SIZE(foreign); i++) {
		assert_int_equal(endpoint_check(foreign[i], error, sizeof(error)), -EINVAL);
		assert_non_null(strstr(error, "listen must be an address of the loopback interface"));
	}
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		assert_int_equal(endpoint_check(bad[i], error, sizeof(error)), -EINVAL);
		assert_non_null(strstr(error, "unix:/PATH"));
	}
}

static void test_answers(void **state _unused_)
{
	const char *path = fixture_path("s"), *answer;
	struct endpoint *endpoint;
	struct snapshot snapshot = { 0 };
	char listen[128];

	snprintf(listen, sizeof(listen), "unix:%s", path);
	endpoint = open_one(listen);
	answer = ask_unix(path, "GET /metrics");
	assert_says(answer, 200, "\r\nContent-Type: application/openmetrics-text; version=1.0.0; charset=utf-8\r\n");
	assert_says(answer, 200, "\nstacktap_windows_samples_total 4711\n");
	assert_says(answer, 200, "\nstacktap_exporter_retries_total 3\n");
	assert_says(answer, 200, "\nstacktap_metrics_requests_total 1\n");
	assert_string_equal(answer + strlen(answer) - strlen("\n# EOF\n"), "\n# EOF\n");
	assert_says(ask_unix(path, "GET /healthz"), 200, "\r\n\r\nalive\n");
	assert_says(ask_unix(path, "GET /readyz"), 200, "\r\n\r\nsampling\n");
	assert_says(ask_unix(path, "HEAD /metrics"), 200, "Content-Length: ");
	assert_says(ask_unix(path, "GET /"), 404, "Ask for /metrics");
	assert_says(ask_unix(path, "POST /metrics"), 405, "Use GET");

	host.busy_ns = 31 * NSEC_PER_SEC;
	assert_says(ask_unix(path, "GET /readyz"), 503, "the thread that finds names is blocked");
	assert_says(ask_unix(path, "GET /healthz"), 200, "alive");
	host.session = 0;
	assert_says(ask_unix(path, "GET /readyz"), 503, "\r\n\r\nno module\n");
	host.is_busy = true;
	assert_says(ask_unix(path, "GET /readyz"), 503, "being read again");
	assert_says(ask_unix(path, "GET /metrics"), 503, "being read again");
	assert_says(ask_unix(path, "GET /healthz"), 200, "alive");
	assert_int_equal(host.open, 0);

	endpoint_tell(endpoint, &snapshot);
	assert_string_equal(snapshot.metrics, path);
	assert_int_equal(snapshot.requests, 11);
	assert_int_equal(snapshot.requests_refused, 1);
	endpoint_close(endpoint);
	assert_int_equal(access(path, F_OK), -1);
}

static void test_host(void **state _unused_)
{
	struct endpoint *endpoint = open_one("127.0.0.1:0");
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	const struct sockaddr *address = (struct sockaddr *)&in;
	struct snapshot snapshot = { 0 };
	char error[512], taken[64];
	const struct endpoint_ops ops = { .snapshot = tell, .done = done };
	struct endpoint *second;

	endpoint_tell(endpoint, &snapshot);
	in.sin_port = htons((uint16_t)atoi(strrchr(snapshot.metrics, ':') + 1));
	assert_says(ask_at(address, sizeof(in), "GET /metrics HTTP/1.1\r\nHost: 127.0.0.1:1\r\n"
			   "Connection: close\r\n\r\n"), 200, "# EOF");
	assert_int_equal(host.asked, 1);
	assert_says(ask_at(address, sizeof(in), "GET /metrics HTTP/1.1\r\nHost: a.example\r\n"
			   "Connection: close\r\n\r\n"), 403, "not a loopback name");
	assert_int_equal(host.asked, 1);
	snprintf(taken, sizeof(taken), "127.0.0.1:%u", ntohs(in.sin_port));
	assert_int_equal(endpoint_open(taken, &ops, &second, error, sizeof(error)), -EADDRINUSE);
	assert_non_null(strstr(error, taken));
	endpoint_close(endpoint);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_addresses),
		cmocka_unit_test(test_answers),
		cmocka_unit_test(test_host),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
