// SPDX-License-Identifier: Apache-2.0
/* One destination, step by step, against a receiver that answers as each test says. */
#include "loopback.h"
#include "synthetic.h"

#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "base/pool.h"
#include "export/destination.h"

#define ANSWERS_MAX 16
#define UNCONFIRMED (-200)	/* with a body that is no answer of OTLP */
#define REFUSALS 8		/* of the oldest in a row, before a later one is tried */

static struct destination *destination;
static struct body_budget budget;
static uint64_t payloads;
static unsigned int syncs;
static uint64_t spool_bytes = 1 << 20, spool_age_ms;
static unsigned int backoff_ms = 1;

static struct {
	pthread_t thread;
	int fd;
	int answers[ANSWERS_MAX];	/* 0: 200 */
	_Atomic unsigned int requests;
	void (*_Atomic meanwhile)(void);	/* while the next request is under way */
	uint64_t kept;			/* payloads */
	bool is_off;			/* there were more in all places together, or fewer */
	char encodings[ANSWERS_MAX][8];
} receiver;

/* Instead of the C library's, for the disk's part to be seen. */
int fdatasync(int fd)
{
	syncs++;
	return (int)syscall(SYS_fdatasync, fd);
}

/* Headers and body, true: it is all there. */
static bool read_request(int fd, char *request, size_t size)
{
	size_t have = 0, want = 0;
	const char *body = NULL, *length;
	ssize_t n;

	while (!body || (size_t)(request + have - body) < want) {
		n = read(fd, request + have, size - 1 - have);
		if (n <= 0)
			return false;
		have += (size_t)n;
		request[have] = '\0';
		body = strstr(request, "\r\n\r\n");
		if (!body)
			continue;
		body += 4;
		length = strcasestr(request, "\r\ncontent-length:");
		want = length ? strtoul(length + strlen("\r\ncontent-length:"), NULL, 10) : 0;
	}
	return true;
}

static struct destination_stats stats(void)
{
	struct destination_stats now;

	destination_stats(destination, &now);
	return now;
}

static enum destination_want keep(uint64_t *ret_number)
{
	const struct payload payload = { .data = (uint8_t[200]){ 0 }, .size = 200, .samples = 10 };

	receiver.kept++;
	return destination_keep(destination, &payload, ret_number);
}

/* Each payload is in one place. */
static void check_sums(void)
{
	const struct destination_stats now = stats();

	receiver.is_off |= now.payloads_sent + now.payloads_waiting + now.payloads_dropped + now.payloads_unconfirmed != receiver.kept ||
			   now.samples_sent + now.samples_waiting + now.samples_dropped + now.samples_unconfirmed != 10 * receiver.kept;
}

