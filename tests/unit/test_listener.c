// SPDX-License-Identifier: Apache-2.0
#include "fixture.h"

#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/clock.h"
#include "web/address.h"
#include "web/listener.h"

#define TOKEN "0123456789abcdef"

enum {
	TURN_MS = 800,
	GIVE_UP_S = 60,
	MUCH = 4096,	/* chunks: more than sockets take */
};

static void test_addresses(void **state _unused_)
{
	static const struct {
		const char *text, *name;
		int ret;
	} rows[] = {
		{ "8080", "http://127.0.0.1:8080", 0 },
		{ "localhost:1", "http://127.0.0.1:1", 0 },
		{ "127.3.2.1:65535", "http://127.3.2.1:65535", 0 },
		{ "[::1]:8080", "http://[::1]:8080", 0 },
		{ "/run/a:1", "/run/a:1", 0 },
		{ "./a", "./a", 0 },
		{ "0.0.0.0:80", NULL, -EADDRNOTAVAIL },
		{ "192.168.0.1:80", NULL, -EADDRNOTAVAIL },
		{ "[::]:80", NULL, -EADDRNOTAVAIL },
		{ "65536", NULL, -EINVAL }, { "", NULL, -EINVAL }, { ":80", NULL, -EINVAL },
		{ "::1:80", NULL, -EINVAL }, { "localhost", NULL, -EINVAL }, { "80 ", NULL, -EINVAL },
		{ "example.org:80", NULL, -EINVAL }, { "-1", NULL, -EINVAL },
	};
	char name[ADDRESS_NAME_MAX], path[200];
	struct address address;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		assert_int_equal(address_parse(rows[i].text, &address), rows[i].ret);
		if (rows[i].ret)
			continue;
		address_name(&address, name, sizeof(name));
		assert_string_equal(name, rows[i].name);
	}
	memset(path, '/', sizeof(path));
	path[sizeof(path) - 1] = '\0';
	assert_int_equal(address_parse(path, &address), -ENAMETOOLONG);
}

static void test_guard(void **state _unused_)
{
	static const struct {
		struct guard_request request;
		enum guard_verdict verdict;
	} rows[] = {
		{ { "/" TOKEN "/a", .host = "localhost:80" }, GUARD_PASS },
		{ { "/" TOKEN, .host = "127.0.0.1" }, GUARD_PASS },
		{ { "/", .host = "[::1]:80", .token = TOKEN }, GUARD_PASS },
		{ { "/", .host = "LOCALHOST", .authorization = "bearer " TOKEN }, GUARD_PASS },
		{ { "/" TOKEN, .host = "localhost:9", .origin = "http://localhost:9" }, GUARD_PASS },
		{ { "/" TOKEN, .host = "localhost:9", .site = "none" }, GUARD_PASS },
		{ { "/" TOKEN, .host = "localhost:9", .site = "cross-site" }, GUARD_BAD_ORIGIN },
		{ { "/" TOKEN, .host = "localhost:9", .origin = "http://localhost:8" }, GUARD_BAD_ORIGIN },
		{ { "/" TOKEN, .host = "localhost:9", .origin = "null" }, GUARD_BAD_ORIGIN },
		{ { "/" TOKEN, .host = NULL }, GUARD_NO_HOST },
		{ { "/" TOKEN, .host = "" }, GUARD_BAD_HOST },
		{ { "/" TOKEN, .host = "evil.example:80" }, GUARD_BAD_HOST },
		{ { "/" TOKEN, .host = "127.0.0.1.evil.example" }, GUARD_BAD_HOST },
		{ { "/" TOKEN, .host = "localhost:80.evil.example" }, GUARD_BAD_HOST },
		{ { "/" TOKEN, .host = "localhost@evil.example" }, GUARD_BAD_HOST },
		{ { "/" TOKEN, .host = "[::1" }, GUARD_BAD_HOST },
		{ { "/" TOKEN, .host = "0.0.0.0:80" }, GUARD_BAD_HOST },
		{ { "/" TOKEN, .host = "2130706433" }, GUARD_BAD_HOST },
		{ { "/", .host = "localhost" }, GUARD_BAD_TOKEN },
		{ { "/" TOKEN "0", .host = "localhost" }, GUARD_BAD_TOKEN },
		{ { "/0123", .host = "localhost", .token = "" }, GUARD_BAD_TOKEN },
		{ { "/", .host = "localhost", .authorization = "Basic " TOKEN }, GUARD_BAD_TOKEN },
		{ { "*", .host = "localhost", .token = TOKEN }, GUARD_BAD_TOKEN },
	};
	const struct guard port = { .token = TOKEN }, open = { 0 }, local = { .is_unix = true };
	const char *path;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		assert_int_equal(guard_check(&port, &rows[i].request, &path), rows[i].verdict);
	assert_int_equal(guard_check(&port, &rows[0].request, &path), GUARD_PASS);
	assert_string_equal(path, "/a");
	assert_int_equal(guard_check(&port, &rows[1].request, &path), GUARD_PASS);
	assert_string_equal(path, "");
	assert_int_equal(guard_check(&open, &(struct guard_request){ .path = "/m", .host = "localhost" }, &path),
			 GUARD_PASS);
	assert_int_equal(guard_check(&open, &(struct guard_request){ .path = "/m", .host = "evil" }, &path),
			 GUARD_BAD_HOST);
	assert_int_equal(guard_check(&local, &(struct guard_request){ .path = "/m" }, &path), GUARD_PASS);
}

