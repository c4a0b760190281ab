// SPDX-License-Identifier: Apache-2.0
/* The exporter's queue, without a receiver; with one see tests/oracle/exporter_cases.py. */
#include "loopback.h"
#include "synthetic.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/pool.h"
#include "base/work.h"
#include "service/config.h"
#include "export/exporter.h"

static struct exporter *exporter;
static char endpoint[64];

/* An address where nobody listens: bound, so that nobody else can take it. */
static int setup(void **state)
{
	static int fd = -1;
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t length = sizeof(address);
	const struct destination_options destination = { .name = "", .http.endpoint = endpoint,
							 .timeout_ms = 2000, .backoff_min_ms = 40,
							 .backoff_max_ms = 100 };
	const struct exporter_options options = { .destinations = &destination, .destination_count = 1 };

	(void)state;
	if (fd < 0) {
		fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		assert_int_equal(bind(fd, (struct sockaddr *)&address, length), 0);
		assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &length), 0);
		snprintf(endpoint, sizeof(endpoint), "http://127.0.0.1:%u/x",
			 ntohs(address.sin_port));
	}
	assert_int_equal(exporter_new(&options, &exporter), 0);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	exporter_free(exporter);
	synthetic_check_pools();
	return 0;
}

static void send_one(size_t size, uint64_t samples)
{
	struct payload payload = { .data = calloc(1, size), .size = size, .samples = samples };

	assert_non_null(payload.data);
	exporter_send(exporter, &payload);
	assert_null(payload.data);
}

static struct destination_stats stats(void)
{
	struct exporter_stats now;

	exporter_stats(exporter, &now);
	return now.sum;
}

static void nothing_waits_at_first(void **state)
{
	(void)state;
	assert_int_equal(exporter_poll(exporter), -1);
}

static void what_cannot_be_sent_waits(void **state)
{
	int wait;

	(void)state;
	send_one(1000, 10);
	assert_int_equal(stats().payloads_waiting, 1);
	assert_false(exporter_is_behind(exporter));
	assert_int_equal(stats().retries, 0);
	assert_true(strlen(stats().last_error) > 0);
	wait = exporter_poll(exporter);
	assert_true(wait > 0 && wait <= 40);
	/* not before its time */
	assert_int_equal(stats().retries, 0);
	usleep(50000);
	wait = exporter_poll(exporter);
	assert_int_equal(stats().retries, 1);
	assert_true(wait >= 35 && wait <= 80);
	/* another one does not try on its own while the pause is on */
	send_one(1000, 10);
	assert_int_equal(stats().payloads_waiting, 2);
	assert_true(exporter_is_behind(exporter));
	exporter_stop(exporter, 1000);
	assert_int_equal(stats().retries, 3);
	assert_int_equal(stats().payloads_dropped, 2);
	assert_int_equal(stats().samples_dropped, 20);
	assert_int_equal(stats().payloads_waiting, 0);
}

static void the_queue_is_bounded_and_gives_up_the_oldest(void **state)
{
	struct pool *pool = pool_get(POOL_QUEUES);
	size_t limit = pool->limit;

	(void)state;
	pool->limit = 13000;
	for (uint64_t i = 0; i < 10; i++) {
		send_one(3000, 1 + i * 100);
		/* the rest is for the queues between the threads */
		assert_true(atomic_load(&pool->used) <= pool->limit / 4 * 3);
	}
	assert_int_equal(stats().payloads_waiting, 3);
	assert_int_equal(stats().payloads_dropped, 7);
	/* the first seven */
	assert_int_equal(stats().samples_dropped, 7 + 2100);
	/* one that could never fit does not drive the others out */
	send_one(20000, 5);
	assert_int_equal(stats().payloads_waiting, 3);
	assert_int_equal(stats().payloads_dropped, 8);
	exporter_stop(exporter, 0);
	pool->limit = limit;
}

static void a_request_beyond_the_protocols_limit_is_dropped(void **state)
{
	(void)state;
	send_one(((size_t)64 << 20) + 1, 3);
	assert_int_equal(stats().payloads_dropped, 1);
	assert_int_equal(stats().samples_dropped, 3);
	assert_int_equal(stats().payloads_waiting, 0);
}

struct taker {
	int fd;
	char request[16384];
};

/* Takes one request's headers and says that all is well. */
static void *receive(void *ctx)
{
	static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
	struct taker *receiver = ctx;
	int fd = accept4(receiver->fd, NULL, NULL, SOCK_CLOEXEC);
	size_t size = 0;
	ssize_t n = 1;

	while (n > 0 && size < sizeof(receiver->request) - 1 &&
	       !strstr(receiver->request, "\r\n\r\n")) {
		n = read(fd, receiver->request + size, sizeof(receiver->request) - 1 - size);
		size += n > 0 ? (size_t)n : 0;
		receiver->request[size] = '\0';
	}
	if (write(fd, answer, sizeof(answer) - 1) < 0)
		receiver->request[0] = '\0';
	/* the body is of no interest, but is read for the answer not to be lost */
	shutdown(fd, SHUT_WR);
	while (read(fd, &(char[256]){ 0 }, 256) > 0)
		;
	close(fd);
	return NULL;
}

