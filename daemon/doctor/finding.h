/* SPDX-License-Identifier: Apache-2.0 */
/* What one check found, and the remedy. */
#ifndef STACKTAP_DOCTOR_FINDING_H
#define STACKTAP_DOCTOR_FINDING_H

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

#endif /* STACKTAP_DOCTOR_FINDING_H */
