// SPDX-License-Identifier: Apache-2.0
/* The exporter's queue, without a receiver; with one see tests/oracle/exporter_cases.py. */
#include "synthetic.h"

#include <arpa/inet.h>
#include <string.h>
#include <sys/socket.h>

#include "base/pool.h"
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
	struct exporter_options options = { .endpoint = endpoint, .compress = false,
					    .timeout_ms = 2000, .backoff_min_ms = 40,
					    .backoff_max_ms = 100 };

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

static struct exporter_stats stats(void)
{
	struct exporter_stats now;

	exporter_stats(exporter, &now);
	return now;
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

static void bad_options_are_refused(void **state)
{
	struct exporter_options options = { .endpoint = endpoint, .headers = "no equals" };
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
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
