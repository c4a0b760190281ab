// SPDX-License-Identifier: Apache-2.0
/* When a host is not to sample, and when its configuration has changed. */
#include "fixture.h"

#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "service/pause.h"
#include "service/watch.h"

static void a_duty_cycle_is_exact_and_even(void **state _unused_)
{
	for (uint64_t percent = 1; percent <= 100; percent++) {
		uint64_t sampled = 0, last = 0, widest = 0;

		for (uint64_t minute = 27000007; minute < 27000007 + 100; minute++)
			sampled += pause_samples_minute(minute, percent, 12345);
		assert_int_equal(sampled, percent);
		for (uint64_t minute = 1; minute < 1000; minute++) {
			if (!pause_samples_minute(minute, percent, 0))
				continue;
			widest = max_of(widest, minute - last);
			last = minute;
		}
		assert_in_range(widest, 100 / percent, (100 + percent - 1) / percent);
	}
}

/* In each minute as many hosts of a fleet sample as the duty cycle says. */
static void hosts_take_turns(void **state _unused_)
{
	for (uint64_t minute = 0; minute < 200; minute++) {
		uint64_t sampling = 0;

		for (uint64_t host = 0; host < 1000; host++)
			sampling += pause_samples_minute(minute, 7, host);
		assert_int_equal(sampling, 70);
	}
}

static void the_kill_switch_comes_first(void **state _unused_)
{
	const char *path = fixture_path("off");
	struct pause pause = { .host = 0 }, other;

	assert_int_equal(pause_wanted(&pause, NULL, 100, 0), PAUSE_NONE);
	assert_int_equal(pause_wanted(&pause, path, 100, 0), PAUSE_NONE);
	/* the last of 100 minutes */
	assert_int_equal(pause_wanted(&pause, path, 1, 98 * 60 + 59), PAUSE_DUTY_CYCLE);
	assert_int_equal(pause_wanted(&pause, path, 1, 99 * 60), PAUSE_NONE);
	fixture_write("off", "");
	assert_int_equal(pause_wanted(&pause, path, 1, 99 * 60), PAUSE_KILL_SWITCH);
	assert_int_equal(pause_wanted(&pause, path, 100, 0), PAUSE_KILL_SWITCH);
	/* whatever it is */
	fixture_run("ln -sf /nowhere off");
	assert_int_equal(pause_wanted(&pause, path, 100, 0), PAUSE_KILL_SWITCH);
	fixture_run("rm off");
	assert_int_equal(pause_wanted(&pause, path, 100, 0), PAUSE_NONE);

	/* in another run hashes of tables are others */
	hash_set_key(1, 2);
	pause_init(&pause);
	hash_set_key(3, 4);
	pause_init(&other);
	assert_int_equal(pause.host, other.host);
}

/* Where nobody can say whether it is there it may be. */
static void a_kill_switch_may_be_unknown(void **state _unused_)
{
	struct pause pause = { .host = 0 };
	char path[512];

	fixture_run("ln -sf loop loop");
	snprintf(path, sizeof(path), "%s/off", fixture_path("loop"));
	assert_int_equal(pause_wanted(&pause, path, 100, 0), PAUSE_UNKNOWN);
	assert_int_equal(pause.stats.error, ELOOP);
	assert_int_equal(pause_wanted(&pause, path, 1, 98 * 60 + 59), PAUSE_UNKNOWN);
	assert_string_equal(pause_text(PAUSE_UNKNOWN), "kill switch cannot be checked");
	pause_set(&pause, PAUSE_UNKNOWN, 1);
	assert_int_equal(pause_stats(&pause, 2).error, ELOOP);

	/* there is no directory, or a file in its place */
	snprintf(path, sizeof(path), "%s/off", fixture_path("nowhere"));
	assert_int_equal(pause_wanted(&pause, path, 100, 0), PAUSE_NONE);
	assert_int_equal(pause.stats.error, 0);
	fixture_write("file", "");
	snprintf(path, sizeof(path), "%s/off", fixture_path("file"));
	assert_int_equal(pause_wanted(&pause, path, 100, 0), PAUSE_NONE);
	assert_int_equal(pause_wanted(&pause, NULL, 100, 0), PAUSE_NONE);
}

static void pauses_are_counted(void **state _unused_)
{
	struct pause pause = { .host = 0 };

	assert_null(pause_text(pause.reason));
	pause_set(&pause, PAUSE_DUTY_CYCLE, 10);
	assert_int_equal(pause_stats(&pause, 15).paused_ns, 5);
	/* one pause, for another reason now */
	pause_set(&pause, PAUSE_KILL_SWITCH, 20);
	assert_string_equal(pause_text(pause.reason), "kill switch");
	pause_set(&pause, PAUSE_NONE, 40);
	assert_int_equal(pause_stats(&pause, 100).paused_ns, 30);
	assert_int_equal(pause_stats(&pause, 100).pauses, 1);
	pause_set(&pause, PAUSE_DUTY_CYCLE, 100);
	pause_set(&pause, PAUSE_NONE, 101);
	assert_int_equal(pause_stats(&pause, 200).paused_ns, 31);
	assert_int_equal(pause_stats(&pause, 200).pauses, 2);
}

static void a_change_is_seen_once_it_has_settled(void **state _unused_)
{
	const char *path = fixture_path("conf");
	struct watch watch = { 0 };

	fixture_write("conf", "a");
	watch_note(&watch, path);
	assert_false(watch_look(&watch, path));
	/* as long as it is written to it has not */
	for (int i = 0; i < 3; i++) {
		fixture_run("printf %d >>conf", i);
		assert_false(watch_look(&watch, path));
	}
	assert_true(watch_look(&watch, path));
	assert_false(watch_look(&watch, path));

	/* another file in its place, of the same size and time */
	fixture_run("cp -p conf other && mv other conf");
	assert_false(watch_look(&watch, path));
	assert_true(watch_look(&watch, path));
	assert_false(watch_look(&watch, path));

	/* it is gone for a moment, which is no change */
	fixture_run("mv conf away");
	assert_false(watch_look(&watch, path));
	assert_false(watch_look(&watch, path));
	fixture_run("echo b >conf");
	assert_false(watch_look(&watch, path));
	assert_true(watch_look(&watch, path));

	/* one that has been read already */
	fixture_run("echo c >>conf");
	watch_note(&watch, path);
	assert_false(watch_look(&watch, path));
	assert_false(watch_look(&watch, path));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_duty_cycle_is_exact_and_even),
		cmocka_unit_test(hosts_take_turns),
		cmocka_unit_test(the_kill_switch_comes_first),
		cmocka_unit_test(a_kill_switch_may_be_unknown),
		cmocka_unit_test(pauses_are_counted),
		cmocka_unit_test(a_change_is_seen_once_it_has_settled),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
