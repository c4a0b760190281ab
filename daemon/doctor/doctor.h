/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What stands between this host and its profiles: one small check after the other, each with one
 * line on what it found and, where something is wrong, one on the remedy. Reads files alone and
 * changes nothing; runs without the module, without privilege and without a network.
 */
#ifndef STACKTAP_DOCTOR_DOCTOR_H
#define STACKTAP_DOCTOR_DOCTOR_H

#include "client/netlink.h"

enum doctor_state {
	DOCTOR_OK,
	DOCTOR_UNKNOWN,		/* could not be looked at */
	DOCTOR_WARNING,		/* stacktap works, but less well */
	DOCTOR_PROBLEM,		/* keeps stacktap from working */
};

struct doctor_finding {
	const char *name;
	enum doctor_state state;
	char text[320];
	char remedy[320];	/* empty: nothing to be done */
	char *log;		/* last lines of a build log, each with its newline, or NULL */
};

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
};

enum { DOCTOR_CHECKS = 16 };

struct doctor_report {
	struct doctor_finding findings[DOCTOR_CHECKS];
	size_t problems, warnings, unknown;
};

void doctor_look(const struct doctor_input *input, struct doctor_report *ret_report);
void doctor_report_done(struct doctor_report *report);
const char *doctor_state_name(enum doctor_state state);

#endif /* STACKTAP_DOCTOR_DOCTOR_H */
