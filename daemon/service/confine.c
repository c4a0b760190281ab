// SPDX-License-Identifier: Apache-2.0
#include "service/confine.h"

#include <cap-ng.h>
#include <grp.h>
#include <linux/capability.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "base/macro.h"
#include "helper/sandbox.h"

#ifndef CAP_PERFMON
#define CAP_PERFMON 38
#endif

/* Of these what there is. */
static void keep(const unsigned int *capabilities, size_t count)
{
	bool has[16];

	for (size_t i = 0; i < count; i++)
		has[i] = capng_have_capability(CAPNG_PERMITTED, capabilities[i]);
	capng_clear(CAPNG_SELECT_CAPS);
	for (size_t i = 0; i < count; i++)
		if (has[i])
			capng_update(CAPNG_ADD, CAPNG_EFFECTIVE | CAPNG_PERMITTED, capabilities[i]);
}

int confine_broker(bool *ret_is_filtered)
{
	/* the session and its lists, the side band; helpers, their users and their end; what record's side band locks */
	static const unsigned int needed[] = { CAP_SYS_ADMIN, CAP_PERFMON, CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH,
					       CAP_SYSLOG, CAP_SETUID, CAP_SETGID, CAP_KILL, CAP_IPC_LOCK };
	static const int refused[] = {
		SCMP_SYS(init_module), SCMP_SYS(finit_module), SCMP_SYS(delete_module), SCMP_SYS(kexec_load),
		SCMP_SYS(kexec_file_load), SCMP_SYS(reboot), SCMP_SYS(mount), SCMP_SYS(umount2), SCMP_SYS(move_mount),
		SCMP_SYS(open_tree), SCMP_SYS(fsopen), SCMP_SYS(fsmount), SCMP_SYS(fsconfig), SCMP_SYS(fspick),
		SCMP_SYS(mount_setattr), SCMP_SYS(pivot_root), SCMP_SYS(chroot), SCMP_SYS(setns), SCMP_SYS(unshare),
		SCMP_SYS(swapon), SCMP_SYS(swapoff), SCMP_SYS(acct), SCMP_SYS(quotactl), SCMP_SYS(syslog),
		SCMP_SYS(sethostname), SCMP_SYS(setdomainname), SCMP_SYS(settimeofday), SCMP_SYS(clock_settime),
		SCMP_SYS(clock_adjtime), SCMP_SYS(adjtimex), SCMP_SYS(ptrace), SCMP_SYS(process_vm_readv),
		SCMP_SYS(process_vm_writev), SCMP_SYS(process_madvise), SCMP_SYS(pidfd_getfd), SCMP_SYS(kcmp), SCMP_SYS(bpf),
		SCMP_SYS(userfaultfd), SCMP_SYS(io_uring_setup), SCMP_SYS(open_by_handle_at), SCMP_SYS(add_key),
		SCMP_SYS(request_key), SCMP_SYS(keyctl), SCMP_SYS(iopl), SCMP_SYS(ioperm), SCMP_SYS(mknodat),
		SCMP_SYS(mknod), SCMP_SYS(vhangup), SCMP_SYS(fanotify_init), SCMP_SYS(lookup_dcookie),
	};
	scmp_filter_ctx filter;
	int r;

	*ret_is_filtered = !SANDBOX_CAN_CONFINE;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -errno;
	keep(needed, ARRAY_SIZE(needed));
	if (capng_apply(CAPNG_SELECT_CAPS))
		return -EPERM;
	if (!SANDBOX_CAN_CONFINE)
		return 0;
	/* what it starts is under its filter, and has a stricter one of its own but for `stacktap record' */
	filter = seccomp_init(SCMP_ACT_ALLOW);
	r = filter ? 0 : -ENOMEM;
	for (size_t i = 0; !r && i < ARRAY_SIZE(refused); i++)
		r = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), refused[i], 0);
	if (!r)
		r = seccomp_load(filter);
	seccomp_release(filter);
	*ret_is_filtered = !r;
	return 0;
}

bool confine_may_change_user(void)
{
	return capng_have_capability(CAPNG_EFFECTIVE, CAP_SETUID) && capng_have_capability(CAPNG_EFFECTIVE, CAP_SETGID);
}

