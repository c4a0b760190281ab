// SPDX-License-Identifier: Apache-2.0
#include "doctor/doctor.h"

#include <stdarg.h>
#include <string.h>

#include "doctor/check.h"
#include "doctor/look.h"

static const struct {
	const char *name;
	void (*run)(struct doctor *doctor);
} checks[] = {
	{ "kernel", check_kernel },
	{ "headers", check_headers },
	{ "dkms", check_dkms },
	{ "module", check_module },
	{ "limits", check_limits },
	{ "secure-boot", check_secure_boot },
	{ "signature", check_signature },
	{ "lockdown", check_lockdown },
	{ "machine", check_machine },
	{ "pmu", check_pmu },
	{ "fallback", check_fallback },
	{ "nmi-watchdog", check_nmi_watchdog },
	{ "ibt", check_ibt },
	{ "privilege", check_privilege },
	{ "kernel-symbols", check_kernel_symbols },
	{ "cgroup", check_cgroup },
	{ "unwind-tables", check_unwind_tables },
	{ "delivery", check_delivery },
};

_Static_assert(ARRAY_SIZE(checks) == DOCTOR_CHECKS, "a finding for each check");

const char *doctor_state_name(enum doctor_state state)
{
	static const char *const names[] = {
		[DOCTOR_OK] = "ok",
		[DOCTOR_UNKNOWN] = "unknown",
		[DOCTOR_WARNING] = "warning",
		[DOCTOR_PROBLEM] = "problem",
	};

	return names[state];
}

void say(struct doctor *doctor, enum doctor_state state, const char *format, ...)
{
	struct doctor_finding *finding = doctor->finding;
	va_list args;

	finding->state = state;
	va_start(args, format);
	vsnprintf(finding->text, sizeof(finding->text), format, args);
	va_end(args);
}

void remedy(struct doctor *doctor, const char *format, ...)
{
	struct doctor_finding *finding = doctor->finding;
	va_list args;

	va_start(args, format);
	vsnprintf(finding->remedy, sizeof(finding->remedy), format, args);
	va_end(args);
}

void say_unknown(struct doctor *doctor, const char *what, int error)
{
	say(doctor, DOCTOR_UNKNOWN, "cannot see %s: %s", what, strerror(-error));
	if (error == -EACCES || error == -EPERM)
		remedy(doctor, "sudo stacktap doctor");
}

void doctor_look(const struct doctor_input *input, struct doctor_report *ret_report)
{
	struct doctor doctor = { .input = input, .root = input->root };
	struct doctor_report report = { 0 };
	_cleanup_free_ char *release = NULL;

	/* without /proc the checks say what they miss */
	if (look_text(input->root, "proc/sys/kernel/osrelease", &release) == 0)
		snprintf(doctor.release, sizeof(doctor.release), "%s", release);
	module_look(&doctor);
	trust_look(&doctor);
	counters_look(&doctor);
	for (size_t i = 0; i < ARRAY_SIZE(checks); i++) {
		doctor.finding = &report.findings[i];
		doctor.finding->name = checks[i].name;
		checks[i].run(&doctor);
		report.problems += doctor.finding->state == DOCTOR_PROBLEM;
		report.warnings += doctor.finding->state == DOCTOR_WARNING;
		report.unknown += doctor.finding->state == DOCTOR_UNKNOWN;
	}
	*ret_report = report;
}

void doctor_report_done(struct doctor_report *report)
{
	for (size_t i = 0; i < DOCTOR_CHECKS; i++)
		free(report->findings[i].log);
}
