/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What stands between this host and its profiles: one small check after the other, each with one
 * line on what it found and, where something is wrong, one on the remedy. Reads files alone and
 * changes nothing; runs without the module, without privilege and without a network.
 */
#ifndef STACKTAP_DOCTOR_DOCTOR_H
#define STACKTAP_DOCTOR_DOCTOR_H

#include "doctor/finding.h"
#include "doctor/input.h"

enum { DOCTOR_CHECKS = 18 };

struct doctor_report {
	struct doctor_finding findings[DOCTOR_CHECKS];
	size_t problems, warnings, unknown;
};

void doctor_look(const struct doctor_input *input, struct doctor_report *ret_report);
void doctor_report_done(struct doctor_report *report);
const char *doctor_state_name(enum doctor_state state);

#endif /* STACKTAP_DOCTOR_DOCTOR_H */
