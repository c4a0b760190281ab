// SPDX-License-Identifier: Apache-2.0
#include "cli/child.h"

#include <fcntl.h>
#include <string.h>
#include <sys/wait.h>

enum { EXIT_NOT_FOUND = 127, EXIT_SIGNAL = 128 };

static char **kept_environment;	/* NULL: as it is */

int child_keep_environment(void)
{
	size_t count = 0;
	char **kept;

	while (environ[count])
		count++;
	/* what is removed or replaced later leaves the strings as they are */
	kept = calloc(count + 1, sizeof(*kept));
	if (!kept)
		return -ENOMEM;
	memcpy(kept, environ, count * sizeof(*kept));
	free(kept_environment);
	kept_environment = kept;
	return 0;
}

static _noreturn_ void be_child(int go, int failure, char **command, int output,
				const sigset_t *mask)
{
	ssize_t got;
	char byte;
	int error;

	do
		got = read(go, &byte, 1);
	while (got < 0 && errno == EINTR);
	if (got != 1)
		_exit(EXIT_NOT_FOUND);
	signal(SIGPIPE, SIG_DFL);
	sigprocmask(SIG_SETMASK, mask, NULL);
	if (output == STDOUT_FILENO || dup2(output, STDOUT_FILENO) == STDOUT_FILENO)
		execvpe(command[0], command, kept_environment ? kept_environment : environ);
	error = errno;
	/* the reader takes silence for success, so a failed write is told by the exit code */
	if (write(failure, &error, sizeof(error)) != sizeof(error))
		_exit(EXIT_NOT_FOUND);
	_exit(EXIT_NOT_FOUND);
}

int child_prepare(struct child *ret_child, char **command, int output, const sigset_t *mask)
{
	int go[2], failure[2];
	pid_t pid;

	if (pipe2(go, O_CLOEXEC) < 0)
		return -errno;
	if (pipe2(failure, O_CLOEXEC) < 0) {
		int error = errno;

		close(go[0]);
		close(go[1]);
		return -error;
	}
	pid = fork();
	if (!pid) {
		close(go[1]);
		close(failure[0]);
		be_child(go[0], failure[1], command, output, mask);
	}
	close(go[0]);
	close(failure[1]);
	if (pid < 0) {
		int error = errno;

		close(go[1]);
		close(failure[0]);
		return -error;
	}
	*ret_child = (struct child){ .pid = pid, .go = go[1], .failure = failure[0] };
	return 0;
}

int child_go(struct child *child)
{
	int error = 0;
	ssize_t got;

	if (write(child->go, "", 1) != 1)
		return -errno;
	close(child->go);
	child->go = -1;
	do
		got = read(child->failure, &error, sizeof(error));
	while (got < 0 && errno == EINTR);
	return got == sizeof(error) ? -error : 0;
}

bool child_reap(struct child *child)
{
	if (!child->is_reaped && waitpid(child->pid, &child->status, WNOHANG) == child->pid)
		child->is_reaped = true;
	return child->is_reaped;
}

void child_terminate(struct child *child)
{
	if (!child->pid)
		return;
	if (child->go >= 0)
		close(child->go);
	if (child->failure >= 0)
		close(child->failure);
	child->go = child->failure = -1;
	if (child_reap(child) || child->is_terminated)
		return;
	kill(child->pid, SIGTERM);
	child->is_terminated = true;
}

void child_end(struct child *child)
{
	child_terminate(child);
	if (!child->pid || child->is_reaped)
		return;
	while (waitpid(child->pid, &child->status, 0) < 0 && errno == EINTR)
		;
	child->is_reaped = true;
}

int child_exit_code(const struct child *child)
{
	if (WIFEXITED(child->status))
		return WEXITSTATUS(child->status);
	return EXIT_SIGNAL + WTERMSIG(child->status);
}
