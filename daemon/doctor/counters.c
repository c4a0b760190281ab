// SPDX-License-Identifier: Apache-2.0
/* What the machine has to count with. */
#include <fnmatch.h>
#include <inttypes.h>
#include <string.h>

#include "client/name.h"
#include "doctor/check.h"
#include "doctor/look.h"

static const char pmu_directory[] = "sys/bus/event_source/devices";

static bool is_cpu_pmu(const char *name)
{
	static const char *const patterns[] = {
		"cpu", "cpu_core", "cpu_atom",	/* x86_64 */
		"armv*", "apple_*_pmu",		/* arm64: armv8_pmuv3, armv8_cortex_a72 ... */
	};

	for (size_t i = 0; i < ARRAY_SIZE(patterns); i++)
		if (!fnmatch(patterns[i], name, 0))
			return true;
	return false;
}

struct pmus {
	char names[160];
	size_t used;
};

static bool add_pmu(void *ctx, const char *name)
{
	struct pmus *pmus = ctx;

	if (is_cpu_pmu(name) && pmus->used < sizeof(pmus->names))
		pmus->used += (size_t)snprintf(pmus->names + pmus->used,
					       sizeof(pmus->names) - pmus->used, "%s%s",
					       pmus->used ? ", " : "", name);
	return true;
}

/* The vendor's and the product's name of a machine that another one makes up, or "". */
static void machine_name(const struct doctor *doctor, char *buffer, size_t size)
{
	static const char *const vendors[] = {
		"QEMU", "VMware", "Xen", "innotek", "Bochs", "Parallels", "Amazon EC2",
		"Google Compute", "KVM", "Virtual Machine", "OpenStack", "linux,dummy-virt",
	};
	static const char *const files[] = {
		"sys/class/dmi/id/sys_vendor", "sys/class/dmi/id/product_name",
		"proc/device-tree/compatible", "sys/hypervisor/type",
	};

	*buffer = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		_cleanup_free_ char *text = NULL;

		if (look_text(doctor->root, files[i], &text) < 0)
			continue;
		for (size_t j = 0; j < ARRAY_SIZE(vendors); j++)
			if (strcasestr(text, vendors[j])) {
				snprintf(buffer, size, "%s", text);
				return;
			}
	}
}

/* "flags" on x86, "Features" on arm64; of the first CPU, they are the same on all. */
static bool cpu_has(const struct doctor *doctor, const char *flag)
{
	_cleanup_free_ char *cpuinfo = NULL, *flags = NULL;

	return look_text(doctor->root, "proc/cpuinfo", &cpuinfo) == 0 &&
	       (look_field(cpuinfo, "flags", ':', &flags) == 0 ||
		look_field(cpuinfo, "Features", ':', &flags) == 0) &&
	       look_has_word(flags, flag);
}

void counters_look(struct doctor *doctor)
{
	struct pmus pmus = { 0 };
	char name[128];

	machine_name(doctor, name, sizeof(name));
	doctor->is_virtual = name[0] || cpu_has(doctor, "hypervisor");
	doctor->has_pmu = look_into(doctor->root, pmu_directory, add_pmu, &pmus) == 0 && pmus.used;
}

void check_machine(struct doctor *doctor)
{
	char name[128];

	if (!doctor->is_virtual) {
		say(doctor, DOCTOR_OK, "no hypervisor detected");
		return;
	}
	machine_name(doctor, name, sizeof(name));
	say(doctor, DOCTOR_OK, "virtual (%s), %s", name[0] ? name : "unknown hypervisor",
	    doctor->has_pmu ? "with a virtual PMU, which does not count while the host takes the CPU" :
			      "without a virtual PMU");
}