static void test_token(void **state _unused_)
{
	char first[GUARD_TOKEN_SIZE], second[GUARD_TOKEN_SIZE];

	assert_int_equal(guard_make_token(first), 0);
	assert_int_equal(guard_make_token(second), 0);
	assert_int_equal(strlen(first), GUARD_TOKEN_SIZE - 1);
	assert_int_equal(strspn(first, "0123456789abcdef"), GUARD_TOKEN_SIZE - 1);
	assert_string_not_equal(first, second);
}

static _Atomic int gate;	/* 1: /wait waits */
static const char chunk[4096];

static void say_hello(void *ctx _unused_, const char *path, const struct web_request *request,
		      struct web_answer *answer)
{
	static const char *const names[] = { "a", "token", NULL };
	const char *unknown = web_unknown_query(request, names), *a = web_query(request, "a");

	if (unknown) {
		answer->status = 400;
		fprintf(answer->body, "unknown %s", unknown);
		return;
	}
	if (!strcmp(path, "/large"))
		while (fwrite(chunk, sizeof(chunk), 1, answer->body) == 1)
			;
	for (size_t i = 0; !strcmp(path, "/much") && i < MUCH; i++)
		fwrite(chunk, sizeof(chunk), 1, answer->body);
	if (!strcmp(path, "/slow"))
		usleep(3 * TURN_MS * 1000);
	while (!strcmp(path, "/wait") && atomic_load(&gate) && !web_is_gone(request))
		usleep(1000);
	answer->name = "x.bin";
	fprintf(answer->body, "path=%s a=%s", path, a ? a : "-");
}

static struct listener *open_one(const char *address, const char *token)
{
	struct listener *listener;
	char error[512];

	assert_int_equal(listener_open(&(struct listener_options){
		.address = address, .token = token, .pool = POOL_ENCODE, .handler = say_hello,
	}, &listener, error, sizeof(error)), 0);
	return listener;
}

