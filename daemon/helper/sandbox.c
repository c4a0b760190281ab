// SPDX-License-Identifier: Apache-2.0
#include "helper/sandbox.h"

#include <cap-ng.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <linux/capability.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>


#define OPENER_BYTES ((rlim_t)256 << 20)
#define FETCHER_BYTES ((rlim_t)512 << 20)	/* its library has a thread for the names of hosts */

enum { NOBODY = 65534, VIEWER_NICE = 19 };

static void limit(int resource, rlim_t value)
{
	const struct rlimit bound = { .rlim_cur = value, .rlim_max = value };

	setrlimit((__rlimit_resource_t)resource, &bound);
}

/*
 * By these alone memory, the descriptors it was handed, and its answers. No file can be opened, no
 * memory made executable, no process reached.
 */
static bool filter_parser(void)
{
	static const int allowed[] = {
		SCMP_SYS(recvmsg), SCMP_SYS(sendmsg), SCMP_SYS(read), SCMP_SYS(pread64), SCMP_SYS(write),
		SCMP_SYS(close), SCMP_SYS(fstat), SCMP_SYS(newfstatat), SCMP_SYS(memfd_create),
		SCMP_SYS(ftruncate), SCMP_SYS(brk), SCMP_SYS(munmap), SCMP_SYS(mremap),
		SCMP_SYS(madvise), SCMP_SYS(futex), SCMP_SYS(getrandom), SCMP_SYS(sysinfo),
		SCMP_SYS(clock_gettime), SCMP_SYS(exit), SCMP_SYS(exit_group), SCMP_SYS(rt_sigprocmask),
		SCMP_SYS(getpid), SCMP_SYS(gettid), SCMP_SYS(tgkill), SCMP_SYS(rt_sigaction),
		SCMP_SYS(restart_syscall), SCMP_SYS(setitimer), SCMP_SYS(rt_sigreturn),
	};
	static const int refused[] = {
		SCMP_SYS(open), SCMP_SYS(openat), SCMP_SYS(readlink), SCMP_SYS(readlinkat),
	};
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_KILL_PROCESS);
	int r = filter ? 0 : -ENOMEM;

	for (size_t i = 0; !r && i < ARRAY_SIZE(allowed); i++)
		r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, allowed[i], 0);
	if (!r)
		r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(mmap), 2,
				     SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0),
				     SCMP_A3(SCMP_CMP_MASKED_EQ, MAP_ANONYMOUS, MAP_ANONYMOUS));
	if (!r)
		r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(mprotect), 1,
				     SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
	if (!r)
		r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(fcntl), 1,
				     SCMP_A1(SCMP_CMP_EQ, F_ADD_SEALS, 0));
	/* what a library looks for, as malloc() does for settings of the kernel, is not there */
	for (size_t i = 0; !r && i < ARRAY_SIZE(refused); i++)
		r = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EACCES), refused[i], 0);
	if (!r)
		r = seccomp_load(filter);
	seccomp_release(filter);
	return !r;
}

