/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What of all tasks is sampled: values of one kind are alternatives, the kinds are all demanded.
 * Built from what people write; netlink.h sends it and reads it back.
 */
#ifndef STACKTAP_CLIENT_FILTER_H
#define STACKTAP_CLIENT_FILTER_H

#include <linux/stacktap.h>

#include "base/macro.h"

struct control_filter {
	uint64_t *cpus;			/* bitmap, NULL: all; as the others */
	size_t cpu_words;
	uint32_t *tgids, *tids, *uids;
	size_t tgid_count, tid_count, uid_count;
	char (*comms)[STACKTAP_COMM_LEN]; /* zero behind the name */
	size_t comm_count;
	int *cgroup_fds;		/* owned; to be sent, never read back */
	size_t cgroup_fd_count;
	uint64_t *cgroups;		/* ids: those in force, or which of them to keep */
	size_t cgroup_count;
	uint32_t flags;			/* STACKTAP_FILTER_* */
	uint32_t bytes;			/* of the module's memory; read only */
	bool is_partial;		/* tgids, tids and uids were left out; read only */
};
void control_filter_done(struct control_filter *filter);
bool control_filter_is_empty(const struct control_filter *filter);
/* Does it take a module with STACKTAP_FEATURE_TASK_FILTERS? */
bool control_filter_is_by_task(const struct control_filter *filter);

/*
 * Add from a list with commas; blanks around a word are no part of it. 0, -EINVAL for what can never
 * be right, or another -errno; then @error has a sentence.
 */
int control_filter_add_users(struct control_filter *filter, const char *text, char *error,
			     size_t error_size);
int control_filter_add_comms(struct control_filter *filter, const char *text, char *error,
			     size_t error_size);
/* Paths of directories, or as /proc/PID/cgroup has them. */
int control_filter_add_cgroups(struct control_filter *filter, const char *text, char *error,
			       size_t error_size);

/* Its path as /proc/PID/cgroup has it; -errno when it was removed or may not be seen. */
int control_cgroup_path(uint64_t id, char *ret_path, size_t size);

#endif /* STACKTAP_CLIENT_FILTER_H */
