/* SPDX-License-Identifier: Apache-2.0 */
/* What the checks are told, as no file says it: what the module answered, and where to look. */
#ifndef STACKTAP_DOCTOR_INPUT_H
#define STACKTAP_DOCTOR_INPUT_H

#include "client/netlink.h"

/* A source of a session that runs, which cpu-clock stands in for. */
struct doctor_fallback {
	uint64_t session_id;
	char owner[STACKTAP_COMM_LEN], source[STACKTAP_NAME_LEN];
	uint32_t cpus, error;		/* a positive errno */
};

struct doctor_input {
	const char *root;	/* in front of every path; "" */
	/* what the module said of itself, NULL: it did not answer, for @module_error (-errno) */
	const struct control_module *module;
	int module_error;
	uint64_t ring_bytes;	/* rings and stashes of all sessions */
	struct doctor_fallback fallback; /* the first of @fallbacks */
	size_t fallbacks;
	/* what the daemon says of itself; NULL: none runs, or, @status_error not 0, it cannot be read */
	const char *status;
	int status_error;
};

#endif /* STACKTAP_DOCTOR_INPUT_H */
