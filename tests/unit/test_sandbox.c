// SPDX-License-Identifier: Apache-2.0
/*
 * What helpers, broker and daemon can no longer do. Each call is made by a child, as they would be left: by its number,
 * which no sanitizer sees, so that the filters are here as well.
 */
#include "unit.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "helper/sandbox.h"
#undef SANDBOX_CAN_CONFINE
#define SANDBOX_CAN_CONFINE 1
#include "helper/sandbox.c"
#include "service/confine.c"

enum {
	PASSES = 1000,	/* whatever the kernel then says */
	KILLED,
	NOT_ENTERED = 255,
};

struct call {
	const char *name;
	long number, a, b, c, d;
	int want;	/* PASSES, KILLED, or the error */
};

#define TEXT(text) ((long)(uintptr_t)(text))
#define OPEN(flags) SYS_openat, AT_FDCWD, TEXT("/dev/null"), (flags), 0
#define SOCKET(family) SYS_socket, (family), SOCK_STREAM, 0, 0
#define ANONYMOUS(protection) SYS_mmap, 0, 4096, (protection), MAP_PRIVATE | MAP_ANONYMOUS
#define FILE_MAP(protection) SYS_mmap, 0, 4096, (protection), MAP_PRIVATE
#define EXECUTE SYS_execve, TEXT("/bin/true"), 0, 0, 0
#define FORK SYS_clone, SIGCHLD, 0, 0, 0

/* A limit of memory comes before the filter, and a sanitizer could not go on to that. */
static bool filtered(bool (*filter)(void))
{
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && filter();
}

static bool enter_parser(void)
{
	return filtered(filter_parser);
}

static bool enter_opener(void)
{
	return filtered(filter_opener);
}

static bool enter_fetcher(void)
{
	return filtered(filter_fetcher);
}

static bool enter_broker(void)
{
	bool is_filtered;

	return confine_broker(&is_filtered) == 0 && is_filtered;
}

static bool enter_daemon(void)
{
	return filtered(confine_daemon_calls);
}

/* What comes of the call: PASSES, KILLED, or its error. */
static int outcome(bool (*enter)(void), const struct call *call)
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (!pid) {
		long r;

		if (!enter())
			_exit(NOT_ENTERED);
		errno = 0;
		r = syscall(call->number, call->a, call->b, call->c, call->d, -1, 0);
		/* a child of its own says nothing */
		if (call->number == SYS_clone && r == 0)
			syscall(SYS_exit_group, 0);
		syscall(SYS_exit_group, r < 0 ? errno : 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFSIGNALED(status))
		return WTERMSIG(status) == SIGSYS ? KILLED : -WTERMSIG(status);
	return WEXITSTATUS(status) ?: PASSES;
}

static void try_all(const char *who, bool (*enter)(void), const struct call *calls, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const int found = outcome(enter, &calls[i]);

		if (calls[i].want == PASSES ? found == KILLED || found == EPERM || found == ENOSYS : found != calls[i].want) {
			print_error("%s, %s: %d, not %d\n", who, calls[i].name, found, calls[i].want);
			fail();
		}
	}
}

#define TRY(enter, calls) try_all(#enter, enter, calls, ARRAY_SIZE(calls))

