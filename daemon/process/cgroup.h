/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the path of a process' cgroup says of it: container, Kubernetes' pod, systemd's unit.
 */
#ifndef STACKTAP_PROCESS_CGROUP_H
#define STACKTAP_PROCESS_CGROUP_H

#include "base/macro.h"

enum {
	CGROUP_ID_BYTES = 65,
	CGROUP_POD_BYTES = 37,
	CGROUP_UNIT_BYTES = 256,
	CGROUP_LINE_BYTES = 513,
};

/* An empty text is none. */
struct cgroup_facts {
	char container_id[CGROUP_ID_BYTES];	/* the innermost */
	char container_name[CGROUP_ID_BYTES];	/* of an LXC or systemd-nspawn machine, which is its id as well */
	char pod_uid[CGROUP_POD_BYTES];		/* UUID with dashes, or the 32 digits of a static pod */
	const char *pod_qos;			/* Guaranteed, Burstable, BestEffort; NULL */
	char line[CGROUP_LINE_BYTES];		/* that all of this is from; none of the root, nor a longer one */
	char unit[CGROUP_UNIT_BYTES];		/* the innermost service or scope in that container, or on the host */
};

/* Of the text of /proc/PID/cgroup, v1, v2 or both: the line that knows a container, else the longest path. */
void cgroup_read(const char *text, struct cgroup_facts *ret_facts);
/*
 * The service that a unit stands for: its name without ".service". False for what runs many services or
 * none: scopes, service managers of users, machines.
 */
bool cgroup_unit_service(const char *unit, char *ret_service, size_t size);

#endif /* STACKTAP_PROCESS_CGROUP_H */
