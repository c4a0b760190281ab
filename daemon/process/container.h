/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which container a component of a cgroup's path is, by the name that runtimes give it.
 */
#ifndef STACKTAP_PROCESS_CONTAINER_H
#define STACKTAP_PROCESS_CONTAINER_H

#include "base/macro.h"

enum container_form {
	CONTAINER_NONE,
	/* 64 hex digits as Docker, containerd, CRI-O and Podman use, 32 and a number as ECS does */
	CONTAINER_ID,
	CONTAINER_MACHINE,	/* the name of an LXC or systemd-nspawn machine */
};

/* @is_in_lxc: the component before it is "lxc". */
enum container_form container_of_component(const char *component, size_t length, bool is_in_lxc,
					   char ret_id[static 65]);

#endif /* STACKTAP_PROCESS_CONTAINER_H */