/* A token of 4 KiB: from the configuration's file to the request. */
static void a_long_token_arrives(void **state)
{
	static struct taker receiver;
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t length = sizeof(address);
	struct destination_options destination = { .name = "", .timeout_ms = 60000 };
	const struct exporter_options options = { .destinations = &destination, .destination_count = 1 };
	char token[4097], url[64], file[] = "/tmp/stacktap-exporter-XXXXXX", error[256];
	struct config config;
	pthread_t thread;
	int fd = mkstemp(file);

	(void)state;
	/* what a token may be made of */
	for (size_t i = 0; i < sizeof(token) - 1; i++)
		token[i] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
			   "0123456789-._~+/"[i % 68];
	token[sizeof(token) - 1] = '\0';
	assert_true(dprintf(fd, "[export]\nheaders = authorization=Bearer%%20%s\n", token) > 4096);
	close(fd);
	assert_int_equal(config_load(file, &config, error, sizeof(error)), 0);
	unlink(file);

	receiver.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(receiver.fd, (struct sockaddr *)&address, length), 0);
	assert_int_equal(listen(receiver.fd, 1), 0);
	assert_int_equal(getsockname(receiver.fd, (struct sockaddr *)&address, &length), 0);
	snprintf(url, sizeof(url), "http://127.0.0.1:%u/x", ntohs(address.sin_port));
	destination.http.endpoint = url;
	destination.http.headers = config.headers;
	exporter_free(exporter);
	assert_int_equal(exporter_new(&options, &exporter), 0);
	assert_int_equal(pthread_create(&thread, NULL, receive, &receiver), 0);
	send_one(10, 1);
	assert_int_equal(stats().payloads_sent, 1);
	exporter_free(exporter);
	exporter = NULL;
	pthread_join(thread, NULL);
	close(receiver.fd);
	assert_non_null(strcasestr(receiver.request, "\r\nauthorization: Bearer ABCDEF"));
	assert_non_null(strstr(receiver.request, token));
	config_done(&config);
}

/* What went wrong is told until it goes right again. */
static void an_error_is_over_when_the_receiver_is_back(void **state)
{
	static struct taker receiver;
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t length = sizeof(address);
	struct destination_options destination = { .name = "", .timeout_ms = 60000, .backoff_min_ms = 1,
						   .backoff_max_ms = 1 };
	const struct exporter_options options = { .destinations = &destination, .destination_count = 1 };
	pthread_t thread;
	char url[64];

	(void)state;
	receiver.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(receiver.fd, (struct sockaddr *)&address, length), 0);
	assert_int_equal(getsockname(receiver.fd, (struct sockaddr *)&address, &length), 0);
	snprintf(url, sizeof(url), "http://127.0.0.1:%u/x", ntohs(address.sin_port));
	destination.http.endpoint = url;
	exporter_free(exporter);
	assert_int_equal(exporter_new(&options, &exporter), 0);
	send_one(10, 1);
	assert_true(strlen(stats().last_error) > 0);
	assert_int_equal(listen(receiver.fd, 1), 0);
	assert_int_equal(pthread_create(&thread, NULL, receive, &receiver), 0);
	usleep(5000);
	while (exporter_poll(exporter) >= 0)
		usleep(1000);
	assert_int_equal(stats().payloads_sent, 1);
	assert_string_equal(stats().last_error, "");
	exporter_free(exporter);
	exporter = NULL;
	pthread_join(thread, NULL);
	close(receiver.fd);
}

/* Each of several has a thread, and payloads in its form alone; what waits is dropped at the end. */
static void several_are_asked_by_threads_of_their_own(void **state)
{
	const struct destination_options destinations[] = {
		{ .name = "a", .http.endpoint = endpoint, .timeout_ms = 2000, .backoff_min_ms = 1, .backoff_max_ms = 2 },
		{ .name = "b", .http.endpoint = endpoint, .timeout_ms = 2000, .backoff_min_ms = 1, .backoff_max_ms = 2,
		  .form = 1, .compression = COMPRESSION_GZIP },
		{ .name = "c", .http.endpoint = endpoint, .timeout_ms = 2000, .backoff_min_ms = 1, .backoff_max_ms = 2,
		  .compression = COMPRESSION_ZSTD },
	};
	const struct exporter_options options = {
		.destinations = destinations, .destination_count = ARRAY_SIZE(destinations), .form_count = 2,
	};
	struct exporter_stats now;

	(void)state;
	exporter_free(exporter);
	assert_int_equal(exporter_new(&options, &exporter), 0);
	assert_int_equal(exporter_poll(exporter), -1);
	for (unsigned int i = 0; i < 30; i++) {
		struct payload payload = {
			.data = calloc(1, 1000), .size = 1000, .samples = 1, .form = i % 3 == 2,
		};

		assert_non_null(payload.data);
		exporter_send(exporter, &payload);
		exporter_stats(exporter, &now);
		assert_int_equal(now.sum.payloads_waiting, now.destinations[0].payloads_waiting +
				 now.destinations[1].payloads_waiting + now.destinations[2].payloads_waiting);
	}
	assert_int_equal(now.destinations[0].payloads_waiting, 20);
	assert_int_equal(now.destinations[1].payloads_waiting, 10);
	assert_int_equal(now.destinations[2].payloads_waiting, 20);
	while (exporter_stats(exporter, &now), now.destinations[1].retries < 3)
		usleep(1000);
	exporter_stop(exporter, 0);
	exporter_stats(exporter, &now);
	assert_int_equal(now.sum.payloads_waiting, 0);
	assert_int_equal(now.destinations[0].payloads_dropped, 20);
	assert_int_equal(now.destinations[1].samples_dropped, 10);
	assert_int_equal(now.sum.payloads_dropped, 50);
}

