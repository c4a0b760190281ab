// SPDX-License-Identifier: Apache-2.0
/* What the caller may do, and what the kernel's settings ask of it. */
#include <linux/capability.h>
#include <string.h>

#include "doctor/check.h"
#include "doctor/look.h"

/* younger than some C libraries' kernel headers */
#ifndef CAP_PERFMON
#define CAP_PERFMON 38
#endif

static const char paranoid_file[] = "proc/sys/kernel/perf_event_paranoid";

struct rights {
	bool is_admin, is_perfmon, is_ptrace, is_syslog;
	bool is_contained;		/* capabilities count in a user namespace only */
};

static int rights_read(const struct doctor *doctor, struct rights *ret_rights)
{
	_cleanup_free_ char *status = NULL, *effective = NULL, *map = NULL;
	unsigned int inside, outside, count;
	uint64_t bits;
	int ret;

	ret = look_text(doctor->root, "proc/self/status", &status);
	if (!ret)
		ret = look_field(status, "CapEff", ':', &effective);
	if (ret)
		return ret;
	bits = strtoull(effective, NULL, 16);
	*ret_rights = (struct rights){
		.is_admin = bits >> CAP_SYS_ADMIN & 1,
		.is_perfmon = bits >> CAP_PERFMON & 1,
		.is_syslog = bits >> CAP_SYSLOG & 1,
		.is_ptrace = bits >> CAP_SYS_PTRACE & 1,
	};
	/* the initial namespace maps every id to itself */
	if (look_text(doctor->root, "proc/self/uid_map", &map) == 0)
		ret_rights->is_contained =
			sscanf(map, "%u %u %u", &inside, &outside, &count) != 3 || inside ||
			outside || count != UINT32_MAX;
	return 0;
}

void check_privilege(struct doctor *doctor)
{
	struct rights rights;
	int64_t paranoid;
	int ret;

	ret = rights_read(doctor, &rights);
	if (ret < 0) {
		say_unknown(doctor, "this process's capabilities", ret);
		return;
	}
	ret = look_number(doctor->root, paranoid_file, &paranoid);
	if (ret < 0) {
		say(doctor, DOCTOR_PROBLEM, "there is no kernel.perf_event_paranoid: a kernel "
		    "without CONFIG_PERF_EVENTS, or a sandbox that hides it");
		remedy(doctor, "boot a kernel with CONFIG_PERF_EVENTS, run it outside the sandbox");
	} else if (rights.is_contained) {
		say(doctor, DOCTOR_PROBLEM, "capabilities in a user namespace do not count");
		remedy(doctor, "run it on the host itself");
	} else if ((rights.is_admin || (rights.is_perfmon && paranoid <= 2)) && !rights.is_ptrace) {
		say(doctor, DOCTOR_WARNING, "no CAP_SYS_PTRACE: no unwind tables, user stacks are walked by "
		    "frame pointers");
		remedy(doctor, "run stacktap with sudo");
	} else if (rights.is_admin) {
		say(doctor, DOCTOR_OK, "CAP_SYS_ADMIN, enough to sample, whatever "
		    "kernel.perf_event_paranoid says (%lld)", (long long)paranoid);
	} else if (!rights.is_perfmon) {
		say(doctor, DOCTOR_PROBLEM, "neither CAP_PERFMON nor CAP_SYS_ADMIN, "
		    "kernel.perf_event_paranoid is %lld", (long long)paranoid);
		remedy(doctor, "run stacktap with sudo");
	} else if (paranoid > 2) {
		say(doctor, DOCTOR_PROBLEM, "CAP_PERFMON, but kernel.perf_event_paranoid is %lld, "
		    "which requires CAP_SYS_ADMIN", (long long)paranoid);
		remedy(doctor, "run stacktap with sudo, or sysctl kernel.perf_event_paranoid=2");
	} else {
		say(doctor, DOCTOR_OK, "CAP_PERFMON, enough for all but `stacktap events' while "
		    "kernel.perf_event_paranoid is below 3 (%lld)", (long long)paranoid);
	}
}

void check_kernel_symbols(struct doctor *doctor)
{
	int64_t restrict_level, paranoid = 2;
	struct rights rights;
	int ret;

	ret = look_number(doctor->root, "proc/sys/kernel/kptr_restrict", &restrict_level);
	if (!ret)
		ret = rights_read(doctor, &rights);
	if (ret < 0) {
		say_unknown(doctor, "kernel.kptr_restrict", ret);
		return;
	}
	/* where it cannot be read perf is not for this process either */
	if (look_number(doctor->root, paranoid_file, &paranoid) < 0)
		paranoid = INT64_MAX;
	if (restrict_level >= 2) {
		say(doctor, DOCTOR_WARNING, "kernel.kptr_restrict is %lld: functions of the kernel "
		    "have no names", (long long)restrict_level);
		remedy(doctor, "sysctl kernel.kptr_restrict=1");
	} else if ((rights.is_syslog && !rights.is_contained) ||
		   (!restrict_level && paranoid <= 1)) {
		say(doctor, DOCTOR_OK, "readable (kernel.kptr_restrict is %lld)",
		    (long long)restrict_level);
	} else {
		say(doctor, DOCTOR_WARNING, "hidden without CAP_SYSLOG (kernel.kptr_restrict is "
		    "%lld): functions of the kernel have no names",
		    (long long)restrict_level);
		remedy(doctor, "run stacktap with sudo");
	}
}

void check_cgroup(struct doctor *doctor)
{
	if (look_for(doctor->root, "sys/fs/cgroup/cgroup.controllers") == 0) {
		say(doctor, DOCTOR_OK, "version 2");
	} else if (look_for(doctor->root, "sys/fs/cgroup/unified/cgroup.controllers") == 0) {
		say(doctor, DOCTOR_OK, "version 1 with a unified hierarchy beside it");
	} else if (look_for(doctor->root, "sys/fs/cgroup/memory") == 0 ||
		   look_for(doctor->root, "sys/fs/cgroup/cpu") == 0) {
		say(doctor, DOCTOR_WARNING, "version 1: containers are named, but samples carry no "
		    "cgroup");
		remedy(doctor, "boot with systemd.unified_cgroup_hierarchy=1");
	} else {
		say(doctor, DOCTOR_UNKNOWN, "unknown: /sys/fs/cgroup is not mounted");
	}
}