/* Opening for reading alone, and what memory takes. openat2() is asked for O_PATH alone, see open.c. */
static bool filter_opener(void)
{
	static const int allowed[] = {
		SCMP_SYS(recvmsg), SCMP_SYS(sendmsg), SCMP_SYS(read), SCMP_SYS(pread64), SCMP_SYS(write),
		SCMP_SYS(close), SCMP_SYS(fstat), SCMP_SYS(newfstatat), SCMP_SYS(fstatfs),
		SCMP_SYS(readlinkat), SCMP_SYS(getdents64), SCMP_SYS(lseek), SCMP_SYS(openat2),
		SCMP_SYS(memfd_create), SCMP_SYS(ftruncate), SCMP_SYS(fcntl), SCMP_SYS(brk),
		SCMP_SYS(munmap), SCMP_SYS(mremap), SCMP_SYS(madvise), SCMP_SYS(futex),
		SCMP_SYS(getrandom), SCMP_SYS(sysinfo), SCMP_SYS(clock_gettime),
		SCMP_SYS(clock_nanosleep), SCMP_SYS(nanosleep), SCMP_SYS(exit), SCMP_SYS(exit_group),
		SCMP_SYS(rt_sigprocmask), SCMP_SYS(getpid), SCMP_SYS(gettid), SCMP_SYS(tgkill),
		SCMP_SYS(rt_sigaction), SCMP_SYS(restart_syscall), SCMP_SYS(statx),
	};
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_KILL_PROCESS);
	int r = filter ? 0 : -ENOMEM;

	for (size_t i = 0; !r && i < ARRAY_SIZE(allowed); i++)
		r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, allowed[i], 0);
	if (!r)
		r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(openat), 1,
				     SCMP_A2(SCMP_CMP_MASKED_EQ, O_ACCMODE | O_CREAT | O_TRUNC,
					     O_RDONLY));
	if (!r)
		r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(mmap), 1,
				     SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_WRITE | PROT_EXEC, 0));
	if (!r)
		r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(mmap), 2,
				     SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0),
				     SCMP_A3(SCMP_CMP_MASKED_EQ, MAP_ANONYMOUS, MAP_ANONYMOUS));
	if (!r)
		r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(mprotect), 1,
				     SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
	if (!r)
		r = seccomp_load(filter);
	seccomp_release(filter);
	return !r;
}

/*
 * The network, the file that it is handed, and others for reading alone: names of hosts, certificates. What
 * libraries try beside that is refused and does not end it, as those of the network try a lot: modules for
 * names of hosts, other processes that know some.
 */
static bool filter_fetcher(void)
{
	static const int allowed[] = {
		SCMP_SYS(recvmsg), SCMP_SYS(sendmsg), SCMP_SYS(recvfrom), SCMP_SYS(sendto),
		SCMP_SYS(sendmmsg), SCMP_SYS(recvmmsg), SCMP_SYS(connect), SCMP_SYS(bind),
		SCMP_SYS(shutdown), SCMP_SYS(getsockname), SCMP_SYS(getpeername), SCMP_SYS(getsockopt),
		SCMP_SYS(setsockopt), SCMP_SYS(socketpair), SCMP_SYS(poll), SCMP_SYS(ppoll),
		SCMP_SYS(select), SCMP_SYS(pselect6), SCMP_SYS(fcntl), SCMP_SYS(eventfd2),
		SCMP_SYS(pipe2), SCMP_SYS(uname), SCMP_SYS(read), SCMP_SYS(readv), SCMP_SYS(pread64),
		SCMP_SYS(write), SCMP_SYS(writev), SCMP_SYS(lseek), SCMP_SYS(close), SCMP_SYS(fstat),
		SCMP_SYS(newfstatat), SCMP_SYS(stat), SCMP_SYS(brk), SCMP_SYS(munmap), SCMP_SYS(mremap),
		SCMP_SYS(madvise), SCMP_SYS(futex), SCMP_SYS(getrandom), SCMP_SYS(sysinfo),
		SCMP_SYS(clock_gettime), SCMP_SYS(gettimeofday), SCMP_SYS(clock_nanosleep),
		SCMP_SYS(nanosleep), SCMP_SYS(exit), SCMP_SYS(exit_group), SCMP_SYS(rt_sigprocmask),
		SCMP_SYS(rt_sigaction), SCMP_SYS(rt_sigreturn), SCMP_SYS(getpid), SCMP_SYS(gettid),
		SCMP_SYS(getuid), SCMP_SYS(geteuid), SCMP_SYS(getgid), SCMP_SYS(getegid),
		SCMP_SYS(set_robust_list), SCMP_SYS(rseq), SCMP_SYS(sched_yield), SCMP_SYS(tgkill),
		SCMP_SYS(restart_syscall),
	};
	static const int families[] = { AF_INET, AF_INET6, AF_NETLINK };
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(EPERM));
	int r = filter ? 0 : -ENOMEM;

	for (size_t i = 0; !r && i < ARRAY_SIZE(allowed); i++)
		r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, allowed[i], 0);
	for (size_t i = 0; !r && i < ARRAY_SIZE(families); i++) {
		const struct scmp_arg_cmp family = { 0, SCMP_CMP_EQ, (scmp_datum_t)families[i], 0 };

		r = seccomp_rule_add_array(filter, SCMP_ACT_ALLOW, SCMP_SYS(socket), 1, &family);
	}
	if (!r)
		r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(openat), 1,
				     SCMP_A2(SCMP_CMP_MASKED_EQ, O_ACCMODE | O_CREAT | O_TRUNC,
					     O_RDONLY));
	if (!r)
		r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(mmap), 1,
				     SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
	if (!r)
		r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(mprotect), 1,
				     SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
	/* threads, and no process; of clone3() no filter can see which, and libc has the other */
	if (!r)
		r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(clone), 1,
				     SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_THREAD, CLONE_THREAD));
	if (!r)
		r = seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
	if (!r)
		r = seccomp_load(filter);
	seccomp_release(filter);
	return !r;
}