void check_pmu(struct doctor *doctor)
{
	struct pmus pmus = { 0 };
	int ret;

	ret = look_into(doctor->root, pmu_directory, add_pmu, &pmus);
	if (ret == -ENOENT) {
		say(doctor, DOCTOR_PROBLEM, "the kernel has no perf events (CONFIG_PERF_EVENTS), "
		    "or /sys is not mounted");
		remedy(doctor, "boot a kernel with CONFIG_PERF_EVENTS; mount -t sysfs sysfs /sys");
	} else if (ret < 0) {
		say_unknown(doctor, "the PMUs", ret);
	} else if (doctor->has_pmu) {
		say(doctor, DOCTOR_OK, "%s: samples on hardware events", pmus.names);
	} else {
		say(doctor, DOCTOR_WARNING, "none: cpu-clock is used (fallback), so IRQ-off "
		    "regions skid to where interrupts are re-enabled; hardware events cannot be "
		    "counted");
		remedy(doctor, doctor->is_virtual ?
			       "give the virtual machine a PMU (QEMU: -cpu host,pmu=on; VMware: "
			       "virtualize CPU performance counters)" :
			       "enable performance monitoring in the firmware; the kernel says why "
			       "there is none: dmesg | grep -i -e PMU -e perf");
	}
}

void check_fallback(struct doctor *doctor)
{
	const struct doctor_input *input = doctor->input;
	const struct doctor_fallback *first = &input->fallback;
	char more[48] = "";

	if (!input->module) {
		say(doctor, DOCTOR_UNKNOWN, "unknown: needs privilege and the loaded module");
		return;
	}
	if (!input->fallbacks) {
		say(doctor, DOCTOR_OK, "no session uses the fallback to cpu-clock");
		return;
	}
	if (input->fallbacks > 1)
		snprintf(more, sizeof(more), "; there are %zu such sources", input->fallbacks);
	say(doctor, DOCTOR_WARNING, "session %" PRIu64 " (%s): using cpu-clock for %s on %u CPU%s (fallback): "
	    "%s (%s)%s", first->session_id, first->owner, first->source, first->cpus,
	    first->cpus == 1 ? "" : "s", strerror((int)first->error), name_of_errno(first->error),
	    more);
	if (!doctor->has_pmu)
		remedy(doctor, "see the line pmu; `stacktap record -e cpu-clock' needs no PMU");
	else if (first->error == EBUSY || first->error == ENOSPC)
		remedy(doctor, "stop what holds the counters, such as perf stat or the NMI "
		       "watchdog (sysctl kernel.nmi_watchdog=0): the session gets them back within "
		       "about 64 s, or at once by stacktap stop and start %" PRIu64, first->session_id);
	else
		remedy(doctor, "ask for an event that these CPUs can sample, without modifiers first; "
		       "perf list names them");
}

void check_nmi_watchdog(struct doctor *doctor)
{
	int64_t value;
	int ret;

	ret = look_number(doctor->root, "proc/sys/kernel/nmi_watchdog", &value);
	if (ret == -ENOENT) {
		say(doctor, DOCTOR_OK, "this kernel has none");
	} else if (ret < 0) {
		say_unknown(doctor, "kernel.nmi_watchdog", ret);
	} else if (!value || !doctor->has_pmu) {
		say(doctor, DOCTOR_OK, "holds no counter");
	} else {
		say(doctor, DOCTOR_WARNING, "may hold one counter of each CPU: with many events, "
		    "some are counted part of the time");
		remedy(doctor, "sysctl kernel.nmi_watchdog=0 while you need all counters");
	}
}

void check_ibt(struct doctor *doctor)
{
	_cleanup_free_ char *cmdline = NULL;

	/* the module needs nothing for it: it calls exported functions alone */
	if (look_text(doctor->root, "proc/cmdline", &cmdline) == 0 &&
	    look_has_word(cmdline, "ibt=off"))
		say(doctor, DOCTOR_OK, "off (ibt=off); the module does not require that");
	else if (cpu_has(doctor, "ibt") || cpu_has(doctor, "bti"))
		say(doctor, DOCTOR_OK, "the CPU checks branch targets; the module works with that");
	else
		say(doctor, DOCTOR_OK, "the CPU does not check branch targets");
}
