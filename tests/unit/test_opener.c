// SPDX-License-Identifier: Apache-2.0
/* How many questions what is known of a process takes, and what comes with the answers. */
#include "fixture.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>

#include "helper/opener.h"
#include "helper/opener_ask.h"
#include "process/details.h"
#include "process/scan.h"
#include "starve.h"

enum { MANY = 2000 };

static struct mount_namespace_table *spaces;
static struct opener *opener;

static int set_up(void **state)
{
	(void)state;
	return mount_namespace_table_new("", &spaces) ?: opener_new(&opener);
}

static int tear_down(void **state)
{
	(void)state;
	opener_free(opener);
	mount_namespace_table_free(spaces);
	return 0;
}

/* A child that runs @prepare and waits to be killed; returns once it is prepared. */
static pid_t start_child(void (*prepare)(void))
{
	int ready[2];
	char byte = 1;
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		prepare();
		if (write(ready[1], &byte, 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	return pid;
}

static void stop_child(pid_t pid)
{
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static uint64_t calls(void)
{
	struct opener_stats stats;

	opener_stats(opener, &stats);
	return stats.helper.calls;
}

static void ask(pid_t pid, struct mount_namespace **ret_space, struct image_details **ret_details)
{
	opener_image(opener, spaces, (uint32_t)pid, false, ret_space, ret_details);
}

static void do_nothing(void)
{
}

/* What is told of it does not depend on what its root was known by. */
static void expect_self(pid_t pid, struct mount_namespace **ret_space)
{
	struct image_details *details;
	char path[PATH_MAX] = "";

	ask(pid, ret_space, &details);
	assert_non_null(*ret_space);
	assert_non_null(details);
	assert_true((*ret_space)->root >= 0);
	assert_true(readlink("/proc/self/exe", path, sizeof(path) - 1) > 0);
	assert_string_equal(details->executable_path, path);
	assert_string_equal(details->executable_name, "test_opener");
	assert_int_equal(details->user, geteuid());
	assert_int_equal(details->pid_in_namespace, 0);
	assert_null(details->command_line);
	image_details_free(details);
}

static void a_process_is_one_question(void **state)
{
	struct mount_namespace *first, *second;
	pid_t pid = start_child(do_nothing);
	struct image_details *details;

	(void)state;
	expect_self(pid, &first);
	assert_int_equal(calls(), 1);
	expect_self(pid, &second);
	assert_int_equal(calls(), 2);
	assert_ptr_equal(first, second);
	mount_namespace_unref(second);
	/* a root that was closed meanwhile comes again */
	mount_namespace_table_trim(spaces, 0);
	assert_true(first->root < 0);
	expect_self(pid, &second);
	assert_ptr_equal(first, second);
	mount_namespace_unref(second);
	mount_namespace_unref(first);
	stop_child(pid);
	ask(pid, &first, &details);
	assert_null(first);
	assert_null(details);
}

static void go_to_jail(void)
{
	if (chroot(fixture_path("jail")))
		_exit(1);
}

/* In one mount namespace, so one is known by it when the other is asked for. */
static void roots_are_told_apart(void **state)
{
	struct mount_namespace *outside, *jail, *again;
	struct image_details *details;
	pid_t in, out;

	(void)state;
	if (geteuid() != 0) {
		print_message("needs root for chroot\n");
		skip();
	}
	fixture_run("mkdir jail");
	out = start_child(do_nothing);
	in = start_child(go_to_jail);
	ask(out, &outside, &details);
	image_details_free(details);
	ask(in, &jail, &details);
	image_details_free(details);
	ask(out, &again, &details);
	image_details_free(details);
	assert_non_null(outside);
	assert_non_null(jail);
	assert_ptr_not_equal(outside, jail);
	assert_ptr_equal(outside, again);
	mount_namespace_unref(again);
	mount_namespace_unref(jail);
	mount_namespace_unref(outside);
	stop_child(in);
	stop_child(out);
}

static void become_another(void)
{
	if (setresuid(1234, 4321, 1234) || prctl(PR_SET_DUMPABLE, 0))
		_exit(1);
}

static void a_user_is_the_effective_one(void **state)
{
	struct mount_namespace *space;
	struct image_details *details;
	pid_t pid;

	(void)state;
	if (geteuid() != 0) {
		print_message("needs root to be another user\n");
		skip();
	}
	pid = start_child(become_another);
	ask(pid, &space, &details);
	assert_non_null(details);
	assert_int_equal(details->user, 4321);
	image_details_free(details);
	mount_namespace_unref(space);
	stop_child(pid);
}

static void a_process_has_a_number_in_its_own_namespace(void **state)
{
	struct mount_namespace *space;
	struct image_details *details;
	pid_t pid, parent;
	int numbers[2];

	(void)state;
	if (geteuid() != 0) {
		print_message("needs root for a pid namespace\n");
		skip();
	}
	assert_int_equal(pipe(numbers), 0);
	parent = fork();
	if (!parent) {
		if (unshare(CLONE_NEWPID))
			_exit(1);
		pid = fork();
		if (pid && write(numbers[1], &pid, sizeof(pid)) != sizeof(pid))
			_exit(1);
		for (;;)
			pause();
	}
	assert_int_equal(read(numbers[0], &pid, sizeof(pid)), sizeof(pid));
	ask(pid, &space, &details);
	assert_non_null(details);
	assert_int_equal(details->pid_in_namespace, 1);
	image_details_free(details);
	mount_namespace_unref(space);
	kill(pid, SIGKILL);
	stop_child(parent);
	close(numbers[0]);
	close(numbers[1]);
}

/*
 * A root, or what is in memory: which of them does not answer is not known of one question, so the next two
 * processes' are asked for each. What hangs is left alone, and its neighbour is not.
 */
static void what_hangs_is_asked_for_apart(void **state)
{
	struct mount_namespace *space;
	struct image_details *details;
	struct opener_stats stats;
	pid_t pid = start_child(do_nothing), other = start_child(do_nothing);
	uint64_t before;

	(void)state;
	expect_self(pid, &space);
	mount_namespace_unref(space);
	opener_stats(opener, &stats);
	assert_int_equal(kill(stats.helper.pid, SIGSTOP), 0);
	ask(pid, &space, &details);
	assert_null(space);
	assert_null(details);
	opener_stats(opener, &stats);
	assert_int_equal(stats.helper.timeouts, 1);
	assert_int_equal(stats.quarantined, 1);
	before = calls();
	expect_self(other, &space);
	mount_namespace_unref(space);
	assert_int_equal(calls() - before, 2);
	/* its root is another matter */
	ask(pid, &space, &details);
	assert_null(details);
	assert_non_null(space);
	mount_namespace_unref(space);
	stop_child(other);
	stop_child(pid);
}

/* A user who has a program may put a link beside it that leads to a server that does not answer. */
static void what_hangs_beside_a_program_is_its_users_alone(void **state)
{
	struct mount_namespace *host = mount_namespace_table_guess(spaces);
	struct opener_program own = { .dev = makedev(8, 1), .user = 1000 }, others = own, elsewhere = own;
	struct opener_stats stats;
	struct stat st;
	char path[PATH_MAX];
	int fd;

	(void)state;
	fixture_write("beside", "text");
	snprintf(path, sizeof(path), "%s", fixture_path("beside"));
	others.user = 0;
	elsewhere.dev = makedev(8, 2);
	assert_int_equal(opener_open_path(opener, spaces, host, path, &own, &fd, &st), 0);
	close(fd);
	opener_stats(opener, &stats);
	assert_int_equal(kill(stats.helper.pid, SIGSTOP), 0);
	assert_int_equal(opener_open_path(opener, spaces, host, path, &own, &fd, &st), -EHOSTDOWN);
	assert_int_equal(opener_open_path(opener, spaces, host, path, NULL, &fd, &st), 0);
	close(fd);
	assert_int_equal(opener_open_path(opener, spaces, host, path, &others, &fd, &st), 0);
	close(fd);
	assert_int_equal(opener_open_path(opener, spaces, host, path, &elsewhere, &fd, &st), 0);
	close(fd);
	assert_int_equal(opener_open_path(opener, spaces, host, path, &own, &fd, &st), -EHOSTDOWN);
	opener_stats(opener, &stats);
	assert_int_equal(stats.helper.timeouts, 1);
	assert_int_equal(stats.left_alone, 1);
	mount_namespace_unref(host);
}

/* @path below the root that @spaces guesses, as a program's word. */
static int told(struct mount_namespace_table *of, const char *path, struct stat *ret_stat)
{
	const struct opener_program program = { .dev = makedev(8, 1), .user = 1000 };
	struct mount_namespace *space = mount_namespace_table_guess(of);
	int fd = -1, r = opener_open_told(opener, of, space, path, &program, &fd, ret_stat);

	if (!r)
		close(fd);
	mount_namespace_unref(space);
	return r;
}

/* By the name that a program gives it: a relocatable ELF file of local storage, told with whose it is and who may write to it. */
static void what_a_program_tells_is_an_object_file(void **state)
{
	struct mount_namespace_table *other;
	struct stat st, shm, devices;
	char path[PATH_MAX];

	(void)state;
	fixture_write("told.c", "int told(void) { return 1; }\n");
	fixture_run("CCACHE_DISABLE=1 ${CC:-gcc} -c -o told.o told.c && chmod 640 told.o && ln -sf /told.o link.o && "
		    "ln -sf /proc/self/mem mem.o");
	strcpy(path, fixture_path("told.o"));
	assert_int_equal(told(spaces, path, &st), 0);
	assert_int_equal(st.st_mode, S_IFREG | 0640);
	assert_int_equal(st.st_uid, geteuid());
	assert_int_equal(told(spaces, fixture_path("told.c"), &st), -ENOEXEC);
	assert_int_equal(told(spaces, fixture_path("mem.o"), &st), -EREMOTE);
	assert_int_equal(told(spaces, "/proc/self/mem", &st), -EREMOTE);

	/* links stay in another root, whose mounts are not known here */
	assert_int_equal(mount_namespace_table_new(fixture_directory(), &other), 0);
	assert_int_equal(told(other, "/told.o", &st), 0);
	assert_int_equal(told(other, "/link.o", &st), 0);
	assert_int_equal(told(other, path, &st), -ENOENT);
	mount_namespace_table_free(other);
	assert_int_equal(stat("/dev/shm", &shm) ?: stat("/dev", &devices), 0);
	assert_true(shm.st_dev != devices.st_dev);
	assert_int_equal(mount_namespace_table_new("/dev", &other), 0);
	assert_int_equal(told(other, "/shm/told.o", &st), -EXDEV);
	mount_namespace_table_free(other);
}

/* A new file "known", and what it is. */
static struct opener_wanted make_known(struct stat *ret_st)
{
	struct opener_wanted wanted = { .path = fixture_path("known") };

	fixture_write("known", "text");
	assert_int_equal(stat(wanted.path, ret_st), 0);
	wanted.inode = ret_st->st_ino;
	wanted.major = major(ret_st->st_dev);
	wanted.minor = minor(ret_st->st_dev);
	return wanted;
}

/* Its content is known: it is not opened once more, until it changes. */
static void a_known_file_comes_without_a_descriptor(void **state)
{
	struct mount_namespace *host = mount_namespace_table_guess(spaces);
	struct stat st, again;
	struct opener_wanted wanted = make_known(&st);
	int fd;

	(void)state;
	assert_int_equal(opener_open(opener, spaces, host, 0, &wanted, &fd, &st), 0);
	assert_true(fd >= 0);
	close(fd);
	wanted.known = &st;
	assert_int_equal(opener_open(opener, spaces, host, 0, &wanted, &fd, &again), 0);
	assert_int_equal(fd, -1);
	assert_int_equal(again.st_ino, st.st_ino);
	assert_int_equal(again.st_size, st.st_size);
	/* the same inode, and another size */
	fixture_run("printf more >> known");
	assert_int_equal(opener_open(opener, spaces, host, 0, &wanted, &fd, &again), 0);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(again.st_size, st.st_size + 4);
	/* the path is another file's by now, whatever is known of the old one */
	fixture_run("mv known old && printf text > known");
	assert_int_equal(opener_open(opener, spaces, host, 0, &wanted, &fd, &again), -ESTALE);
	mount_namespace_unref(host);
}

/* Nor where its namespace's root was given up, and it is found by that of a process. */
static void a_known_file_comes_by_a_process(void **state)
{
	struct mount_namespace space = { .root = -1 };
	struct opener_stats before, after;
	struct stat st, again;
	struct opener_wanted wanted = make_known(&st);
	int fd;

	(void)state;
	wanted.known = &st;
	opener_stats(opener, &before);
	assert_int_equal(opener_open(opener, spaces, &space, (uint32_t)getpid(), &wanted, &fd, &again), 0);
	assert_int_equal(fd, -1);
	opener_stats(opener, &after);
	assert_int_equal(after.helper.deaths, before.helper.deaths);
}

static void map_many(void)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);

	for (int i = 0; i < MANY; i++) {
		char *at = mmap(NULL, 2 * page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (at == MAP_FAILED || mprotect(at, page, PROT_READ | PROT_EXEC))
			_exit(1);
	}
}

/* More than a packet takes. */
static void large_snapshots_come_whole(void **state)
{
	struct process_snapshot *here, *there;
	pid_t pid = start_child(map_many);

	(void)state;
	assert_int_equal(process_scan((uint32_t)pid, &here), 0);
	assert_true(here->mapping_count >= MANY);
	assert_int_equal(opener_scan(opener, (uint32_t)pid, &there), 0);
	assert_int_equal(there->mapping_count, here->mapping_count);
	for (size_t i = 0; i < here->mapping_count; i++) {
		assert_int_equal(there->mappings[i].start, here->mappings[i].start);
		assert_string_equal(there->mappings[i].path, here->mappings[i].path);
	}
	process_snapshot_free(here);
	process_snapshot_free(there);
	stop_child(pid);
}

static void set_time(struct deadline *deadline, uint64_t ms)
{
	deadline_set(deadline, clock_monotonic() + ms * NSEC_PER_MSEC);
	opener_until(opener, deadline);
}

static void stop_opener(int signal)
{
	struct process_snapshot *snapshot;
	struct opener_stats stats;
	siginfo_t info;

	/* one runs, and has not died of anything lately */
	opener_until(opener, NULL);
	assert_int_equal(opener_scan(opener, (uint32_t)getpid(), &snapshot), 0);
	process_snapshot_free(snapshot);
	opener_stats(opener, &stats);
	assert_int_equal(kill(stats.helper.pid, signal), 0);
	/* by then it waits for no CPU any more */
	assert_int_equal(waitid(P_PID, (id_t)stats.helper.pid, &info, WSTOPPED | WEXITED | WNOWAIT), 0);
}

static uint64_t quarantined(void)
{
	struct opener_stats stats;

	opener_stats(opener, &stats);
	return stats.quarantined;
}

/* With more time it may have answered; the third time in a row it is left alone all the same. */
static void who_hangs_each_time_is_left_alone(void **state)
{
	struct deadline deadline = { 0 };
	struct mount_namespace *space;
	int r, tries = 60;

	(void)state;
	for (int i = 0; i < 3; i++) {
		assert_int_equal(quarantined(), 0);
		stop_opener(SIGSTOP);
		/* on a busy host it may be over before it is asked */
		do {
			set_time(&deadline, 300);
			r = opener_space(opener, spaces, (uint32_t)getpid(), &space);
		} while (r == -ETIME && tries--);
		assert_int_equal(r, i < 2 ? -ETIMEDOUT : -EHOSTDOWN);
	}
	assert_int_equal(quarantined(), 1);
	opener_until(opener, NULL);
}

/* Stops this process soon, for longer than its question may take, and lets it go on before the opener. */
static pid_t fork_pause(pid_t helper)
{
	pid_t tested = getpid(), pid = fork();

	if (pid)
		return pid;
	usleep(200000);
	kill(tested, SIGSTOP);
	usleep(2000000);
	kill(tested, SIGCONT);
	usleep(100000);
	kill(helper, SIGCONT);
	_exit(0);
}

/* As a VM that is migrated: neither ran. */
static void a_pause_of_all_is_nobodys_time(void **state)
{
	struct deadline deadline = { 0 };
	struct mount_namespace *space;
	struct opener_stats before, stats;
	pid_t pid;
	int r, tries = 20;

	(void)state;
	do {
		stop_opener(SIGSTOP);
		opener_stats(opener, &before);
		set_time(&deadline, 1500);
		pid = fork_pause(before.helper.pid);
		r = opener_space(opener, spaces, (uint32_t)getpid(), &space);
		assert_int_equal(waitpid(pid, NULL, 0), pid);
	} while (r == -ETIME && tries--);
	assert_int_equal(r, 0);
	opener_stats(opener, &stats);
	assert_int_equal(stats.helper.timeouts, before.helper.timeouts);
	mount_namespace_unref(space);
	opener_until(opener, NULL);
}

/* What it does not say of a process for want of a CPU says nothing of the next one; and it was waited for in vain. */
static void without_a_cpu_it_has_to_be_asked_again(void **state)
{
	struct process_snapshot *snapshot;
	const pid_t pid = start_child(map_many);
	struct opener_stats stats;
	uint64_t before;
	int r = 0, tries = 20;

	(void)state;
	opener_free(opener);
	starve_confine();
	assert_int_equal(opener_new(&opener), 0);
	assert_int_equal(opener_scan(opener, (uint32_t)getpid(), &snapshot), 0);
	process_snapshot_free(snapshot);
	opener_stats(opener, &stats);
	before = credit_left(&opener->patience, clock_monotonic());
	starve_begin(stats.helper.pid);
	while (!r && tries--) {
		r = opener_scan(opener, (uint32_t)pid, &snapshot);
		if (!r)
			process_snapshot_free(snapshot);
	}
	starve_end();
	assert_int_equal(r, -EBUSY);
	opener_stats(opener, &stats);
	assert_int_equal(stats.helper.starved, 1);
	assert_int_equal(stats.helper.timeouts, 1);
	assert_int_equal(stats.quarantined, 0);
	assert_true(credit_left(&opener->patience, clock_monotonic()) + NSEC_PER_SEC < before);
	stop_child(pid);
	/* nor may the next one have a CPU at once */
	tries = 20;
	do
		r = opener_scan(opener, (uint32_t)pid, &snapshot);
	while (r == -EBUSY && tries--);
	assert_int_equal(r, -ESRCH);
}

/* Nothing is known of it then, so it is none without a program, or with the host's files. */
static void a_process_without_an_answer_is_told_so(void **state)
{
	struct deadline deadline = { 0 };
	struct mount_namespace *space;
	struct image_details *details;
	int r, tries = 60;

	(void)state;
	opener_until(opener, &deadline);
	assert_int_equal(opener_image(opener, spaces, (uint32_t)getpid(), false, &space, &details), -ETIME);
	assert_null(space);
	assert_null(details);
	stop_opener(SIGSTOP);
	do {
		set_time(&deadline, 300);
		r = opener_image(opener, spaces, (uint32_t)getpid(), false, &space, &details);
	} while (r == -ETIME && tries--);
	assert_int_equal(r, -ETIMEDOUT);
	assert_null(space);
	assert_null(details);
	opener_until(opener, NULL);
}

/* Of three places one could not be looked at: it may be there. */
static void a_file_without_an_answer_is_not_gone(void **state)
{
	const struct opener_wanted wanted = { .inode = 1, .path = "/stacktap/nothing" };
	struct deadline deadline = { 0 };
	struct mount_namespace *space;
	int fd;
	struct stat st;

	(void)state;
	assert_int_equal(opener_space(opener, spaces, (uint32_t)getpid(), &space), 0);
	assert_int_equal(opener_open(opener, spaces, space, (uint32_t)getpid(), &wanted, &fd, &st), -ENOENT);
	/* the first is answered for by its root, which is closed: the others are questions */
	mount_namespace_table_trim(spaces, 0);
	assert_true(space->root < 0);
	opener_until(opener, &deadline);
	assert_int_equal(opener_open(opener, spaces, space, (uint32_t)getpid(), &wanted, &fd, &st), -ETIME);
	/* another opener says that it is not in the last place */
	stop_opener(SIGKILL);
	set_time(&deadline, 60000);
	assert_true(opener_is_unanswered(opener_open(opener, spaces, space, (uint32_t)getpid(), &wanted, &fd, &st)));
	opener_until(opener, NULL);
	mount_namespace_unref(space);
}

#define T(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_pause_of_all_is_nobodys_time), T(who_hangs_each_time_is_left_alone), T(a_process_without_an_answer_is_told_so),
		T(a_file_without_an_answer_is_not_gone), T(without_a_cpu_it_has_to_be_asked_again),
		T(a_process_is_one_question), T(roots_are_told_apart), T(a_user_is_the_effective_one),
		T(a_process_has_a_number_in_its_own_namespace), T(what_hangs_is_asked_for_apart),
		T(what_hangs_beside_a_program_is_its_users_alone), T(what_a_program_tells_is_an_object_file),
		T(a_known_file_comes_without_a_descriptor), T(a_known_file_comes_by_a_process), T(large_snapshots_come_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
