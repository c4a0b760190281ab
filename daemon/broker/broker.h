/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process that gave up its rights asks its broker for the few things that take them. The broker is this executable
 * once more, started while there were rights, and ends with its socket. Where there is none, as in a program that
 * works with its caller's rights, who asks does it itself: each place that needs a right asks broker_is_there() first,
 * and what is named after a system call is that call then.
 *
 * Any thread may ask; one at a time is served, and no request waits for what others do. -EPIPE: it has ended.
 */
#ifndef STACKTAP_BROKER_BROKER_H
#define STACKTAP_BROKER_BROKER_H

#include <linux/stacktap.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/macro.h"
#include "broker/record.h"

struct broker_event;

enum broker_kernel_file {
	BROKER_SYMBOLS,		/* /proc/kallsyms, which shows addresses to who had CAP_SYSLOG as it was opened */
	BROKER_MODULES,		/* /proc/modules, the same */
	BROKER_KERNEL_FILES,
};

/* @name is its argv[0], @config_path what it opens as the configuration. Before there are threads. */
int broker_begin(const char *name, const char *config_path);
void broker_end(void);	/* and waits for it, not for ever */

bool broker_is_there(void);
pid_t broker_pid(void);	/* 0: there is none */
/* Readable, or hung up: it has ended. */
int broker_socket(void);

/* open(STACKTAP_DEVICE); *ret_info_error: of STACKTAP_IOC_INFO as the broker sees it. */
int broker_open_device(struct stacktap_info *ret_info, int *ret_info_error);
/* sideband_event_open() */
int broker_open_sideband(uint32_t cpu, uint64_t read_format);
/* event_try(), of generic and raw events; -EACCES of others */
int broker_try_event(const struct broker_event *event);
int broker_open_kernel(enum broker_kernel_file file);
int broker_open_config(void);
/* The content of a file that the configuration names for TLS, as a file of our own. */
int broker_read_secret(const char *path);
/* STACKTAP_IOC_MAPPINGS_SET */
int broker_set_mappings(int session, const struct stacktap_mappings_set *set);
/* helper_spawn() */
int broker_start_helper(uint32_t kind, int socket, pid_t *ret_pid);
/* record_start() */
int broker_start_record(const struct record_request *request, int output, int complaints, pid_t *ret_pid);

/* stat() and lstat(), of numbers and times alone. -errno */
int broker_stat(const char *path, struct stat *ret_stat);
int broker_lstat(const char *path, struct stat *ret_stat);
/* kill(pid, SIGKILL) and waitpid(pid, , WNOHANG), of a process that was started as above. */
void broker_kill(pid_t pid);
pid_t broker_wait(pid_t pid, int *ret_status);

#endif /* STACKTAP_BROKER_BROKER_H */
