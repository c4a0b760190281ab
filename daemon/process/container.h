/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which container a process is in, by the name that runtimes give its cgroup.
 */
#ifndef STACKTAP_PROCESS_CONTAINER_H
#define STACKTAP_PROCESS_CONTAINER_H

#include "base/macro.h"

/*
 * The innermost container id in the text of /proc/PID/cgroup: 64 hex digits as Docker, containerd,
 * CRI-O and Podman use, 32 and a number as ECS does, or the name of an LXC or systemd-nspawn machine. -ENOENT: in no container.
 */
int container_id_from_cgroup(const char *text, char ret_id[static 65]);

#endif /* STACKTAP_PROCESS_CONTAINER_H */
