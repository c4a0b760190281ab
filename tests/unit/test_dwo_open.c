// SPDX-License-Identifier: Apache-2.0
/* Files that a program, or a parser that was taken over, calls its .dwo files: what of them is opened. */
#include "fixture.h"

#include <fcntl.h>
#include <sys/mman.h>

#include "cli/dwo_open.c"
#include "cli/sysroot.c"
#include "helper/told.c"

static int told(const char *path)
{
	struct stat st;
	int fd = dwo_open_told(path[0] == '/' ? "/" : fixture_directory(), path, &st);

	if (fd >= 0)
		close(fd);
	return fd < 0 ? fd : 0;
}

static int named(const char *path)
{
	struct stat st;
	int fd = dwo_open_named(NULL, path, &st);

	if (fd >= 0)
		close(fd);
	return fd < 0 ? fd : 0;
}

static void object_files_are_opened(void **state)
{
	char path[PATH_MAX];

	(void)state;
	fixture_write("one.c", "int one(void) { return 1; }\n");
	fixture_run("mkdir -p deep/er && ${CC:-gcc} -c -o deep/er/one.o one.c && ln -s deep/er near && ln -s \"$PWD\"/near/one.o far.o && "
		    "ln -s loop loop");
	strcpy(path, fixture_path("deep/er/one.o"));
	assert_int_equal(told(path), 0);
	assert_int_equal(named(path), 0);
	assert_int_equal(told("deep//er/./one.o"), 0);
	assert_int_equal(told("deep/er/../../near/one.o"), 0);
	assert_int_equal(told("far.o"), 0);
	assert_int_equal(told("loop"), -ELOOP);
	assert_int_equal(told("deep/one.o"), -ENOENT);
	assert_int_equal(told("deep/er/one.o/more"), -ENOTDIR);
}

static void nothing_else_is_opened(void **state)
{
	(void)state;
	fixture_run("mkfifo pipe && printf '\\177ELF' >short.o && head -c 100 /dev/zero >noise.o && cp /bin/true program && "
		    "mkdir -p private && ln -s /proc/self/mem private/mem.o");
	for (size_t i = 0; i < 2; i++) {
		int (*open_one)(const char *path) = i ? named : told;

		assert_true(open_one(fixture_path("pipe")) < 0);
		assert_int_equal(open_one(fixture_path("short.o")), -ENOEXEC);
		assert_int_equal(open_one(fixture_path("noise.o")), -ENOEXEC);
		assert_int_equal(open_one(fixture_path("program")), -ENOEXEC);
		assert_int_equal(open_one(fixture_path("deep")), -ENOENT);
		assert_int_equal(open_one("/etc/passwd"), -ENOEXEC);
	}
}

/* The type of what the kernel makes up is told by its mount, before anything of it is opened. */
static void other_file_systems_are_not_entered(void **state)
{
	(void)state;
	assert_int_equal(told("/proc/self/mem"), -EREMOTE);
	assert_int_equal(told("/proc/nothing/here"), -EREMOTE);
	assert_int_equal(told("private/mem.o"), -EREMOTE);
	assert_int_equal(named("/proc/self/status"), -EACCES);
	assert_int_equal(named("/proc/self/mem"), -EACCES);
	assert_false(is_local("nfs4") || is_local("autofs") || is_local("fuse.sshfs") || is_local("proc") || is_local("9p"));
	/* it may have files on one of these */
	assert_false(is_local("overlay"));
	assert_true(is_local("ext4"));
}

/* Each step may cost a look at all mounts. */
static void a_path_that_goes_to_and_fro_ends(void **state)
{
	char path[4 * 200 + 1];

	(void)state;
	for (size_t i = 0; i < sizeof(path) - 1; i++)
		path[i] = "/./."[i % 4];
	path[sizeof(path) - 1] = '\0';
	assert_int_equal(told(path), -ELOOP);
	path[4 * 100] = '\0';
	assert_int_not_equal(told(path), -ELOOP);
}

/* Root may read all; what root may hand to a parser is what everybody may, or root's own. */
static void what_others_keep_to_themselves_is_not_opened(void **state)
{
	char path[PATH_MAX];

	(void)state;
	if (geteuid())
		skip();
	strcpy(path, fixture_path("deep/er/one.o"));
	assert_int_equal(chmod(path, 0600), 0);
	assert_int_equal(told(path), 0);
	assert_int_equal(chown(path, 12345, 12345), 0);
	assert_int_equal(told(path), -EACCES);
	assert_int_equal(named(path), 0);
	assert_int_equal(chmod(path, 0644), 0);
	assert_int_equal(told(path), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(object_files_are_opened),
		cmocka_unit_test(nothing_else_is_opened),
		cmocka_unit_test(other_file_systems_are_not_entered),
		cmocka_unit_test(a_path_that_goes_to_and_fro_ends),
		cmocka_unit_test(what_others_keep_to_themselves_is_not_opened),
	};

	setenv("CCACHE_DISABLE", "1", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
