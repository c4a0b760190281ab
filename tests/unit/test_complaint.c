// SPDX-License-Identifier: Apache-2.0
/* What the log says of receivers, and how often. */
#include "unit.h"

#include <fcntl.h>
#include <string.h>

#include "base/log.h"
#include "export/complaint.h"

static struct complaints complaints;
static char said[4096];

static const struct http_answer busy = { .result = HTTP_RETRY, .status = 503, .text = "HTTP 503: later" };
static const struct http_answer down = { .result = HTTP_RETRY, .error = 7, .text = "connect: after 3 ms" };
static const struct http_answer no_token = { .result = HTTP_REFUSED, .status = 401, .text = "HTTP 401" };

/* What goes to standard error meanwhile, in @said. */
static void listen_to(void (*what)(const struct http_answer *answer), const struct http_answer *answer)
{
	char path[] = "/tmp/stacktap-test-XXXXXX";
	int file = mkstemp(path), real = dup(STDERR_FILENO);
	ssize_t size;

	assert_true(file >= 0 && real >= 0);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(dup2(file, STDERR_FILENO), STDERR_FILENO);
	what(answer);
	assert_int_equal(dup2(real, STDERR_FILENO), STDERR_FILENO);
	size = pread(file, said, sizeof(said) - 1, 0);
	assert_true(size >= 0);
	said[size] = '\0';
	close(file);
	close(real);
}

static void fail_so(const struct http_answer *answer)
{
	complain(&complaints, "did not accept a payload, which is sent again", answer);
}

static void recover(const struct http_answer *answer _unused_)
{
	complaints_end(&complaints);
}

#define SAYS(what, answer, text) \
	do { listen_to(what, answer); assert_string_equal(said, text); } while (0)

static void a_minute_goes_by(void)
{
	for (unsigned int i = 0; i < COMPLAINTS; i++)
		if (complaints.of[i].time)
			complaints.of[i].time -= COMPLAIN_NS;
}

static int begin(void **state _unused_)
{
	complaints = (struct complaints){ .name = "far" };
	return 0;
}

static void the_first_of_a_kind_is_told_at_once(void **state _unused_)
{
	struct http_answer other = down;

	SAYS(fail_so, &busy, "test: the receiver far did not accept a payload, which is sent again: HTTP 503: later\n");
	SAYS(fail_so, &busy, "");
	SAYS(fail_so, &no_token, "test: the receiver far did not accept a payload, which is sent again: HTTP 401\n");
	SAYS(fail_so, &down, "test: the receiver far did not accept a payload, which is sent again: connect: after 3 ms\n");
	/* of a connection's failure the text has times in it */
	strcpy(other.text, "connect: after 5 ms");
	SAYS(fail_so, &other, "");
	other.error = 28;
	SAYS(fail_so, &other, "test: the receiver far did not accept a payload, which is sent again: connect: after 5 ms\n");
}

static void others_are_counted_by_the_minute(void **state _unused_)
{
	SAYS(fail_so, &busy, "test: the receiver far did not accept a payload, which is sent again: HTTP 503: later\n");
	SAYS(fail_so, &busy, "");
	SAYS(fail_so, &busy, "");
	a_minute_goes_by();
	SAYS(fail_so, &busy, "test: the receiver far did not accept a payload, which is sent again: HTTP 503: later (2 times more)\n");
	SAYS(fail_so, &busy, "");
	a_minute_goes_by();
	SAYS(fail_so, &busy, "test: the receiver far did not accept a payload, which is sent again: HTTP 503: later (1 times more)\n");
	a_minute_goes_by();
	SAYS(fail_so, &busy, "test: the receiver far did not accept a payload, which is sent again: HTTP 503: later\n");
}

static void an_end_is_told_with_all_that_failed(void **state _unused_)
{
	SAYS(recover, NULL, "");
	SAYS(fail_so, &busy, "test: the receiver far did not accept a payload, which is sent again: HTTP 503: later\n");
	SAYS(recover, NULL, "test: the receiver far accepts requests again; 1 failed\n");
	SAYS(recover, NULL, "");
	for (unsigned int i = 0; i < 5; i++) {
		listen_to(fail_so, i % 2 ? &busy : &down);
		a_minute_goes_by();
	}
	SAYS(recover, NULL, "test: the receiver far accepts requests again; 5 failed\n");
	complaints.name = "";
	SAYS(fail_so, &no_token, "test: the receiver did not accept a payload, which is sent again: HTTP 401\n");
	SAYS(recover, NULL, "test: the receiver accepts requests again; 1 failed\n");
}

static void more_kinds_than_are_told_apart(void **state _unused_)
{
	struct http_answer answer = busy;

	/* the oldest kind is forgotten, and told at once again */
	for (answer.status = 500; answer.status < 500 + COMPLAINTS + 1; answer.status++) {
		listen_to(fail_so, &answer);
		assert_non_null(strstr(said, "HTTP 503"));
	}
	answer.status = 500;
	listen_to(fail_so, &answer);
	assert_non_null(strstr(said, "HTTP 503"));
	answer.status = 500 + COMPLAINTS;
	SAYS(fail_so, &answer, "");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(the_first_of_a_kind_is_told_at_once, begin),
		cmocka_unit_test_setup(others_are_counted_by_the_minute, begin),
		cmocka_unit_test_setup(an_end_is_told_with_all_that_failed, begin),
		cmocka_unit_test_setup(more_kinds_than_are_told_apart, begin),
	};

	log_setup("test", LOG_LEVEL_INFO);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