/*
 * Without CAP_SETUID it stays who it is: root without capabilities. The parser's filter keeps that from what is
 * root's; the fetcher's, which lets it read, cannot.
 */
static void drop_all_rights(void)
{
	if (geteuid() == 0) {
		if (setgroups(0, NULL) || setresgid(NOBODY, NOBODY, NOBODY) ||
		    setresuid(NOBODY, NOBODY, NOBODY))
			errno = 0;
	}
	capng_clear(CAPNG_SELECT_BOTH);
	capng_apply(CAPNG_SELECT_CAPS);
}

/* What other processes' maps, roots and programs are read with; as far as its owner has them. */
static void drop_other_rights(void)
{
	static const unsigned int needed[] = { CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH, CAP_SYS_ADMIN };
	bool has[ARRAY_SIZE(needed)];

	for (size_t i = 0; i < ARRAY_SIZE(needed); i++)
		has[i] = capng_have_capability(CAPNG_PERMITTED, needed[i]);
	capng_clear(CAPNG_SELECT_BOTH);
	for (size_t i = 0; i < ARRAY_SIZE(needed); i++)
		if (has[i])
			capng_update(CAPNG_ADD, CAPNG_EFFECTIVE | CAPNG_PERMITTED, needed[i]);
	capng_apply(CAPNG_SELECT_CAPS);
}

/* Where memory is short, this process can be had again, and its owner's samples cannot. */
static void be_first_to_go(void)
{
	_cleanup_close_ int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	if (fd >= 0 && write(fd, "1000", 4) < 0)
		errno = 0;
}

static const struct {
	rlim_t bytes;		/* of address space */
	bool (*filter)(void);
} kinds[HELPER_KINDS] = {
	[HELPER_PARSER] = { SANDBOX_PARSER_BYTES, filter_parser },
	[HELPER_OPENER] = { OPENER_BYTES, filter_opener },
	[HELPER_FETCHER] = { FETCHER_BYTES, filter_fetcher },
};

bool sandbox_enter(enum helper_kind kind)
{
	be_first_to_go();
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (kind == HELPER_OPENER)
		drop_other_rights();
	else
		drop_all_rights();
	/* a change of rights clears it */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	limit(RLIMIT_CORE, 0);
	if (!SANDBOX_CAN_CONFINE)
		return false;
	limit(RLIMIT_AS, kinds[kind].bytes);
	return kinds[kind].filter();
}

bool sandbox_enter_viewer(void)
{
	be_first_to_go();
	setpriority(PRIO_PROCESS, 0, VIEWER_NICE);
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	capng_clear(CAPNG_SELECT_BOTH);
	capng_apply(CAPNG_SELECT_CAPS);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	limit(RLIMIT_CORE, 0);
	if (!SANDBOX_CAN_CONFINE)
		return false;
	limit(RLIMIT_AS, SANDBOX_VIEWER_BYTES);
	return filter_opener();
}
