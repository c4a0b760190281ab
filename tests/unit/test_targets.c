// SPDX-License-Identifier: Apache-2.0
#include "unit.h"

#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

/* The command line is in no library. */
#include "cli/targets.c"

static pid_t child_of(void (*run)(int ready))
{
	int ready[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid)
		run(ready[1]);
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	return pid;
}

static void wait_for_ever(int ready)
{
	if (write(ready, "", 1) == 1)
		for (;;)
			pause();
	_exit(1);
}

static void *second_thread(void *ctx)
{
	wait_for_ever(*(int *)ctx);
	return NULL;
}

static void without_first_thread(int ready)
{
	static int fd;
	pthread_t thread;

	fd = ready;
	if (pthread_create(&thread, NULL, second_thread, &fd) == 0)
		pthread_exit(NULL);
	_exit(1);
}

/* Ended, and waited for by nobody yet. */
static void end(pid_t pid)
{
	siginfo_t info;

	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
}

static struct targets targets_of(uint32_t *tgids, size_t tgid_count, uint32_t *tids,
				 size_t tid_count)
{
	const struct control_filter filter = { .tgids = tgids, .tgid_count = tgid_count,
					       .tids = tids, .tid_count = tid_count };
	struct targets targets;

	assert_int_equal(targets_init(&targets, &filter), 0);
	return targets;
}

static void nobody_is_named(void **state _unused_)
{
	struct targets targets = targets_of(NULL, 0, NULL, 0);

	assert_false(targets_are_gone(&targets));
	targets_done(&targets);
}

static void the_last_one_counts(void **state _unused_)
{
	uint32_t pids[] = { (uint32_t)child_of(wait_for_ever), (uint32_t)child_of(wait_for_ever) };
	struct targets targets = targets_of(pids, 2, NULL, 0);

	assert_false(targets_are_gone(&targets));
	end((pid_t)pids[0]);
	assert_false(targets_are_gone(&targets));
	assert_int_equal(waitpid((pid_t)pids[0], NULL, 0), pids[0]);
	assert_false(targets_are_gone(&targets));
	end((pid_t)pids[1]);
	assert_true(targets_are_gone(&targets));
	assert_int_equal(waitpid((pid_t)pids[1], NULL, 0), pids[1]);
	assert_true(targets_are_gone(&targets));
	targets_done(&targets);
}

static void a_process_lives_without_its_first_thread(void **state _unused_)
{
	uint32_t pid = (uint32_t)child_of(without_first_thread);
	struct targets processes = targets_of(&pid, 1, NULL, 0);
	struct targets threads = targets_of(NULL, 0, &pid, 1);
	struct task task;

	do
		assert_true(read_task(pid, &task));
	while (task.state != 'Z');
	assert_false(targets_are_gone(&processes));
	assert_true(targets_are_gone(&threads));
	end((pid_t)pid);
	assert_true(targets_are_gone(&processes));
	assert_int_equal(waitpid((pid_t)pid, NULL, 0), pid);
	targets_done(&processes);
	targets_done(&threads);
}

static void both_kinds_are_demanded(void **state _unused_)
{
	uint32_t pid = (uint32_t)child_of(wait_for_ever), self = (uint32_t)getpid();
	struct targets targets = targets_of(&self, 1, &pid, 1);

	assert_false(targets_are_gone(&targets));
	end((pid_t)pid);
	assert_true(targets_are_gone(&targets));
	assert_int_equal(waitpid((pid_t)pid, NULL, 0), pid);
	targets_done(&targets);
}

static void another_with_its_id_is_none(void **state _unused_)
{
	uint32_t self = (uint32_t)getpid();
	struct targets targets = targets_of(&self, 1, NULL, 0);

	assert_false(targets_are_gone(&targets));
	targets.processes[0].start_time++;
	assert_true(targets_are_gone(&targets));
	targets_done(&targets);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nobody_is_named),
		cmocka_unit_test(the_last_one_counts),
		cmocka_unit_test(a_process_lives_without_its_first_thread),
		cmocka_unit_test(both_kinds_are_demanded),
		cmocka_unit_test(another_with_its_id_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
