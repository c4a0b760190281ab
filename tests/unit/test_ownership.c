// SPDX-License-Identifier: Apache-2.0
/* Directories change their owner whole, or not at all where anything in them is not the daemon's. */
#include "fixture.h"

#include <sys/stat.h>

#include "service/ownership.h"

enum { USER = 65533, GROUP = 65532 };

static const struct ownership ownership = { .from = 0, .to = USER, .group = GROUP };
static char error[512];

static int give(const char *name, bool is_own)
{
	error[0] = '\0';
	return ownership_give(&ownership, fixture_path(name), 0750, is_own, error, sizeof(error));
}

static bool is_given(const char *name)
{
	struct stat st;

	assert_int_equal(lstat(fixture_path(name), &st), 0);
	return st.st_uid == USER && st.st_gid == GROUP;
}

static int setup(void **state)
{
	(void)state;
	fixture_run("rm -rf store other way mine; mkdir -m 750 -p store/spool; cd store; : > profiles-1.otlp; : > spool/journal-2.bin");
	return 0;
}

static void what_is_the_daemons_is_given(void **state)
{
	static const char *const names[] = { "store", "store/spool", "store/profiles-1.otlp", "store/spool/journal-2.bin" };

	(void)state;
	if (geteuid())
		skip();
	assert_int_equal(give("store", false), 0);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		assert_true(is_given(names[i]));
	/* what came there since is the user's own affair */
	fixture_run(": > store/notes");
	assert_int_equal(give("store", false), 0);
	assert_false(is_given("store/notes"));
}

static void what_is_not_there_is_made(void **state)
{
	(void)state;
	if (geteuid())
		skip();
	assert_int_equal(give("other", false), 0);
	assert_true(is_given("other"));
	/* nor is its parent */
	assert_int_equal(give("none/other", false), 0);
}

static void a_look_changes_nothing(void **state)
{
	struct ownership look = ownership;
	struct stat st;

	(void)state;
	if (geteuid())
		skip();
	look.only_looks = true;
	assert_int_equal(ownership_give(&look, fixture_path("store"), 0750, false, error, sizeof(error)), 0);
	assert_false(is_given("store"));
	assert_int_equal(ownership_give(&look, fixture_path("other"), 0750, false, error, sizeof(error)), 0);
	assert_int_equal(lstat(fixture_path("other"), &st), -1);
	look.lacks_right = true;
	assert_int_equal(ownership_give(&look, fixture_path("store"), 0750, false, error, sizeof(error)), -EPERM);
	assert_non_null(strstr(error, "CAP_CHOWN is missing"));
	look.lacks_right = false;
	fixture_run(": > store/notes");
	assert_true(ownership_give(&look, fixture_path("store"), 0750, false, error, sizeof(error)) < 0);
}

static void refused(const char *make, bool is_own, const char *why)
{
	setup(NULL);
	fixture_run("%s", make);
	assert_true(give("store", is_own) < 0);
	assert_non_null(strstr(error, why));
	assert_false(is_given("store"));
	assert_false(is_given("store/profiles-1.otlp"));
	assert_false(is_given("store/spool"));
}

static void what_may_be_anothers_is_left(void **state)
{
	(void)state;
	if (geteuid())
		skip();
	refused(": > store/notes", false, "notes: is not a file of stacktapd's");
	refused(": > store/spool/notes", false, "notes: is not a file of stacktapd's");
	refused(": > passwd; ln passwd store/profiles-3.otlp", true, "profiles-3.otlp: is not a file of stacktapd's");
	refused("ln -s /etc/passwd store/profiles-3.otlp", true, "profiles-3.otlp: is not a file of stacktapd's");
	refused("mkfifo store/profiles-3.otlp", true, "profiles-3.otlp: is not a file of stacktapd's");
	refused(": > store/profiles-3.otlp; chown 1234 store/profiles-3.otlp", true, "profiles-3.otlp: is not");
	refused("chmod g+w store", true, "the directory: is writable by its group");
	refused("chown 1234 store", true, "the directory: belongs to another user");
	/* by its place all of it is the daemon's, whatever it is called */
	setup(NULL);
	fixture_run(": > store/notes");
	assert_int_equal(give("store", true), 0);
	assert_true(is_given("store/notes"));
}

/* Root does not follow who could have it change what is not the user's. */
static void the_way_is_nobody_elses(void **state)
{
	(void)state;
	if (geteuid())
		skip();
	/* the user's link, or its directory, be it behind a link of root's */
	fixture_run("ln -s store way; chown -h %u way", USER);
	assert_int_equal(give("way", true), 0);
	fixture_run("mkdir -m 700 mine; mv store mine/store; chown %u mine; ln -s mine/store store", USER);
	assert_int_equal(give("mine/store", true), 0);
	assert_int_equal(give("mine/none", true), 0);
	assert_int_equal(give("store", true), 0);
	fixture_run("ln -sfn mine way");
	assert_int_equal(give("way/store", true), 0);
	assert_false(is_given("mine/store"));
	assert_false(is_given("mine/store/profiles-1.otlp"));
	assert_int_equal(access(fixture_path("mine/none"), F_OK), -1);
	/* a stranger's */
	fixture_run("chown 1234 mine");
	assert_int_equal(give("store", true), -EPERM);
	assert_non_null(strstr(error, "mine: belongs to another user"));
	fixture_run("chown 0 mine; chmod 777 mine");
	assert_int_equal(give("store", true), -EPERM);
	assert_non_null(strstr(error, "mine: is writable by"));
	assert_int_equal(give("way/store", true), -EPERM);
	fixture_run("ln -sfn store way; chown -h 1234 way");
	assert_int_equal(give("way", true), -EPERM);
	assert_non_null(strstr(error, "way: belongs to another user"));
	assert_false(is_given("mine/store"));
	fixture_run("ln -sfn other way; ln -sfn way other");
	assert_int_equal(give("way", true), -ELOOP);
	/* root's own are as good as none */
	fixture_run("rm other; chmod 1777 mine; ln -sfn ./mine way; ln -sfn mine/../way/store store");
	assert_int_equal(give("store", true), 0);
	assert_true(is_given("mine/store"));
	assert_true(is_given("mine/store/profiles-1.otlp"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(what_is_the_daemons_is_given, setup),
		cmocka_unit_test_setup(what_is_not_there_is_made, setup),
		cmocka_unit_test_setup(a_look_changes_nothing, setup),
		cmocka_unit_test_setup(what_may_be_anothers_is_left, setup),
		cmocka_unit_test_setup(the_way_is_nobody_elses, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