static void the_parser_computes_and_answers(void **state)
{
	static const struct call calls[] = {
		{ "memory", ANONYMOUS(PROT_NONE), PASSES }, { "the time", SYS_clock_gettime, 0, 0, 0, 0, PASSES },
		/* libraries ask for settings, and are told no */
		{ "a file", OPEN(O_RDONLY), EACCES }, { "a link", SYS_readlinkat, AT_FDCWD, TEXT("/proc/self"), 0, 0, EACCES },
		{ "openat2()", SYS_openat2, AT_FDCWD, 0, 0, 0, KILLED },
		{ "a socket", SOCKET(AF_INET), KILLED }, { "a local socket", SOCKET(AF_UNIX), KILLED },
		{ "connect()", SYS_connect, 0, 0, 0, 0, KILLED },
		{ "a program", EXECUTE, KILLED }, { "a process", FORK, KILLED }, { "clone3()", SYS_clone3, 0, 0, 0, 0, KILLED },
		{ "a signal to others", SYS_kill, 1, 0, 0, 0, KILLED }, { "ptrace()", SYS_ptrace, 0, 1, 0, 0, KILLED },
		{ "another's memory", SYS_process_vm_readv, 1, 0, 0, 0, KILLED },
		{ "code", ANONYMOUS(PROT_READ | PROT_EXEC), KILLED },
		{ "memory made code", SYS_mprotect, 0, 4096, PROT_EXEC, 0, KILLED },
		{ "a file as memory", FILE_MAP(PROT_READ), KILLED },
		{ "another name", SYS_unlinkat, AT_FDCWD, TEXT("/nowhere"), 0, 0, KILLED },
		{ "a user", SYS_setuid, 0, 0, 0, 0, KILLED }, { "limits", SYS_prlimit64, 0, RLIMIT_AS, 0, 0, KILLED },
		{ "prctl()", SYS_prctl, PR_SET_DUMPABLE, 1, 0, 0, KILLED },
		{ "io_uring", SYS_io_uring_setup, 1, 0, 0, 0, KILLED },
	};

	(void)state;
	TRY(enter_parser, calls);
}

static void the_opener_opens_for_reading(void **state)
{
	static const struct call calls[] = {
		{ "memory", ANONYMOUS(PROT_NONE), PASSES }, { "a file", OPEN(O_RDONLY), PASSES },
		{ "to write", OPEN(O_WRONLY), KILLED }, { "to read and write", OPEN(O_RDWR), KILLED },
		{ "a new one", OPEN(O_RDONLY | O_CREAT), KILLED }, { "an empty one", OPEN(O_RDONLY | O_TRUNC), KILLED },
		{ "a socket", SOCKET(AF_INET), KILLED }, { "a local socket", SOCKET(AF_UNIX), KILLED },
		{ "a program", EXECUTE, KILLED }, { "a process", FORK, KILLED },
		{ "a signal to others", SYS_kill, 1, 0, 0, 0, KILLED }, { "ptrace()", SYS_ptrace, 0, 1, 0, 0, KILLED },
		{ "code", ANONYMOUS(PROT_READ | PROT_EXEC), KILLED },
		{ "a file as code", FILE_MAP(PROT_EXEC), KILLED }, { "a file to write to", FILE_MAP(PROT_WRITE), KILLED },
		{ "another name", SYS_unlinkat, AT_FDCWD, TEXT("/nowhere"), 0, 0, KILLED },
		{ "a mount", SYS_mount, 0, 0, 0, 0, KILLED }, { "another namespace", SYS_setns, -1, 0, 0, 0, KILLED },
		{ "a module", SYS_init_module, 0, 0, 0, 0, KILLED }, { "an ioctl", SYS_ioctl, 0, 0, 0, 0, KILLED },
	};

	(void)state;
	TRY(enter_opener, calls);
}

static void the_fetcher_has_the_network(void **state)
{
	static const struct call calls[] = {
		{ "memory", ANONYMOUS(PROT_NONE), PASSES }, { "a file", OPEN(O_RDONLY), PASSES },
		{ "a socket", SOCKET(AF_INET), PASSES }, { "to write", OPEN(O_WRONLY), EPERM },
		{ "a new one", OPEN(O_RDONLY | O_CREAT), EPERM }, { "a local socket", SOCKET(AF_UNIX), EPERM },
		{ "packets", SOCKET(AF_PACKET), EPERM }, { "a program", EXECUTE, EPERM }, { "a process", FORK, EPERM },
		{ "clone3()", SYS_clone3, 0, 0, 0, 0, ENOSYS }, { "a signal to others", SYS_kill, 1, 0, 0, 0, EPERM },
		{ "code", ANONYMOUS(PROT_READ | PROT_EXEC), EPERM },
		{ "another name", SYS_unlinkat, AT_FDCWD, TEXT("/nowhere"), 0, 0, EPERM },
	};

	(void)state;
	TRY(enter_fetcher, calls);
}

