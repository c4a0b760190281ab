// SPDX-License-Identifier: Apache-2.0
#include "cli/pager.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/macro.h"

static pid_t child;

static bool is_installed(const char *name)
{
	const char *path = getenv("PATH");
	char file[PATH_MAX];

	while (path && *path) {
		const int length = (int)strcspn(path, ":");

		if (length && snprintf(file, sizeof(file), "%.*s/%s", length, path, name) < (int)sizeof(file) &&
		    !access(file, X_OK))
			return true;
		path += length + !!path[length];
	}
	return false;
}

static const char *choose(void)
{
	const char *pager = getenv("STACKTAP_PAGER") ?: getenv("PAGER"), *term = getenv("TERM");

	if (pager)
		return *pager && strcmp(pager, "cat") ? pager : NULL;
	/* less asks for a key where it knows too little of the terminal, as on a serial console */
	return term && *term && strcmp(term, "dumb") && is_installed("less") ? "less" : NULL;
}

/* Its reader sees the end only once nobody writes any more. */
static void finish(void)
{
	fflush(stdout);
	close(STDOUT_FILENO);
	while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
		;
}

static _Noreturn void run(const char *pager, int fd)
{
	dup2(fd, STDIN_FILENO);
	/* git's: end where one screen is enough, keep colours, leave the text on the screen */
	setenv("LESS", "FRX", 0);
	execl("/bin/sh", "sh", "-c", pager, NULL);
	_exit(127);
}

void pager_start(void)
{
	const char *pager = isatty(STDOUT_FILENO) ? choose() : NULL;
	int fds[2];

	if (!pager || child || fflush(stdout) || pipe2(fds, O_CLOEXEC) < 0)
		return;
	child = fork();
	if (!child)
		run(pager, fds[0]);
	close(fds[0]);
	if (child > 0 && dup2(fds[1], STDOUT_FILENO) >= 0) {
		/* the pager's keys, which end it first; who writes to one that has gone ends without a word */
		signal(SIGINT, SIG_IGN);
		signal(SIGQUIT, SIG_IGN);
		signal(SIGPIPE, SIG_DFL);
		atexit(finish);
	}
	close(fds[1]);
}
