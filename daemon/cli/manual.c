// SPDX-License-Identifier: Apache-2.0
#include "cli/manual.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NAME_BYTES = 64 };

/* man(1) names the page's file, unless it says that there is none; neither is for the user. */
static bool has_page(const char *page)
{
	char *const argv[] = { (char *)(uintptr_t)"man", (char *)(uintptr_t)"-w",
			       (char *)(uintptr_t)page, NULL };
	posix_spawn_file_actions_t actions;
	int status, err;
	pid_t child;

	if (posix_spawn_file_actions_init(&actions))
		return false;
	err = posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0) ?:
	      posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO) ?:
	      posix_spawnp(&child, argv[0], &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	if (err)
		return false;
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return false;
	return WIFEXITED(status) && !WEXITSTATUS(status);
}

void manual_show(const char *command)
{
	char page[NAME_BYTES];

	snprintf(page, sizeof(page), "stacktap-%s", command);
	if (has_page(page))
		execlp("man", "man", page, (char *)NULL);
}