/* Its capabilities would let it. */
static void the_broker_changes_nothing_of_the_host(void **state)
{
	static const struct call calls[] = {
		{ "a file", OPEN(O_RDONLY), PASSES }, { "a module", SYS_init_module, 0, 0, 0, 0, EPERM },
		{ "a mount", SYS_mount, 0, 0, 0, 0, EPERM }, { "another namespace", SYS_setns, -1, 0, 0, 0, EPERM },
		{ "a namespace", SYS_unshare, CLONE_NEWNS, 0, 0, 0, EPERM }, { "ptrace()", SYS_ptrace, 0, 1, 0, 0, EPERM },
		{ "another's memory", SYS_process_vm_readv, 1, 0, 0, 0, EPERM }, { "bpf()", SYS_bpf, 0, 0, 0, 0, EPERM },
		{ "another's descriptor", SYS_pidfd_getfd, -1, 0, 0, 0, EPERM },
	};

	(void)state;
	TRY(enter_broker, calls);
}

static void the_daemon_has_its_own_calls(void **state)
{
	static const struct call calls[] = {
		{ "a file", OPEN(O_RDWR), PASSES }, { "a socket", SOCKET(AF_INET), PASSES },
		{ "a local socket", SOCKET(AF_UNIX), PASSES }, { "packets", SOCKET(AF_PACKET), ENOSYS },
		{ "a process", FORK, PASSES }, { "one with namespaces", SYS_clone, SIGCHLD | CLONE_NEWUSER, 0, 0, 0, ENOSYS },
		{ "clone3()", SYS_clone3, 0, 0, 0, 0, ENOSYS }, { "an event", SYS_perf_event_open, 0, 0, 0, 0, ENOSYS },
		{ "ptrace()", SYS_ptrace, 0, 1, 0, 0, ENOSYS }, { "bpf()", SYS_bpf, 0, 0, 0, 0, ENOSYS },
		{ "another's memory", SYS_process_vm_readv, 1, 0, 0, 0, ENOSYS }, { "a mount", SYS_mount, 0, 0, 0, 0, ENOSYS },
		{ "a module", SYS_init_module, 0, 0, 0, 0, ENOSYS }, { "io_uring", SYS_io_uring_setup, 1, 0, 0, 0, ENOSYS },
		{ "a user", SYS_setuid, 0, 0, 0, 0, ENOSYS }, { "another namespace", SYS_setns, -1, 0, 0, 0, ENOSYS },
	};

	(void)state;
	TRY(enter_daemon, calls);
}

static bool be_parser(void)
{
	return sandbox_enter(HELPER_PARSER);
}

static bool be_opener(void)
{
	return sandbox_enter(HELPER_OPENER);
}

static bool be_fetcher(void)
{
	return sandbox_enter(HELPER_FETCHER);
}

/* As /proc tells it, of a process that may be another user's. */
static void expect_limit(const char *limits, const char *name, rlim_t bytes)
{
	const char *line = strstr(limits, name);
	unsigned long long soft = 1, hard = 1;

	assert_non_null(line);
	assert_int_equal(sscanf(line + strlen(name), "%llu %llu", &soft, &hard), 2);
	assert_int_equal(soft, bytes);
	assert_int_equal(hard, bytes);
}

/* Read when the child has ended, as a sanitizer's has where it wants more. */
static void has_limits(bool (*be)(void), rlim_t bytes)
{
	_cleanup_free_ char *limits = NULL;
	char path[32];
	siginfo_t info;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid) {
		if (!freopen("/dev/null", "w", stderr))
			_exit(1);
		be();
		syscall(SYS_exit_group, 0);
	}
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	snprintf(path, sizeof(path), "/proc/%d/limits", (int)pid);
	assert_int_equal(file_read(AT_FDCWD, path, 65536, &limits, NULL), 0);
	expect_limit(limits, "Max address space", bytes);
	expect_limit(limits, "Max core file size", 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void memory_is_bounded(void **state)
{
	(void)state;
	has_limits(be_parser, SANDBOX_PARSER_BYTES);
	has_limits(be_opener, OPENER_BYTES);
	has_limits(be_fetcher, FETCHER_BYTES);
	has_limits(sandbox_enter_viewer, SANDBOX_VIEWER_BYTES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_parser_computes_and_answers),
		cmocka_unit_test(the_opener_opens_for_reading),
		cmocka_unit_test(the_fetcher_has_the_network),
		cmocka_unit_test(the_broker_changes_nothing_of_the_host),
		cmocka_unit_test(the_daemon_has_its_own_calls),
		cmocka_unit_test(memory_is_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
