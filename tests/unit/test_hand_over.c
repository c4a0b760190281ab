// SPDX-License-Identifier: Apache-2.0
/* A payload in the spool that the poller finds there before it is handed over: one request alone. */
#include "loopback.h"
#include "synthetic.h"

#include <pthread.h>
#include <string.h>
#include <sys/socket.h>

#include "export/destination.h"

enum { SIZE = 200, SAMPLES = 10 };

static struct destination *destination;
static char url[64];

static struct {
	pthread_t thread;
	int fd;
	const char *answer;
	_Atomic unsigned int requests;
} receiver;

/* Answers each request as soon as its headers are there. */
static void *receive(void *ctx)
{
	char request[4096], drain[256];
	size_t have;
	ssize_t n;
	int fd;

	(void)ctx;
	while ((fd = accept4(receiver.fd, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
		have = 0;
		request[0] = '\0';
		while (!strstr(request, "\r\n\r\n") &&
		       (n = read(fd, request + have, sizeof(request) - 1 - have)) > 0) {
			have += (size_t)n;
			request[have] = '\0';
		}
		atomic_fetch_add(&receiver.requests, 1);
		dprintf(fd, "HTTP/1.1 %s\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", receiver.answer);
		shutdown(fd, SHUT_WR);
		while (read(fd, drain, sizeof(drain)) > 0)
			;
		close(fd);
	}
	return NULL;
}

static void start(const char *answer, const char *spool)
{
	const struct destination_options options = {
		.name = "", .http.endpoint = url, .timeout_ms = 60000, .backoff_min_ms = 3600000,
		.backoff_max_ms = 3600000, .spool_directory = spool, .spool_max_bytes = 1 << 20,
	};

	memset(&receiver, 0, sizeof(receiver));
	receiver.answer = answer;
	receiver.fd = loopback_listen(url, sizeof(url));
	assert_int_equal(pthread_create(&receiver.thread, NULL, receive, NULL), 0);
	assert_int_equal(destination_new(&options, &destination), 0);
}

static void stop(void)
{
	destination_free(destination);
	shutdown(receiver.fd, SHUT_RDWR);
	pthread_join(receiver.thread, NULL);
	close(receiver.fd);
	synthetic_check_pools();
}

static bool hand(uint64_t number)
{
	struct payload payload = { .data = calloc(1, SIZE), .size = SIZE, .samples = SAMPLES };
	struct cargo cargo;
	bool is_at_once;

	assert_int_equal(cargo_init(&cargo, &payload, 1), 0);
	is_at_once = destination_hand(destination, WANT_SPOOLED, destination_body(destination, &cargo), number);
	cargo_done(&cargo);
	return is_at_once;
}

/* As thread C does it, with a turn of the destination's own thread in the middle. */
static void keep_poll_hand(int wait)
{
	const struct payload payload = { .data = (uint8_t[SIZE]){ 0 }, .size = SIZE, .samples = SAMPLES };
	uint64_t number = 0;

	assert_int_equal(destination_keep(destination, &payload, &number), WANT_SPOOLED);
	assert_int_equal(destination_poll(destination) < 0, wait < 0);
	assert_false(hand(number));
	assert_int_equal(destination_poll(destination) < 0, wait < 0);
	assert_int_equal(atomic_load(&receiver.requests), 1);
}

static void check(const char *answer, bool is_taken)
{
	char spool[] = "/tmp/stacktap-hand-XXXXXX", command[64];
	struct destination_stats stats;

	assert_non_null(mkdtemp(spool));
	start(answer, spool);
	keep_poll_hand(is_taken ? -1 : 0);
	destination_stats(destination, &stats);
	assert_int_equal(stats.payloads_sent, is_taken);
	assert_int_equal(stats.samples_sent, is_taken ? SAMPLES : 0);
	assert_int_equal(stats.samples_waiting, is_taken ? 0 : SAMPLES);
	stop();
	snprintf(command, sizeof(command), "rm -r %s", spool);
	assert_int_equal(system(command), 0);
}

static void one_that_was_taken_is_not_sent_again(void **state)
{
	(void)state;
	check("200 OK", true);
}

static void one_that_was_not_waits_for_the_pause_to_end(void **state)
{
	(void)state;
	check("503 Busy", false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_that_was_taken_is_not_sent_again),
		cmocka_unit_test(one_that_was_not_waits_for_the_pause_to_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
