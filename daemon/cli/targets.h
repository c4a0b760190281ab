/* SPDX-License-Identifier: Apache-2.0 */
/* The processes and threads that -p and -t name: are there any left? */
#ifndef STACKTAP_CLI_TARGETS_H
#define STACKTAP_CLI_TARGETS_H

#include "client/filter.h"

struct target {
	uint32_t id;
	uint64_t start_time;	/* another task may get its id */
};

struct targets {
	struct target *processes, *threads;
	size_t process_count, thread_count;
};

/* Of @filter, which need not stay. One that is gone already counts as gone. -ENOMEM */
int targets_init(struct targets *ret_targets, const struct control_filter *filter);
void targets_done(struct targets *targets);
/*
 * True when the filter lets nothing through any more: all processes that it names have ended, or
 * all threads. False if it names none. What has ended is not looked at again.
 */
bool targets_are_gone(struct targets *targets);

#endif /* STACKTAP_CLI_TARGETS_H */
