// SPDX-License-Identifier: Apache-2.0
#include "unit.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

/* The command line is in no library. */
#include "cli/child.c"

/* The exit code of @script, run as a command is. */
static int run_script_into(int output, const char *script)
{
	char *command[] = { strdup("sh"), strdup("-c"), strdup(script), NULL };
	struct child child;
	sigset_t mask;

	sigemptyset(&mask);
	assert_int_equal(child_prepare(&child, command, output, &mask), 0);
	assert_int_equal(child_go(&child), 0);
	assert_int_equal(waitpid(child.pid, &child.status, 0), child.pid);
	child.is_reaped = true;
	child_terminate(&child);
	for (size_t i = 0; command[i]; i++)
		free(command[i]);
	return child_exit_code(&child);
}

static int run_script(const char *script)
{
	return run_script_into(STDOUT_FILENO, script);
}

/* As main() does it: what it removes for itself, the command still has, and nothing else. */
static void a_command_has_its_callers_environment(void **state _unused_)
{
	setenv("DEBUGINFOD_URLS", "https://debuginfod.example", 1);
	setenv("STRANGE", "a b=c", 1);
	unsetenv("LATER");
	assert_int_equal(child_keep_environment(), 0);
	unsetenv("DEBUGINFOD_URLS");
	setenv("LATER", "x", 1);
	setenv("STRANGE", "changed", 1);
	assert_int_equal(run_script("[ \"$DEBUGINFOD_URLS\" = https://debuginfod.example ] && "
				    "[ \"$STRANGE\" = \"a b=c\" ] && [ -z \"${LATER+x}\" ] && "
				    "exit 7"), 7);
	assert_null(getenv("DEBUGINFOD_URLS"));
}

static void exit_codes_are_the_commands(void **state _unused_)
{
	assert_int_equal(run_script("exit 3"), 3);
	assert_int_equal(run_script("kill -9 $$"), 128 + 9);
}

/* As standard output has the profile then. */
static void what_a_command_says_goes_where_it_is_told(void **state _unused_)
{
	char said[16] = "";
	int pipe_fds[2];

	assert_int_equal(pipe2(pipe_fds, O_CLOEXEC), 0);
	assert_int_equal(run_script_into(pipe_fds[1], "echo word"), 0);
	close(pipe_fds[1]);
	assert_int_equal(read(pipe_fds[0], said, sizeof(said) - 1), 5);
	assert_string_equal(said, "word\n");
	close(pipe_fds[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_command_has_its_callers_environment),
		cmocka_unit_test(exit_codes_are_the_commands),
		cmocka_unit_test(what_a_command_says_goes_where_it_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
