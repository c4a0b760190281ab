// SPDX-License-Identifier: Apache-2.0
/* Roots that recorded paths are looked up in: a directory's, and a process' with a FUSE server that never answers. */
#include "unit.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/wait.h>

#include "cli/debugfile.c"
#include "cli/module_files.c"
#include "cli/parser_error.c"
#include "cli/sysroot.c"

static char directory[] = "/tmp/test-sysroot-XXXXXX";
static struct sysroot_process looks;

static int set_up(void **state)
{
	char path[64];
	int fd;

	(void)state;
	assert_non_null(mkdtemp(directory));
	snprintf(path, sizeof(path), "%s/file", directory);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "x", 1), 1);
	close(fd);
	snprintf(path, sizeof(path), "%s/fuse", directory);
	assert_int_equal(mkdir(path, 0700), 0);
	return mount_namespace_table_new("", &looks.spaces) ?: opener_new(&looks.opener);
}

static int tear_down(void **state)
{
	char path[64];

	(void)state;
	opener_free(looks.opener);
	mount_namespace_table_free(looks.spaces);
	snprintf(path, sizeof(path), "%s/file", directory);
	unlink(path);
	snprintf(path, sizeof(path), "%s/fuse", directory);
	rmdir(path);
	return rmdir(directory);
}

/* In a child with mounts of its own; it keeps the server's end open and never reads from it. */
static bool mount_fuse(void)
{
	char path[64], options[96];
	const unsigned int user = getuid(), group = getgid();
	int device;

	if (unshare(user ? CLONE_NEWUSER | CLONE_NEWNS : CLONE_NEWNS) < 0 ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return false;
	device = open("/dev/fuse", O_RDWR);
	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=%u,group_id=%u,allow_other", device, user, group);
	snprintf(path, sizeof(path), "%s/fuse", directory);
	return device >= 0 && mount("frozen", path, "fuse", 0, options) == 0;
}

static pid_t start_process(void)
{
	int ready[2];
	char is_mounted = 0;
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		is_mounted = mount_fuse();
		if (write(ready[1], &is_mounted, 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &is_mounted, 1), 1);
	close(ready[0]);
	if (is_mounted)
		return pid;
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return 0;
}

/* What can hang there is asked of the opener, once: this process goes on. */
static void a_server_that_does_not_answer_holds_nobody(void **state)
{
	const struct debugfile_places places = { .process = &looks };
	struct recorded_object wanted = { .build_id = "00112233445566778899", .htlhash = "" };
	struct debugfile_finder *finder;
	struct debugfile file;
	struct sysroot sysroot;
	char path[64], resolved[PATH_MAX];
	struct parser *parser;
	struct stat st;
	pid_t pid = start_process();
	struct opener_stats before, stats;
	int fd;

	(void)state;
	if (!pid)
		skip();
	looks.tgid = (uint32_t)pid;
	assert_int_equal(sysroot_open_process(&looks, &sysroot), 0);
	assert_false(sysroot.space->is_guess);
	snprintf(path, sizeof(path), "%s/file", directory);
	assert_int_equal(sysroot_resolve(&sysroot, path, resolved), 0);
	assert_string_equal(resolved, path);
	fd = sysroot_open_file(&sysroot, resolved, &st);
	assert_true(fd >= 0);
	assert_int_equal(st.st_size, 1);
	close(fd);
	assert_int_equal(sysroot_open_file(&sysroot, "/no/such/file", &st), -ENOENT);
	assert_int_equal(sysroot_open_file(&sysroot, directory, &st), -ENXIO);
	sysroot_close(&sysroot);

	snprintf(path, sizeof(path), "%s/fuse/program", directory);
	wanted.path = path;
	assert_int_equal(parser_new(&parser), 0);
	assert_int_equal(debugfile_finder_new(parser, &places, NULL, &finder), 0);
	assert_int_equal(debugfile_find_code(finder, &wanted, &file), -ENOENT);
	assert_non_null(strstr(file.note, "its file system does not answer"));
	/* it is known by now, and nobody waits for it again */
	opener_stats(looks.opener, &before);
	assert_int_equal(sysroot_open_file(debugfile_finder_sysroot(finder), path, &st), -EHOSTDOWN);
	opener_stats(looks.opener, &stats);
	assert_true(stats.left_alone > before.left_alone);
	assert_int_equal(stats.helper.timeouts, before.helper.timeouts);
	debugfile_finder_free(finder);
	parser_free(parser);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void a_process_that_has_ended_has_the_host_s_root(void **state)
{
	pid_t pid = fork();
	struct sysroot sysroot;

	(void)state;
	assert_true(pid >= 0);
	if (!pid)
		_exit(0);
	waitpid(pid, NULL, 0);
	looks.tgid = (uint32_t)pid;
	assert_int_equal(sysroot_open_process(&looks, &sysroot), 0);
	assert_true(sysroot.space->is_guess);
	sysroot_close(&sysroot);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_server_that_does_not_answer_holds_nobody),
		cmocka_unit_test(a_process_that_has_ended_has_the_host_s_root),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