static void *receive(void *ctx)
{
	char request[8192], answer[96], *encoding;
	void (*meanwhile)(void);
	unsigned int i;
	int fd, length, status;

	(void)ctx;
	while ((fd = accept4(receiver.fd, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
		if (read_request(fd, request, sizeof(request))) {
			meanwhile = atomic_exchange(&receiver.meanwhile, NULL);
			if (meanwhile)
				meanwhile();
			i = atomic_load(&receiver.requests);
			encoding = strcasestr(request, "\r\ncontent-encoding: ");
			if (encoding && i < ANSWERS_MAX)
				sscanf(encoding + strlen("\r\ncontent-encoding: "), "%7s", receiver.encodings[i]);
			status = i < ANSWERS_MAX && receiver.answers[i] ? receiver.answers[i] : 200;
			length = snprintf(answer, sizeof(answer),
					  "HTTP/1.1 %d X\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s",
					  abs(status), status == UNCONFIRMED ? 2 : 0, status == UNCONFIRMED ? "ok" : "");
			atomic_store(&receiver.requests, i + 1);
			if (write(fd, answer, (size_t)length) != length)
				abort();
		}
		close(fd);
	}
	return NULL;
}

static void start(const char *spool, enum compression compression, const int *answers, size_t count)
{
	static char url[64];
	const struct destination_options options = {
		.name = "", .http.endpoint = url, .compression = compression, .timeout_ms = 60000,
		.backoff_min_ms = backoff_ms, .backoff_max_ms = backoff_ms, .spool_directory = spool, .spool_max_bytes = spool_bytes,
		.spool_max_age_ms = spool_age_ms,
	};

	memset(&receiver, 0, sizeof(receiver));
	memcpy(receiver.answers, answers, count * sizeof(*answers));
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

static void hand(enum destination_want want, uint64_t number)
{
	struct payload payload = { .data = calloc(1, 200), .size = 200, .samples = 10 };
	struct cargo cargo;
	struct body *body;

	assert_int_equal(cargo_init(&cargo, &payload, ++payloads), 0);
	body = destination_body(destination, &cargo);
	assert_non_null(body);
	assert_true(body_charge(body, &budget, 1 << 20));
	destination_hand(destination, want, body, number);
	cargo_done(&cargo);
}

static void poll_until(unsigned int requests)
{
	while (atomic_load(&receiver.requests) < requests && destination_poll(destination) >= 0)
		usleep(1000);
}

/* The first payload is in the spool and was not taken, so often that a later one may go around it. */
static void oldest_fails(void)
{
	uint64_t number;
	enum destination_want want = keep(&number);

	assert_int_equal(want, WANT_SPOOLED);
	hand(want, number);
	poll_until(REFUSALS);
	assert_int_equal(stats().payloads_waiting, 1);
}

static const char *make_spool(char *directory)
{
	assert_non_null(mkdtemp(directory));
	return directory;
}

static void remove_spool(const char *directory)
{
	char command[96];

	snprintf(command, sizeof(command), "rm -r %s", directory);
	assert_int_equal(system(command), 0);
}

/* That a later one is refused says nothing of the oldest; that one is taken does. */
static void a_refused_payload_is_no_verdict_on_the_oldest(void **state)
{
	char directory[] = "/tmp/stacktap-destination-XXXXXX";
	const int answers[ANSWERS_MAX] = { 503, 503, 503, 503, 503, 503, 503, 503, 400, 503, 200 };
	enum destination_want want;
	uint64_t number;

	(void)state;
	start(make_spool(directory), COMPRESSION_NONE, answers, ANSWERS_MAX);
	oldest_fails();
	want = keep(&number);
	assert_int_equal(want, WANT_AROUND);
	hand(want, number);
	poll_until(REFUSALS + 1);
	assert_int_equal(stats().payloads_dropped, 1);
	poll_until(REFUSALS + 2);
	assert_int_equal(stats().payloads_dropped, 1);
	assert_int_equal(stats().payloads_waiting, 1);
	poll_until(REFUSALS + 3);
	assert_int_equal(stats().payloads_sent, 1);
	assert_int_equal(stats().payloads_waiting, 0);
	stop();
	remove_spool(directory);
}

static void the_oldest_is_dropped_when_a_later_one_is_taken(void **state)
{
	char directory[] = "/tmp/stacktap-destination-XXXXXX";
	const int answers[ANSWERS_MAX] = { 503, 503, 503, 503, 503, 503, 503, 503, 200, 503 };
	uint64_t number;

	(void)state;
	start(make_spool(directory), COMPRESSION_NONE, answers, ANSWERS_MAX);
	oldest_fails();
	assert_int_equal(keep(&number), WANT_AROUND);
	hand(WANT_AROUND, number);
	poll_until(REFUSALS + 2);
	assert_int_equal(stats().payloads_sent, 1);
	assert_int_equal(stats().payloads_dropped, 1);
	assert_int_equal(stats().payloads_waiting, 0);
	stop();
	remove_spool(directory);
}

/* What is left in the spool is on its disk. */
static void what_has_to_wait_is_synced(void **state)
{
	char directory[] = "/tmp/stacktap-destination-XXXXXX";
	const int answers[ANSWERS_MAX] = { 503, 503, 503, 503, 503, 503, 503, 503, 503, 200, 200 };
	uint64_t number;
	unsigned int before;

	(void)state;
	start(make_spool(directory), COMPRESSION_NONE, answers, ANSWERS_MAX);
	oldest_fails();
	/* there is no memory for its body */
	assert_int_equal(keep(&number), WANT_AROUND);
	before = syncs;
	destination_miss(destination, WANT_AROUND, 10);
	assert_int_equal(syncs, before + 1);
	assert_int_equal(stats().payloads_dropped, 0);
	/* the oldest is taken before it comes to the later one */
	assert_int_equal(keep(&number), WANT_AROUND);
	poll_until(REFUSALS + 2);
	assert_int_equal(stats().payloads_sent, 1);
	before = syncs;
	hand(WANT_AROUND, number);
	destination_poll(destination);
	assert_int_equal(syncs, before + 1);
	assert_int_equal(atomic_load(&receiver.requests), REFUSALS + 2);
	assert_int_equal(stats().payloads_waiting, 2);
	poll_until(REFUSALS + 4);
	assert_int_equal(stats().payloads_sent, 3);
	stop();
	remove_spool(directory);
}

/* One that came without zstd, for want of memory, does not show that the receiver takes zstd. */
static void zstd_is_taken_only_once_it_was(void **state)
{
	struct pool *pool = pool_get(POOL_ENCODE);
	const int answers[ANSWERS_MAX] = { 200, 400, 200 };
	const size_t limit = pool->limit;
	uint64_t number = 0;

	(void)state;
	start(NULL, COMPRESSION_ZSTD, answers, ANSWERS_MAX);
	pool->limit = 0;
	assert_int_equal(keep(&number), WANT_MEMORY);
	hand(WANT_MEMORY, number);
	pool->limit = limit;
	poll_until(1);
	assert_int_equal(keep(&number), WANT_MEMORY);
	hand(WANT_MEMORY, number);
	poll_until(3);
	assert_string_equal(receiver.encodings[0], "");
	assert_string_equal(receiver.encodings[1], "zstd");
	assert_string_equal(receiver.encodings[2], "gzip");
	assert_int_equal(stats().payloads_sent, 2);
	assert_int_equal(stats().payloads_dropped, 0);
	stop();
}

/* Nor does one that is not confirmed. */
static void who_does_not_confirm_has_not_shown_that_it_takes_zstd(void **state)
{
	const int answers[ANSWERS_MAX] = { UNCONFIRMED, 400, 200 };
	uint64_t number = 0;

	(void)state;
	start(NULL, COMPRESSION_ZSTD, answers, ANSWERS_MAX);
	for (unsigned int i = 0; i < 2; i++) {
		assert_int_equal(keep(&number), WANT_MEMORY);
		hand(WANT_MEMORY, number);
		poll_until(i ? 3 : 1);
	}
	assert_string_equal(receiver.encodings[0], "zstd");
	assert_string_equal(receiver.encodings[1], "zstd");
	assert_string_equal(receiver.encodings[2], "gzip");
	assert_int_equal(stats().payloads_unconfirmed, 1);
	assert_int_equal(stats().payloads_sent, 1);
	stop();
}

/*
 * What waits in the spool goes to who never confirms anything, one after the other; to who has done so before one after each
 * pause, for its proxy may answer in its place for a while.
 */
static void a_receiver_that_no_longer_confirms_does_not_empty_the_spool(void **state)
{
	enum { WAITING = 4 };
	static const int answers[2][ANSWERS_MAX] = {
		{ UNCONFIRMED, UNCONFIRMED, UNCONFIRMED, UNCONFIRMED, UNCONFIRMED },
		{ 200, UNCONFIRMED, UNCONFIRMED, UNCONFIRMED, UNCONFIRMED },
	};

	(void)state;
	backoff_ms = 60000;
	for (unsigned int has_confirmed = 0; has_confirmed < 2; has_confirmed++) {
		char directory[] = "/tmp/stacktap-destination-XXXXXX";
		enum destination_want want;
		uint64_t number;
		int wait;

		start(make_spool(directory), COMPRESSION_NONE, answers[has_confirmed], ANSWERS_MAX);
		want = keep(&number);
		hand(want, number);
		for (unsigned int i = 0; i < WAITING; i++)
			assert_int_equal(keep(&number), WANT_NOTHING);
		assert_int_equal(destination_poll(destination), 0);
		assert_int_equal(stats().payloads_sent, has_confirmed);
		assert_int_equal(stats().payloads_unconfirmed, !has_confirmed);
		wait = destination_poll(destination);
		if (has_confirmed)
			assert_in_range(wait, backoff_ms / 3, backoff_ms);
		else
			assert_int_equal(wait, 0);
		while (!wait)
			wait = destination_poll(destination);
		assert_int_equal(stats().payloads_unconfirmed, has_confirmed ? 1 : 1 + WAITING);
		assert_int_equal(stats().payloads_waiting, has_confirmed ? WAITING - 1 : 0);
		check_sums();
		assert_false(receiver.is_off);
		stop();
		remove_spool(directory);
	}
	backoff_ms = 1;
}

/* Between a look at the oldest and its drop a thread may have sent it. */
static void only_the_oldest_that_was_seen_is_dropped(void **state)
{
	const int answers[ANSWERS_MAX] = { 503, 200 };
	uint64_t number = 0, oldest;

	(void)state;
	start(NULL, COMPRESSION_NONE, answers, ANSWERS_MAX);
	for (unsigned int i = 0; i < 2; i++) {
		assert_int_equal(keep(&number), WANT_MEMORY);
		hand(WANT_MEMORY, number);
		poll_until(1);
	}
	oldest = destination_oldest(destination);
	poll_until(2);
	assert_int_equal(stats().payloads_sent, 1);
	destination_drop_oldest(destination, oldest);
	assert_int_equal(stats().payloads_dropped, 0);
	assert_int_equal(stats().payloads_waiting, 1);
	destination_drop_oldest(destination, destination_oldest(destination));
	assert_int_equal(stats().payloads_dropped, 1);
	assert_int_equal(stats().payloads_waiting, 0);
	stop();
}

static char spool_path[] = "/tmp/stacktap-destination-XXXXXX";

static void others_come(void)
{
	uint64_t number;

	for (unsigned int i = 0; i < 9; i++)
		keep(&number);
	check_sums();
}

/* As many as were there. */
static void file_goes_and_another_comes(void)
{
	char command[96];
	uint64_t number;

	snprintf(command, sizeof(command), "rm %s/*", spool_path);
	receiver.is_off |= system(command);
	keep(&number);
	check_sums();
}

static void directory_goes_and_others_come(void)
{
	remove_spool(spool_path);
	others_come();
}

/*
 * What comes while a payload is sent may take its room in the spool, and somebody may remove its file: neither is a
 * loss if it is taken, and nothing else is taken for it.
 */
static void what_is_sent_is_not_lost_as_well(void **state)
{
	static const struct {
		int answers[ANSWERS_MAX];
		unsigned int before;	/* requests before the one meanwhile */
		uint64_t sent, dropped;	/* the latter where its file went */
	} rows[] = {
		{ { 200 }, 0, 1, 0 },		/* the newest */
		{ { 503, 503 }, 0, 0, 1 },
		{ { 400, 503 }, 0, 0, 1 },
		{ { 503, 200, 503 }, 1, 1, 0 },	/* from the spool */
		{ { 503, 503, 503 }, 1, 0, 1 },
		{ { 503, 400, 503 }, 1, 0, 1 },
		{ { 503, 503, 503, 503, 503, 503, 503, 503, 200, 503 }, REFUSALS, 1, 0 },	/* around the oldest */
	};
	static void (*const meanwhile[])(void) = {
		others_come, file_goes_and_another_comes, directory_goes_and_others_come,
	};
	char *name = spool_path + sizeof(spool_path) - 7;

	(void)state;
	spool_bytes = 1000;
	for (size_t i = 0; i < ARRAY_SIZE(rows) * ARRAY_SIZE(meanwhile); i++) {
		const size_t row = i / ARRAY_SIZE(meanwhile), what = i % ARRAY_SIZE(meanwhile);
		enum destination_want want;
		uint64_t number;

		memcpy(name, "XXXXXX", 6);
		start(make_spool(spool_path), COMPRESSION_NONE, rows[row].answers, ANSWERS_MAX);
		for (unsigned int request = 0; request <= rows[row].before; request++) {
			if (request == rows[row].before)
				receiver.meanwhile = meanwhile[what];
			if (!request || request == REFUSALS) {
				want = keep(&number);
				hand(want, number);
			}
			poll_until(request + 1);
		}
		check_sums();
		assert_false(receiver.is_off);
		assert_int_equal(stats().payloads_sent, rows[row].sent);
		if (meanwhile[what] == file_goes_and_another_comes) {
			assert_int_equal(stats().payloads_dropped, rows[row].dropped);
			/* that the oldest is gone, too, is seen when it is read */
			assert_int_equal(stats().payloads_waiting, rows[row].before == REFUSALS ? 2 : 1);
		}
		stop();
		remove_spool(spool_path);
	}
	spool_bytes = 1 << 20;
}

/* What waits for longer than it may goes as soon as something else comes, and is counted as that. */
static void what_waits_too_long_is_dropped(void **state)
{
	char directory[] = "/tmp/stacktap-destination-XXXXXX";
	const int answers[ANSWERS_MAX] = { 503 };
	enum destination_want want;
	uint64_t number;

	(void)state;
	spool_age_ms = 20;
	start(make_spool(directory), COMPRESSION_NONE, answers, ANSWERS_MAX);
	spool_age_ms = 0;
	want = keep(&number);
	hand(want, number);
	poll_until(1);
	assert_int_equal(stats().payloads_waiting, 1);
	assert_int_equal(stats().spool.old_messages, 0);
	usleep(200000);
	want = keep(&number);
	hand(want, number);
	assert_int_equal(stats().spool.old_messages, 1);
	assert_int_equal(stats().spool.old_samples, 10);
	assert_int_equal(stats().payloads_dropped, 1);
	stop();
	remove_spool(directory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_refused_payload_is_no_verdict_on_the_oldest),
		cmocka_unit_test(the_oldest_is_dropped_when_a_later_one_is_taken),
		cmocka_unit_test(what_has_to_wait_is_synced),
		cmocka_unit_test(zstd_is_taken_only_once_it_was),
		cmocka_unit_test(who_does_not_confirm_has_not_shown_that_it_takes_zstd),
		cmocka_unit_test(a_receiver_that_no_longer_confirms_does_not_empty_the_spool),
		cmocka_unit_test(only_the_oldest_that_was_seen_is_dropped),
		cmocka_unit_test(what_waits_too_long_is_dropped),
		cmocka_unit_test(what_is_sent_is_not_lost_as_well),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
