/* SPDX-License-Identifier: Apache-2.0 */
/* What the daemon and its broker give up, see helper/sandbox.h for what helpers do. */
#ifndef STACKTAP_SERVICE_CONFINE_H
#define STACKTAP_SERVICE_CONFINE_H

#include <stdbool.h>
#include <sys/types.h>

/*
 * The broker keeps what it, the helpers and `stacktap record' need, and all that these need of system calls: no module
 * is loaded any more, nothing mounted, no process traced. -errno: it may have kept more, and has to end. Not
 * *ret_is_filtered: the kernel does not filter system calls; with sanitizers, which need others, it is not asked to.
 */
int confine_broker(bool *ret_is_filtered);
bool confine_may_change_user(void);
bool confine_may_change_owner(void);
/* The daemon is @user from now on, with CAP_PERFMON if it had that, whatever it executes. -errno: it is neither, and has to end. */
int confine_daemon(uid_t user, gid_t group);
/* By what its threads need, and the process that shows recordings. False: the kernel does not filter, as above. */
bool confine_daemon_calls(void);

#endif /* STACKTAP_SERVICE_CONFINE_H */
