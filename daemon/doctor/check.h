/* SPDX-License-Identifier: Apache-2.0 */
/* What the checks share: facts that more than one of them asks for, and how they say something. */
#ifndef STACKTAP_DOCTOR_CHECK_H
#define STACKTAP_DOCTOR_CHECK_H

#include <limits.h>

#include "doctor/finding.h"
#include "doctor/input.h"

enum doctor_lockdown {
	LOCKDOWN_UNKNOWN,
	LOCKDOWN_NONE,
	LOCKDOWN_INTEGRITY,
	LOCKDOWN_CONFIDENTIALITY,
};

struct doctor {
	const struct doctor_input *input;
	const char *root;
	struct doctor_finding *finding;	/* of the check that runs */

	char release[65];		/* of the running kernel */
	bool is_loaded, has_headers, has_pmu, is_virtual;
	enum doctor_lockdown lockdown;
	/* the module file for the running kernel */
	char file[PATH_MAX];		/* below the root; empty: there is none */
	int file_error;			/* why the rest is not known, -errno */
	char file_version[32], file_release[65], signer[128];
	bool is_signed, is_blacklisted;
};

void say(struct doctor *doctor, enum doctor_state state, const char *format, ...) _printf_(3, 4);
void remedy(struct doctor *doctor, const char *format, ...) _printf_(2, 3);
/* For what cannot be looked at; @error is why, -errno. */
void say_unknown(struct doctor *doctor, const char *what, int error);

/* What the facts above are read from; each knows only its own. */
void module_look(struct doctor *doctor);
void trust_look(struct doctor *doctor);
void counters_look(struct doctor *doctor);

void check_kernel(struct doctor *doctor);
void check_headers(struct doctor *doctor);
void check_dkms(struct doctor *doctor);

void check_module(struct doctor *doctor);
void check_limits(struct doctor *doctor);

void check_secure_boot(struct doctor *doctor);
void check_signature(struct doctor *doctor);
void check_lockdown(struct doctor *doctor);

void check_pmu(struct doctor *doctor);
void check_fallback(struct doctor *doctor);
void check_nmi_watchdog(struct doctor *doctor);
void check_machine(struct doctor *doctor);
void check_ibt(struct doctor *doctor);

void check_privilege(struct doctor *doctor);
void check_kernel_symbols(struct doctor *doctor);
void check_cgroup(struct doctor *doctor);

void check_unwind_tables(struct doctor *doctor);
void check_delivery(struct doctor *doctor);

#endif /* STACKTAP_DOCTOR_CHECK_H */
