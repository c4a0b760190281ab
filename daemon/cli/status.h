/* SPDX-License-Identifier: Apache-2.0 */
/* What `stacktap status` has gathered, printed for people or as JSON. */
#ifndef STACKTAP_CLI_STATUS_H
#define STACKTAP_CLI_STATUS_H

#include "client/netlink.h"

struct status_session {
	struct control_session session;
	struct control_cpu *cpus;
	size_t cpu_count, cpu_capacity;
};

struct status {
	struct control_module module;
	struct status_session *sessions;
	size_t session_count;
	char *daemon_text, *daemon_json;	/* the daemon's own words, NULL: it does not run */
	size_t daemon_json_size;
	int daemon_error;			/* errno: there may be one that we cannot read */
};

uint64_t status_lost(const struct control_counts *counts);	/* all reasons */
uint64_t status_cost_count(const struct control_cost *cost);
/* What the times of a bucket are below, but for the last bucket's. */
static inline uint64_t status_cost_bound(unsigned int bucket)
{
	return UINT64_C(1) << (STACKTAP_TIME_SHIFT + bucket);
}
void status_print_text(const struct status *status);
void status_print_json(const struct status *status);

#endif /* STACKTAP_CLI_STATUS_H */
