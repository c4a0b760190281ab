// SPDX-License-Identifier: Apache-2.0
#include "helper/spawn.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>

#include "base/macro.h"
#include "helper/sandbox.h"
#include "helper/serve.h"

/* Of the environment, which may hold passwords, only what the program itself needs to run. */
static bool is_passed_on(enum helper_kind kind, const char *variable)
{
	static const char *const names[] = { "LD_LIBRARY_PATH=", "ASAN_OPTIONS=", "LSAN_OPTIONS=",
					     "UBSAN_OPTIONS=", "TSAN_OPTIONS=" };
	static const char *const proxies[] = { "http_proxy=", "https_proxy=", "HTTPS_PROXY=", "all_proxy=",
					       "ALL_PROXY=", "no_proxy=", "NO_PROXY=" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (!strncmp(variable, names[i], strlen(names[i])))
			return true;
	for (size_t i = 0; kind == HELPER_FETCHER && i < ARRAY_SIZE(proxies); i++)
		if (!strncmp(variable, proxies[i], strlen(proxies[i])))
			return true;
	return false;
}

int helper_spawn(enum helper_kind kind, int socket, pid_t *ret_pid)
{
	char *argv[] = { (char *)(uintptr_t)serve_name(kind), NULL };
	char *environment[16] = { NULL };
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t all;
	size_t count = 0;
	int r;

	for (char **variable = environ; *variable && count + 1 < ARRAY_SIZE(environment); variable++)
		if (is_passed_on(kind, *variable))
			environment[count++] = *variable;
	/*
	 * Signals to our group or our control group are for us: we still have questions then, and it ends when
	 * its socket does. Nothing of ours stays open in it: whoever reads what we print waits until all who could
	 * write there are gone, and an abandoned helper may never be.
	 */
	sigfillset(&all);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
	posix_spawnattr_setsigmask(&attributes, &all);
	posix_spawnattr_setpgroup(&attributes, 0);
	posix_spawn_file_actions_init(&actions);
	r = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0) ?:
	    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0) ?:
	    (SANDBOX_CAN_CONFINE ? posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO,
								  STDERR_FILENO) : 0) ?:
	    posix_spawn_file_actions_adddup2(&actions, socket, HELPER_FD) ?:
	    posix_spawn_file_actions_addclosefrom_np(&actions, HELPER_FD + 1) ?:
	    posix_spawn(ret_pid, "/proc/self/exe", &actions, &attributes, argv, environment);
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attributes);
	return -r;
}
