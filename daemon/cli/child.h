/* SPDX-License-Identifier: Apache-2.0 */
/* A command that is started, held before its exec, and let go. */
#ifndef STACKTAP_CLI_CHILD_H
#define STACKTAP_CLI_CHILD_H

#include <signal.h>
#include <sys/types.h>

#include "base/macro.h"

struct child {
	pid_t pid;		/* 0: none */
	int go;			/* closing it without a word makes the child end */
	int failure;		/* errno of a failed exec comes back here */
	bool is_reaped, is_terminated;
	int status;		/* as of waitpid() */
};

/*
 * Commands get the environment as it is now, whatever this program does to its own later. Once,
 * at the start. -ENOMEM
 */
int child_keep_environment(void);
/* @output: the command's standard output; @mask: the signal mask that it shall have. */
int child_prepare(struct child *ret_child, char **command, int output, const sigset_t *mask);
/* Let it exec: 0, or the exec's -errno (the child has ended then). */
int child_go(struct child *child);
/* True when it has ended; does not wait. */
bool child_reap(struct child *child);
/* SIGTERM if it still runs, once; does not wait. */
void child_terminate(struct child *child);
/* The same, and wait for it, which may take as long as it likes. */
void child_end(struct child *child);
/* The exit code to pass on: its own, 128 + N for a signal. */
int child_exit_code(const struct child *child);

#endif /* STACKTAP_CLI_CHILD_H */