/* It was given that time, and beyond it the thread has hung. */
static void a_receiver_may_take_its_time(void **state)
{
	enum { TIMEOUT_S = 600 };
	char url[64];
	int fd = loopback_listen(url, sizeof(url)), asked;
	const struct destination_options destinations[] = {
		{ .name = "a", .http.endpoint = url, .timeout_ms = TIMEOUT_S * 1000, .backoff_min_ms = 1, .backoff_max_ms = 2 },
		{ .name = "b", .http.endpoint = url, .timeout_ms = TIMEOUT_S * 1000, .backoff_min_ms = 1, .backoff_max_ms = 2,
		  .form = 1 },
	};
	const struct exporter_options options = {
		.destinations = destinations, .destination_count = ARRAY_SIZE(destinations), .form_count = 2,
	};

	(void)state;
	exporter_free(exporter);
	assert_int_equal(exporter_new(&options, &exporter), 0);
	send_one(10, 1);
	asked = accept(fd, NULL, NULL);
	assert_true(asked >= 0);
	assert_null(work_hung(clock_monotonic() + (TIMEOUT_S + 1) * NSEC_PER_SEC, NULL));
	assert_string_equal(work_hung(clock_monotonic() + (TIMEOUT_S + WORK_SECONDS + 1) * NSEC_PER_SEC, NULL), "send");
	close(fd);
	close(asked);
	exporter_stop(exporter, 0);
	assert_null(work_hung(UINT64_MAX, NULL));
}

static void remove_directory(const char *path)
{
	DIR *dir = opendir(path);
	struct dirent *dirent;

	assert_non_null(dir);
	while ((dirent = readdir(dir)))
		if (dirent->d_name[0] != '.')
			assert_int_equal(unlinkat(dirfd(dir), dirent->d_name, 0), 0);
	closedir(dir);
	assert_int_equal(rmdir(path), 0);
}

/* Where receivers fail as well, it does not hide behind their errors. It is over when the store takes a payload again. */
static void an_error_of_the_store_stays_until_it_is_over(void **state)
{
	const struct destination_options destination = { .name = "", .http.endpoint = endpoint, .timeout_ms = 1000,
							 .backoff_min_ms = 1, .backoff_max_ms = 1 };
	char directory[] = "/tmp/test-exporter-XXXXXX";
	const struct exporter_options options = { .destinations = &destination, .destination_count = 1,
						  .store_directory = directory, .store_max_bytes = 4096 };

	(void)state;
	assert_non_null(mkdtemp(directory));
	exporter_free(exporter);
	assert_int_equal(exporter_new(&options, &exporter), 0);
	send_one(10, 1);
	assert_null(strstr(stats().last_error, "store"));
	assert_true(strlen(stats().last_error) > 0);
	/* more than it may have */
	send_one(100000, 1);
	assert_memory_equal(stats().last_error, "The local store: ", 17);
	assert_non_null(strstr(stats().last_error, "; "));
	send_one(10, 1);
	assert_null(strstr(stats().last_error, "store"));
	assert_true(strlen(stats().last_error) > 0);
	exporter_free(exporter);
	exporter = NULL;
	remove_directory(directory);
}

static void bad_options_are_refused(void **state)
{
	const struct destination_options destination = { .name = "", .http.endpoint = endpoint,
							 .http.headers = "no equals" };
	struct exporter_options options = { .destinations = &destination, .destination_count = 1 };
	struct exporter *other;

	(void)state;
	assert_int_equal(exporter_new(&options, &other), -EINVAL);
	options = (struct exporter_options){ .store_directory = "/nowhere/deep",
					     .store_max_bytes = 1000 };
	assert_int_equal(exporter_new(&options, &other), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		T(nothing_waits_at_first), T(what_cannot_be_sent_waits),
		T(the_queue_is_bounded_and_gives_up_the_oldest),
		T(a_request_beyond_the_protocols_limit_is_dropped), T(bad_options_are_refused),
		T(several_are_asked_by_threads_of_their_own), T(a_long_token_arrives), T(an_error_is_over_when_the_receiver_is_back),
		T(an_error_of_the_store_stays_until_it_is_over),
		T(a_receiver_may_take_its_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
