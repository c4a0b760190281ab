/* SPDX-License-Identifier: Apache-2.0 */
/* A program that works for a request: without this one's descriptors, signals and, of the environment, passwords. */
#ifndef STACKTAP_SERVICE_START_H
#define STACKTAP_SERVICE_START_H

#include <sys/types.h>

#include "base/macro.h"

struct start_fd {
	int fd, as;	/* 1, 2 (its standard outputs) or beyond */
};

/* Where none is named, standard input and outputs are /dev/null. -errno, also of its exec */
int start_program(const char *path, char *const *argv, const struct start_fd *fds, size_t count, pid_t *ret_pid);
/* Kill it if it still runs: its status, as of waitpid(). */
int start_end(pid_t pid);

#endif /* STACKTAP_SERVICE_START_H */