static int connect_to(const struct listener *listener)
{
	const char *name = listener_name(listener);
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	bool is_unix = name[0] == '/';
	int fd = socket(is_unix ? AF_UNIX : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (is_unix)
		snprintf(un.sun_path, sizeof(un.sun_path), "%s", name);
	else
		in.sin_port = htons((uint16_t)atoi(strchr(name + strlen("http:"), ':') + 1));
	assert_int_equal(connect(fd, is_unix ? (struct sockaddr *)&un : (struct sockaddr *)&in,
				 is_unix ? sizeof(un) : sizeof(in)), 0);
	return fd;
}

/* All that comes back for @text until the other side closes, or is silent for a while. */
static const char *ask(const struct listener *listener, const char *text)
{
	static char answer[16384];
	int fd = connect_to(listener);
	struct pollfd poller = { .fd = fd, .events = POLLIN };
	size_t size = 0;
	ssize_t got;

	assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
	while (size < sizeof(answer) - 1 && poll(&poller, 1, size ? 300 : 5000) == 1) {
		got = recv(fd, answer + size, sizeof(answer) - 1 - size, 0);
		if (got <= 0)
			break;
		size += (size_t)got;
	}
	answer[size] = '\0';
	close(fd);
	return answer;
}

static void assert_status(const char *answer, unsigned int status)
{
	char head[32];

	snprintf(head, sizeof(head), "HTTP/1.1 %u ", status);
	assert_memory_equal(answer, head, strlen(head));
}

#define HEAD " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"

/* A quarter of the most that a query may say. */
#define AS "a=1&a=2&a=3&a=4&a=5&a=6&a=7&a=8&"

static void test_requests(void **state _unused_)
{
	struct listener *listener = open_one("127.0.0.1:0", TOKEN);
	const struct listener_counts *counts = listener_counts(listener);
	const char *answer = ask(listener, "GET /" TOKEN "/x?a=1%202" HEAD);

	assert_non_null(strstr(listener_name(listener), "/" TOKEN "/"));
	assert_status(answer, 200);
	assert_non_null(strstr(answer, "path=/x a=1 2"));
	assert_non_null(strstr(answer, "attachment; filename=\"x.bin\""));
	assert_non_null(strstr(answer, "Cache-Control: no-store\r\n"));
	assert_non_null(strstr(answer, "Content-Security-Policy: default-src 'none'"));
	answer = ask(listener, "HEAD /x?token=" TOKEN "&a=1" HEAD);
	assert_status(answer, 200);
	assert_non_null(strstr(answer, "Content-Length: 11\r\n"));
	assert_null(strstr(answer, "path="));
	assert_status(ask(listener, "GET /" TOKEN "/x?b=1" HEAD), 400);
	assert_int_equal(counts->answered, 3);
	assert_status(ask(listener, "GET /" TOKEN "/x?" AS AS AS AS HEAD), 200);
	answer = ask(listener, "GET /" TOKEN "/x?a=1&" AS AS AS AS HEAD);
	assert_status(answer, 400);
	assert_non_null(strstr(answer, "too many parameters"));

	assert_status(ask(listener, "GET /x" HEAD), 403);
	assert_status(ask(listener, "GET /" TOKEN "/ HTTP/1.1\r\nHost: a.example\r\n\r\n"), 403);
	assert_status(ask(listener, "GET /" TOKEN "/ HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n"),
		      400);
	assert_status(ask(listener, "GET /" TOKEN "/ HTTP/1.1\r\nHost: localhost\r\n"
			  "Origin: http://a.example\r\n\r\n"), 403);
	answer = ask(listener, "POST /" TOKEN "/ HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nGET / HTT");
	assert_status(answer, 405);
	assert_non_null(strstr(answer, "Allow: GET, HEAD\r\n"));
	/* what stands in a body is no request */
	assert_null(strstr(answer + 1, "HTTP/1.1 "));
	assert_int_equal(counts->answered, 5);
	assert_int_equal(counts->refused[GUARD_BAD_TOKEN], 1);
	assert_int_equal(counts->refused[GUARD_BAD_HOST], 1);
	assert_int_equal(counts->refused[GUARD_BAD_ORIGIN], 1);
	assert_int_equal(counts->refused[GUARD_PASS], 1);
	listener_close(listener);
}

static void test_bounds(void **state _unused_)
{
	static char long_request[40000];
	const struct listener_options options = { .address = "127.0.0.1:0", .pool = POOL_ENCODE, .handler = say_hello,
						  .patience_ms = 60000 };
	struct listener *listener;
	size_t used = pool_get(POOL_ENCODE)->used;
	struct pollfd last = { .events = POLLIN };
	char error[512];
	int fds[17];

	assert_int_equal(listener_open(&options, &listener, error, sizeof(error)), 0);
	assert_status(ask(listener, "GET /large" HEAD), 507);
	assert_int_equal(listener_counts(listener)->failed, 1);
	assert_int_equal(pool_get(POOL_ENCODE)->used, used);

	memset(long_request, 'a', sizeof(long_request) - 1);
	memcpy(long_request, "GET /", 5);
	assert_status(ask(listener, long_request), 414);

	/* the 17th connection waits for room */
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		fds[i] = connect_to(listener);
	last.fd = fds[ARRAY_SIZE(fds) - 1];
	assert_int_equal(send(last.fd, "GET /" HEAD, strlen("GET /" HEAD), MSG_NOSIGNAL),
			 strlen("GET /" HEAD));
	assert_int_equal(poll(&last, 1, 300), 0);
	close(fds[0]);
	assert_int_equal(poll(&last, 1, 5000), 1);
	for (size_t i = 1; i < ARRAY_SIZE(fds); i++)
		close(fds[i]);
	listener_close(listener);
}

/* Sends a byte now and then, so that it is never silent; how many seconds it could, or @give_up. */
static uint64_t trickle(const struct listener *listener, const char *head, uint64_t give_up)
{
	const uint64_t start = clock_monotonic();
	int fd = connect_to(listener);
	struct pollfd poller = { .fd = fd, .events = POLLIN | POLLRDHUP };
	bool is_open = send(fd, head, strlen(head), MSG_NOSIGNAL) == (ssize_t)strlen(head);

	while (is_open && clock_monotonic() - start < give_up * NSEC_PER_SEC)
		is_open = !poll(&poller, 1, 20) && send(fd, "a", 1, MSG_NOSIGNAL) == 1;
	close(fd);
	return (clock_monotonic() - start) / NSEC_PER_SEC;
}

/* Asks for much, and reads a little now and then, until the listener has had enough of it. */
static void sip(const struct listener *listener, uint64_t expired)
{
	int fd = connect_to(listener), small = 4096;
	char bytes[64];
	ssize_t got = 1;

	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
	assert_int_equal(send(fd, "GET /much" HEAD, strlen("GET /much" HEAD), MSG_NOSIGNAL), strlen("GET /much" HEAD));
	for (int i = 0; got > 0 && i < GIVE_UP_S * 100 && listener_counts(listener)->expired < expired; i++) {
		got = recv(fd, bytes, sizeof(bytes), 0);
		usleep(10000);
	}
	close(fd);
	assert_int_equal(listener_counts(listener)->expired, expired);
}

static void test_turns(void **state _unused_)
{
	struct listener_options options = { .address = "127.0.0.1:0", .pool = POOL_REPORT, .handler = say_hello,
					    .turn_ms = TURN_MS };
	const struct listener_counts *counts;
	struct listener *listener;
	char error[512];

	for (options.threads = 0; options.threads <= 2; options.threads += 2) {
		assert_int_equal(listener_open(&options, &listener, error, sizeof(error)), 0);
		counts = listener_counts(listener);
		assert_true(trickle(listener, "GET /", GIVE_UP_S) < GIVE_UP_S);
		assert_true(trickle(listener, "GET / HTTP/1.1\r\nHost: localhost\r\nX: ", GIVE_UP_S) < GIVE_UP_S);
		assert_int_equal(counts->answered, 0);
		assert_int_equal(counts->expired, 2);
		/* what the handler takes is not the client's time */
		assert_non_null(strstr(ask(listener, "GET /slow" HEAD), "path=/slow"));
		assert_int_equal(counts->expired, 2);
		sip(listener, 3);
		listener_close(listener);
	}
	/* a minute, where nobody says how long */
	if (getenv("FULL")) {
		options.turn_ms = 0;
		assert_int_equal(listener_open(&options, &listener, error, sizeof(error)), 0);
		assert_true(trickle(listener, "GET /", 90) < 90);
		listener_close(listener);
	}
}

/* Of a connection that stays open; 0: it was closed. */
static unsigned int await_status(int fd)
{
	struct pollfd poller = { .fd = fd, .events = POLLIN };
	unsigned int status = 0;
	char answer[4096];
	ssize_t got;

	assert_int_equal(poll(&poller, 1, GIVE_UP_S * 1000), 1);
	got = recv(fd, answer, sizeof(answer) - 1, 0);
	answer[max_of(got, (ssize_t)0)] = '\0';
	sscanf(answer, "HTTP/1.1 %u ", &status);
	return status;
}

/* Until it is let in. */
static unsigned int ask_again(const struct listener *listener, const char *text)
{
	unsigned int status = 0;
	int fd;

	for (int i = 0; !status && i < GIVE_UP_S * 100; i++) {
		fd = connect_to(listener);
		if (send(fd, text, strlen(text), MSG_NOSIGNAL) > 0)
			status = await_status(fd);
		close(fd);
		usleep(10000);
	}
	return status;
}

/* Who has not asked makes room for who comes; who has does not. */
static void test_silence(void **state _unused_)
{
	static const char wait[] = "GET /wait" HEAD;
	struct listener_options options = { .address = "127.0.0.1:0", .pool = POOL_ENCODE, .handler = say_hello };
	struct listener *listener;
	char error[512];
	int fds[16];

	for (options.threads = 0; options.threads <= 12; options.threads += 12) {
		const size_t first = options.threads > 0;

		assert_int_equal(listener_open(&options, &listener, error, sizeof(error)), 0);
		atomic_store(&gate, 1);
		for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
			fds[i] = connect_to(listener);
		/* the longest of all */
		if (first)
			assert_int_equal(send(fds[0], wait, strlen(wait), MSG_NOSIGNAL), strlen(wait));
		assert_int_equal(ask_again(listener, "GET /" HEAD), 200);
		assert_true(listener_counts(listener)->expired > 0);
		assert_true(listener_counts(listener)->expired <= ARRAY_SIZE(fds) - first);
		atomic_store(&gate, 0);
		assert_int_equal(first ? await_status(fds[0]) : 200, 200);
		for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
			close(fds[i]);
		listener_close(listener);
	}
}

static void *ask_slowly(void *listener)
{
	int fd = connect_to(listener);
	char byte;

	assert_int_equal(send(fd, "GET /wait" HEAD, strlen("GET /wait" HEAD), MSG_NOSIGNAL), strlen("GET /wait" HEAD));
	assert_int_equal(recv(fd, &byte, 1, 0), 1);
	close(fd);
	return NULL;
}

/* A handler that waits keeps nobody else waiting, and sees its client hang up. */
static void test_threads(void **state _unused_)
{
	struct listener_options options = { .address = "127.0.0.1:0", .pool = POOL_ENCODE, .handler = say_hello,
					    .threads = 2 };
	struct listener *listener;
	pthread_t thread;
	char error[512];
	int fd;

	assert_int_equal(listener_open(&options, &listener, error, sizeof(error)), 0);
	atomic_store(&gate, 1);
	assert_int_equal(pthread_create(&thread, NULL, ask_slowly, listener), 0);
	while (listener_counts(listener)->answered < 1)
		usleep(1000);
	assert_status(ask(listener, "GET /x" HEAD), 200);
	atomic_store(&gate, 0);
	pthread_join(thread, NULL);

	atomic_store(&gate, 1);
	fd = connect_to(listener);
	assert_int_equal(send(fd, "GET /wait" HEAD, strlen("GET /wait" HEAD), MSG_NOSIGNAL), strlen("GET /wait" HEAD));
	while (listener_counts(listener)->answered < 3)
		usleep(1000);
	close(fd);
	/* which waits for the handler */
	listener_close(listener);
	assert_int_equal(atomic_load(&gate), 1);
}

static void test_unix_socket(void **state _unused_)
{
	char directory[] = "/tmp/listener-XXXXXX", path[64], error[512];
	struct listener *listener, *second;
	struct listener_options options = { .address = path, .pool = POOL_ENCODE, .handler = say_hello };
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	struct stat st;
	int fd;

	assert_non_null(mkdtemp(directory));
	snprintf(path, sizeof(path), "%s/s", directory);
	listener = open_one(path, NULL);
	assert_string_equal(listener_name(listener), path);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_status(ask(listener, "GET /" HEAD), 200);
	assert_int_equal(listener_open(&options, &second, error, sizeof(error)), -EADDRINUSE);
	assert_non_null(strstr(error, "cannot listen on /tmp/listener-"));
	listener_close(listener);
	assert_int_equal(access(path, F_OK), -1);

	options.address = "/no/such/s";
	assert_int_equal(listener_open(&options, &second, error, sizeof(error)), -ENOENT);
	options.address = path;

	/* one that was left over */
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	snprintf(un.sun_path, sizeof(un.sun_path), "%s", path);
	assert_int_equal(bind(fd, (struct sockaddr *)&un, sizeof(un)), 0);
	close(fd);
	listener_close(open_one(path, NULL));

	/* what is no socket is left alone */
	fclose(fopen(path, "w"));
	assert_int_equal(listener_open(&options, &second, error, sizeof(error)), -EADDRINUSE);
	unlink(path);
	rmdir(directory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_addresses),
		cmocka_unit_test(test_guard),
		cmocka_unit_test(test_token),
		cmocka_unit_test(test_requests),
		cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_turns),
		cmocka_unit_test(test_silence),
		cmocka_unit_test(test_threads),
		cmocka_unit_test(test_unix_socket),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
