// SPDX-License-Identifier: Apache-2.0
#include "cli/manual.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NAME_BYTES = 64 };

/* man(1), whose output is read from the descriptor that this returns; below 0: it did not start. */
static int start_man(char *const argv[], pid_t *ret_child)
{
	posix_spawn_file_actions_t actions;
	int ends[2], err;

	if (pipe2(ends, O_CLOEXEC))
		return -1;
	err = posix_spawn_file_actions_init(&actions);
	if (!err) {
		err = posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO) ?:
		      posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0) ?:
		      posix_spawnp(ret_child, argv[0], &actions, NULL, argv, environ);
		posix_spawn_file_actions_destroy(&actions);
	}
	close(ends[1]);
	if (!err)
		return ends[0];
	close(ends[0]);
	return -1;
}

/*
 * man(1) names the page's file, unless it says that there is none; neither is for the user. Where pages were left out of
 * the system it may be a script that says so, whatever it is asked, and does not fail: its words are no file.
 */
static bool has_page(const char *page)
{
	char *const argv[] = { (char *)(uintptr_t)"man", (char *)(uintptr_t)"-w",
			       (char *)(uintptr_t)page, NULL };
	char path[PATH_MAX] = "";
	bool is_file = false;
	pid_t child;
	FILE *said;
	int status;
	int fd = start_man(argv, &child);

	if (fd < 0)
		return false;
	said = fdopen(fd, "r");
	if (said) {
		is_file = fgets(path, sizeof(path), said);
		fclose(said);
	} else {
		close(fd);
	}
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return false;
	path[strcspn(path, "\n")] = 0;
	return is_file && WIFEXITED(status) && !WEXITSTATUS(status) && *path == '/' && !access(path, R_OK);
}

void manual_show(const char *command)
{
	char page[NAME_BYTES];

	snprintf(page, sizeof(page), "stacktap-%s", command);
	if (has_page(page))
		execlp("man", "man", page, (char *)NULL);
}
