// SPDX-License-Identifier: Apache-2.0
#include "service/start.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>

enum { FD_MAX = 8, ABOVE = 16 };

static bool is_passed_on(const char *variable)
{
	static const char *const names[] = { "LD_LIBRARY_PATH=", "ASAN_OPTIONS=", "LSAN_OPTIONS=", "UBSAN_OPTIONS=",
					     "TSAN_OPTIONS=", "PATH=", "OTEL_SERVICE_NAME=",
					     "OTEL_RESOURCE_ATTRIBUTES=" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (!strncmp(variable, names[i], strlen(names[i])))
			return true;
	return false;
}

/* Out of the way of the numbers that they get, or -errno. */
static int move_up(const struct start_fd *fds, size_t count, int ret_copies[FD_MAX])
{
	for (size_t i = 0; i < count; i++) {
		ret_copies[i] = fcntl(fds[i].fd, F_DUPFD_CLOEXEC, ABOVE);
		if (ret_copies[i] < 0) {
			const int error = errno;

			while (i-- > 0)
				close(ret_copies[i]);
			return -error;
		}
	}
	return 0;
}

static int add_files(posix_spawn_file_actions_t *actions, const struct start_fd *fds, const int *copies, size_t count)
{
	int last = STDERR_FILENO;
	int r = posix_spawn_file_actions_addopen(actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0) ?:
		posix_spawn_file_actions_addopen(actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0) ?:
		posix_spawn_file_actions_adddup2(actions, STDOUT_FILENO, STDERR_FILENO);

	for (size_t i = 0; !r && i < count; i++) {
		r = posix_spawn_file_actions_adddup2(actions, copies[i], fds[i].as);
		last = fds[i].as > last ? fds[i].as : last;
	}
	return r ?: posix_spawn_file_actions_addclosefrom_np(actions, last + 1);
}

/* Where memory is short, what works for one request goes before what works all the time. */
static void let_go_first(pid_t pid)
{
	_cleanup_close_ int fd = -1;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/oom_score_adj", (int)pid);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd >= 0 && write(fd, "1000", 4) < 0)
		errno = 0;
}

int start_program(const char *path, char *const *argv, const struct start_fd *fds, size_t count, pid_t *ret_pid)
{
	char *environment[16] = { NULL };
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	int copies[FD_MAX], r;
	size_t kept = 0;
	sigset_t none;

	if (count > FD_MAX)
		return -E2BIG;
	r = move_up(fds, count, copies);
	if (r)
		return r;
	for (char **variable = environ; *variable && kept + 1 < ARRAY_SIZE(environment); variable++)
		if (is_passed_on(*variable))
			environment[kept++] = *variable;
	sigemptyset(&none);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setpgroup(&attributes, 0);
	posix_spawn_file_actions_init(&actions);
	r = add_files(&actions, fds, copies, count) ?:
	    posix_spawn(ret_pid, path, &actions, &attributes, argv, environment);
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attributes);
	if (!r)
		let_go_first(*ret_pid);
	for (size_t i = 0; i < count; i++)
		close(copies[i]);
	return -r;
}

int start_end(pid_t pid)
{
	int status = 0;

	kill(pid, SIGKILL);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return status;
}