bool confine_may_change_owner(void)
{
	return capng_have_capability(CAPNG_EFFECTIVE, CAP_CHOWN);
}

int confine_daemon(uid_t user, gid_t group)
{
	static const unsigned int needed[] = { CAP_PERFMON };
	const struct rlimit unlimited = { .rlim_cur = RLIM_INFINITY, .rlim_max = RLIM_INFINITY };
	bool is_dropped;

	/* rings of the side band are locked memory, which without CAP_IPC_LOCK has a limit; where it stays its error says so */
	if (setrlimit(RLIMIT_MEMLOCK, &unlimited))
		errno = 0;
	/* as far as it may */
	for (int capability = 0; prctl(PR_CAPBSET_READ, capability) >= 0; capability++)
		if (prctl(PR_CAPBSET_DROP, capability) < 0)
			break;
	prctl(PR_SET_KEEPCAPS, 1);
	is_dropped = !setgroups(0, NULL) && !setresgid(group, group, group) && !setresuid(user, user, user);
	if (!is_dropped)
		return -errno;
	keep(needed, ARRAY_SIZE(needed));
	if (capng_apply(CAPNG_SELECT_CAPS) || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -EPERM;
	/* who changed its user has files in /proc that are root's: it could not give its threads names */
	prctl(PR_SET_DUMPABLE, 1);
	return 0;
}

/*
 * What is not here is not there: libraries try the newest first and know then what to do. openat() and ioctl() are
 * for what the user and CAP_PERFMON may, by which the kernel goes. Threads and processes come without namespaces of
 * their own; of clone3() no filter can see that.
 */
bool confine_daemon_calls(void)
{
	static const int allowed[] = {
		/* memory, threads, time */
		SCMP_SYS(brk), SCMP_SYS(mmap), SCMP_SYS(munmap), SCMP_SYS(mremap), SCMP_SYS(mprotect), SCMP_SYS(madvise),
		SCMP_SYS(memfd_create), SCMP_SYS(futex), SCMP_SYS(set_robust_list), SCMP_SYS(get_robust_list), SCMP_SYS(rseq),
		SCMP_SYS(membarrier), SCMP_SYS(exit), SCMP_SYS(exit_group), SCMP_SYS(gettid), SCMP_SYS(tgkill),
		SCMP_SYS(sched_yield), SCMP_SYS(sched_getaffinity),
		SCMP_SYS(sched_getparam), SCMP_SYS(sched_getscheduler), SCMP_SYS(getcpu), SCMP_SYS(restart_syscall),
		SCMP_SYS(clock_gettime), SCMP_SYS(clock_getres), SCMP_SYS(clock_nanosleep), SCMP_SYS(nanosleep),
		SCMP_SYS(gettimeofday), SCMP_SYS(time), SCMP_SYS(times), SCMP_SYS(getrusage), SCMP_SYS(getrandom),
		SCMP_SYS(sysinfo), SCMP_SYS(uname), SCMP_SYS(setitimer), SCMP_SYS(alarm),
		/* signals */
		SCMP_SYS(rt_sigaction), SCMP_SYS(rt_sigprocmask), SCMP_SYS(rt_sigreturn), SCMP_SYS(rt_sigtimedwait),
		SCMP_SYS(rt_sigpending), SCMP_SYS(rt_sigsuspend), SCMP_SYS(sigaltstack), SCMP_SYS(signalfd4), SCMP_SYS(pause),
		/* who it is */
		SCMP_SYS(getpid), SCMP_SYS(getppid), SCMP_SYS(getpgrp), SCMP_SYS(getpgid), SCMP_SYS(getsid), SCMP_SYS(getuid),
		SCMP_SYS(geteuid), SCMP_SYS(getgid), SCMP_SYS(getegid), SCMP_SYS(getresuid), SCMP_SYS(getresgid),
		SCMP_SYS(getgroups), SCMP_SYS(capget), SCMP_SYS(umask), SCMP_SYS(getcwd),
		/* files */
		SCMP_SYS(open), SCMP_SYS(openat), SCMP_SYS(openat2), SCMP_SYS(close), SCMP_SYS(close_range), SCMP_SYS(read),
		SCMP_SYS(readv), SCMP_SYS(pread64), SCMP_SYS(preadv), SCMP_SYS(write), SCMP_SYS(writev), SCMP_SYS(pwrite64),
		SCMP_SYS(pwritev), SCMP_SYS(lseek), SCMP_SYS(fcntl), SCMP_SYS(flock), SCMP_SYS(dup), SCMP_SYS(dup2),
		SCMP_SYS(dup3), SCMP_SYS(ioctl), SCMP_SYS(stat), SCMP_SYS(lstat), SCMP_SYS(fstat), SCMP_SYS(newfstatat),
		SCMP_SYS(statx), SCMP_SYS(statfs), SCMP_SYS(fstatfs), SCMP_SYS(access), SCMP_SYS(faccessat),
		SCMP_SYS(faccessat2), SCMP_SYS(readlink), SCMP_SYS(readlinkat), SCMP_SYS(getdents64), SCMP_SYS(mkdir),
		SCMP_SYS(mkdirat), SCMP_SYS(rmdir), SCMP_SYS(unlink), SCMP_SYS(unlinkat), SCMP_SYS(rename), SCMP_SYS(renameat),
		SCMP_SYS(renameat2), SCMP_SYS(chmod), SCMP_SYS(fchmod), SCMP_SYS(fchmodat), SCMP_SYS(ftruncate),
		SCMP_SYS(fallocate), SCMP_SYS(fsync), SCMP_SYS(fdatasync), SCMP_SYS(utimensat), SCMP_SYS(fadvise64),
		SCMP_SYS(sendfile),
		/* sockets and waiting */
		SCMP_SYS(socketpair), SCMP_SYS(connect), SCMP_SYS(bind), SCMP_SYS(listen), SCMP_SYS(accept),
		SCMP_SYS(accept4), SCMP_SYS(shutdown), SCMP_SYS(getsockname), SCMP_SYS(getpeername), SCMP_SYS(getsockopt),
		SCMP_SYS(setsockopt), SCMP_SYS(sendto), SCMP_SYS(recvfrom), SCMP_SYS(sendmsg), SCMP_SYS(recvmsg),
		SCMP_SYS(sendmmsg), SCMP_SYS(recvmmsg), SCMP_SYS(pipe), SCMP_SYS(pipe2), SCMP_SYS(eventfd2), SCMP_SYS(poll),
		SCMP_SYS(ppoll), SCMP_SYS(select), SCMP_SYS(pselect6), SCMP_SYS(epoll_create1), SCMP_SYS(epoll_ctl),
		SCMP_SYS(epoll_wait), SCMP_SYS(epoll_pwait), SCMP_SYS(epoll_pwait2), SCMP_SYS(timerfd_create),
		SCMP_SYS(timerfd_settime), SCMP_SYS(inotify_init1), SCMP_SYS(inotify_add_watch), SCMP_SYS(inotify_rm_watch),
		/* the viewer: to start it, to end it, and what it begins with */
		SCMP_SYS(vfork), SCMP_SYS(execve), SCMP_SYS(wait4), SCMP_SYS(waitid), SCMP_SYS(kill), SCMP_SYS(setpgid),
		SCMP_SYS(arch_prctl), SCMP_SYS(set_tid_address), SCMP_SYS(prlimit64), SCMP_SYS(getrlimit), SCMP_SYS(setrlimit),
		SCMP_SYS(prctl), SCMP_SYS(capset), SCMP_SYS(seccomp), SCMP_SYS(getpriority), SCMP_SYS(setpriority),
	};
	static const scmp_datum_t families[] = { AF_UNIX, AF_INET, AF_INET6, AF_NETLINK };
	scmp_filter_ctx filter;
	int r;

	if (!SANDBOX_CAN_CONFINE)
		return true;
	filter = seccomp_init(SCMP_ACT_ERRNO(ENOSYS));
	r = filter ? 0 : -ENOMEM;
	for (size_t i = 0; !r && i < ARRAY_SIZE(allowed); i++)
		r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, allowed[i], 0);
	for (size_t i = 0; !r && i < ARRAY_SIZE(families); i++)
		r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(socket), 1, SCMP_A0(SCMP_CMP_EQ, families[i], 0));
	if (!r)
		r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(clone), 1,
				     SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC |
					     CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET, 0));
	if (!r)
		r = seccomp_load(filter);
	seccomp_release(filter);
	return !r;
}
