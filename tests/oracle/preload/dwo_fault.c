// SPDX-License-Identifier: Apache-2.0
/*
 * Preloaded into `stacktap', whose helpers have no such environment: as soon as it opens a .dwo file, by DWO_FAULT
 * crash: its parser has the file, and dies before it has looked at it
 * late: six minutes have passed
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static time_t passed;
static bool is_stopped;

/* @flags: of waitid(), until they have come to that; nothing is reaped. */
static void signal_children(int number, int flags)
{
	char path[64];
	FILE *children;
	pid_t child;

	snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
	children = fopen(path, "re");
	while (children && fscanf(children, "%d", &child) == 1) {
		siginfo_t info;

		kill(child, number);
		waitid(P_PID, (id_t)child, &info, flags | WNOWAIT);
	}
	if (children)
		fclose(children);
}

int openat(int directory, const char *path, int flags, ...)
{
	int (*real)(int directory, const char *path, int flags, ...) =
		(int (*)(int, const char *, int, ...))dlsym(RTLD_NEXT, "openat");
	const size_t length = strlen(path);
	const char *fault = getenv("DWO_FAULT");
	va_list args;
	mode_t mode;

	va_start(args, flags);
	mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(args, mode_t) : 0;
	va_end(args);
	if (fault && length > 4 && !strcmp(path + length - 4, ".dwo")) {
		is_stopped = !strcmp(fault, "crash");
		if (is_stopped)
			signal_children(SIGSTOP, WSTOPPED);
		else
			passed = 6 * 60;
	}
	return real(directory, path, flags, mode);
}

ssize_t sendmsg(int socket, const struct msghdr *message, int flags)
{
	ssize_t (*real)(int socket, const struct msghdr *message, int flags) =
		(ssize_t (*)(int, const struct msghdr *, int))dlsym(RTLD_NEXT, "sendmsg");
	ssize_t n = real(socket, message, flags);

	if (is_stopped) {
		is_stopped = false;
		signal_children(SIGKILL, WEXITED);
	}
	return n;
}

int clock_gettime(clockid_t clock, struct timespec *ret_now)
{
	int (*real)(clockid_t clock, struct timespec *ret_now) =
		(int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
	int r = real(clock, ret_now);

	if (!r && clock == CLOCK_MONOTONIC)
		ret_now->tv_sec += passed;
	return r;
}
