// SPDX-License-Identifier: Apache-2.0
#include "unit.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/work.h"
#include "heard.h"
#include "service/busy.h"

#define S(seconds) ((uint64_t)(seconds) * NSEC_PER_SEC)

/* What the log gets while it is told @times in turn. */
static const char *tell(struct busy *busy, const uint64_t *times, size_t count)
{
	listen_to_log();
	for (size_t i = 0; i < count; i++)
		busy_tell(busy, times[i]);
	return heard();
}

#define TELL(busy, ...) \
	tell(busy, (const uint64_t[]){ __VA_ARGS__ }, \
	     sizeof((const uint64_t[]){ __VA_ARGS__ }) / sizeof(uint64_t))

static unsigned int lines(const char *text)
{
	unsigned int count = 0;

	for (; *text; text++)
		count += *text == '\n';
	return count;
}

static void test_what_takes_its_time_is_no_news(void **state _unused_)
{
	struct busy busy = { 0 };

	assert_string_equal(TELL(&busy, 0, S(1), S(BUSY_SECONDS) - 1, 0), "");
}

static void test_it_is_told_once_and_when_it_is_over(void **state _unused_)
{
	struct busy busy = { 0 };
	const char *text = TELL(&busy, S(10), S(BUSY_SECONDS), S(40), S(4000));

	assert_int_equal(lines(text), 1);
	assert_non_null(strstr(text, "blocked for 30 s"));
	/* another program right behind it is over, too */
	text = TELL(&busy, S(1), 0, S(2));
	assert_int_equal(lines(text), 1);
	assert_non_null(strstr(text, "continues"));
}

static void test_the_second_time_is_told_again(void **state _unused_)
{
	struct busy busy = { 0 };

	assert_int_equal(lines(TELL(&busy, S(31), 0, S(32), S(33), 0, S(34))), 5);
}

/* Told once, until it goes on. */
static void test_a_thread_that_hangs_is_not_served(void **state _unused_)
{
	const uint64_t now = clock_monotonic();
	struct busy busy = { 0 };
	struct work work;
	const char *text;
	bool is_well;

	work_enter(&work, "test");
	assert_true(busy_makes_progress(&busy, now + S(2 * WORK_SECONDS)));
	work_begin();
	assert_true(busy_makes_progress(&busy, now + S(WORK_SECONDS - 1)));
	assert_false(busy_makes_progress(&busy, now + S(WORK_SECONDS + 60)));
	assert_true(busy.has_told_hung);
	work_end();
	assert_true(busy_makes_progress(&busy, now + S(2 * WORK_SECONDS)));
	assert_false(busy.has_told_hung);
	/* what it may wait for somebody counts as well */
	work_begin();
	work_wait(S(600));
	listen_to_log();
	is_well = busy_makes_progress(&busy, clock_monotonic() + S(2000));
	text = strstr(heard(), "thread test has made no progress for ");
	assert_non_null(text);
	assert_in_range(strtoul(text + strlen("thread test has made no progress for "), NULL, 10), 2000, 2300);
	assert_false(is_well);
	work_leave();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_takes_its_time_is_no_news),
		cmocka_unit_test(test_it_is_told_once_and_when_it_is_over),
		cmocka_unit_test(test_the_second_time_is_told_again),
		cmocka_unit_test(test_a_thread_that_hangs_is_not_served),
	};

	log_setup("test", LOG_LEVEL_INFO);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
