// SPDX-License-Identifier: Apache-2.0
/* Whether the module can be built for the running kernel, and what DKMS made of it. */
#include <string.h>

#include "doctor/check.h"
#include "doctor/look.h"

enum { LOG_LINES = 12 };

struct kernel_version {
	unsigned int major, minor;
};

static bool parse(const char *text, struct kernel_version *ret_version)
{
	return sscanf(text, "%u.%u", &ret_version->major, &ret_version->minor) == 2;
}

static bool is_older(const struct kernel_version *a, const struct kernel_version *b)
{
	return a->major < b->major || (a->major == b->major && a->minor < b->minor);
}

/* Red Hat's and those that follow it, such as 5.14.0-427.el9.x86_64; ELRepo's are kernel.org's. */
static bool has_backports(const char *release)
{
	const char *el = strstr(release, ".el");

	return el && el[3] >= '0' && el[3] <= '9' && !strstr(release, ".elrepo");
}

void check_kernel(struct doctor *doctor)
{
	struct kernel_version running, oldest, newest;

	/* what packaging/kernels reads from the module's own header */
	parse(STACKTAP_KERNEL_MIN, &oldest);
	parse(STACKTAP_KERNEL_TESTED, &newest);
	if (!parse(doctor->release, &running)) {
		say_unknown(doctor, "the kernel's version", -ENOENT);
	} else if (is_older(&running, &oldest)) {
		say(doctor, DOCTOR_PROBLEM, "%s is older than %s, the oldest that the module can be "
		    "built for", doctor->release, STACKTAP_KERNEL_MIN);
		remedy(doctor, "boot a newer kernel");
	} else if (is_older(&newest, &running)) {
		say(doctor, DOCTOR_WARNING, "%s is newer than %s, the newest that this version was "
		    "tested with", doctor->release, STACKTAP_KERNEL_TESTED);
		remedy(doctor, "look for a newer version of stacktap");
	} else if (has_backports(doctor->release) && doctor->is_loaded) {
		say(doctor, DOCTOR_OK, "%s; of %s to %s only Debian's kernels are tested",
		    doctor->release, STACKTAP_KERNEL_MIN, STACKTAP_KERNEL_TESTED);
	} else if (has_backports(doctor->release)) {
		say(doctor, DOCTOR_WARNING, "%s; of %s to %s only Debian's kernels are tested: "
		    "with what this one has from newer kernels the module may not compile",
		    doctor->release, STACKTAP_KERNEL_MIN, STACKTAP_KERNEL_TESTED);
		remedy(doctor, "if it does not, report the end of DKMS's make.log; a kernel "
		       "without backports, such as ELRepo's kernel-lt, is closer to what is tested");
	} else {
		say(doctor, DOCTOR_OK, "%s, tested are %s to %s", doctor->release,
		    STACKTAP_KERNEL_MIN, STACKTAP_KERNEL_TESTED);
	}
}

/* Is the distribution, or one that it descends from, one of @names? */
static bool is_distribution(const struct doctor *doctor, const char *const *names, size_t count)
{
	_cleanup_free_ char *text = NULL, *id = NULL, *like = NULL;
	char words[256];

	if (look_text(doctor->root, "etc/os-release", &text) < 0)
		return false;
	look_field(text, "ID", '=', &id);
	look_field(text, "ID_LIKE", '=', &like);
	snprintf(words, sizeof(words), "%s %s", id ? id : "", like ? like : "");
	for (char *c = words; *c; c++)
		if (*c == '"' || *c == '\'')
			*c = ' ';
	for (size_t i = 0; i < count; i++)
		if (look_has_word(words, names[i]))
			return true;
	return false;
}

void check_headers(struct doctor *doctor)
{
	static const char *const debian[] = { "debian", "ubuntu" };
	static const char *const red_hat[] = { "rhel", "fedora", "centos" };
	bool is_needed = !doctor->is_loaded && !doctor->file[0];

	if (doctor->has_headers) {
		say(doctor, DOCTOR_OK, "there for %s", doctor->release);
		return;
	}
	say(doctor, is_needed ? DOCTOR_PROBLEM : DOCTOR_WARNING, "missing for %s: %s",
	    doctor->release, is_needed ? "the module cannot be built" :
	    "the module is there, but its next version cannot be built");
	if (is_distribution(doctor, debian, ARRAY_SIZE(debian)))
		remedy(doctor, "apt install linux-headers-%s", doctor->release);
	else if (is_distribution(doctor, red_hat, ARRAY_SIZE(red_hat)))
		remedy(doctor, "dnf install kernel-devel-%s", doctor->release);
	else
		remedy(doctor, "install what the module build of %s needs, so that "
		       "/lib/modules/%s/build is there", doctor->release, doctor->release);
}

static const char dkms_directory[] = "var/lib/dkms/stacktap";

enum dkms_state {
	DKMS_ADDED,
	DKMS_FAILED,
	DKMS_BUILT,
};

struct dkms {
	const struct doctor *doctor;
	bool is_installed;		/* some version, for this kernel */
	enum dkms_state state;
	char version[64];		/* that got farthest; empty: there is none */
	char *log;			/* of the build that failed */
};

/*
 * From the compiler's first error on, or else the last lines: behind what matters make and dkms say a
 * lot. For a reader who will look at the whole where it says more.
 */
static char *part_of(const char *text)
{
	const char *from = strstr(text, "error:"), *to = text + strlen(text);
	char *part;
	int lines = 0;

	if (from) {
		while (from > text && from[-1] != '\n')
			from--;
		for (to = from; *to; to++)
			if (*to == '\n' && ++lines == LOG_LINES)
				break;
	} else {
		for (from = to; from > text; from--)
			if (from[-1] == '\n' && ++lines == LOG_LINES)
				break;
	}
	return asprintf(&part, "%.*s\n", (int)(to - from), from) < 0 ? NULL : part;
}

/*
 * Its first line is "DKMS make.log for stacktap-0.1.0 for kernel RELEASE (ARCH)"; since dkms 3.1.5
 * its own version is behind DKMS, and a slash before the module's.
 */
static bool is_log_of(const char *log, const char *release)
{
	static const char before[] = " for kernel ";
	size_t length = strlen(release);
	const char *line_end = strchrnul(log, '\n'), *kernel = strstr(log, before);

	if (!kernel || kernel > line_end)
		return false;
	kernel += strlen(before);
	return !strncmp(kernel, release, length) && strchr(" \n", kernel[length]);
}

static void take(struct dkms *dkms, const char *version, enum dkms_state state)
{
	if (dkms->version[0] && state < dkms->state)
		return;
	snprintf(dkms->version, sizeof(dkms->version), "%s", version);
	dkms->state = state;
}

/*
 * VERSION/ of what was added, VERSION/RELEASE/ of what was built, kernel-RELEASE-ARCH for what is
 * installed; VERSION/build/make.log stays when a build fails, and names the kernel.
 */
static bool add_entry(void *ctx, const char *name)
{
	struct dkms *dkms = ctx;
	const struct doctor *doctor = dkms->doctor;
	_cleanup_free_ char *log = NULL;
	char path[PATH_MAX], installed[80];

	snprintf(installed, sizeof(installed), "kernel-%s-", doctor->release);
	if (!strncmp(name, installed, strlen(installed))) {
		dkms->is_installed = true;
		return true;
	}
	if (name[0] < '0' || name[0] > '9')
		return true;
	snprintf(path, sizeof(path), "%s/%s/%s", dkms_directory, name, doctor->release);
	if (look_for(doctor->root, path) == 0) {
		take(dkms, name, DKMS_BUILT);
		return true;
	}
	snprintf(path, sizeof(path), "%s/%s/build/make.log", dkms_directory, name);
	if (look_text(doctor->root, path, &log) == 0 && is_log_of(log, doctor->release)) {
		take(dkms, name, DKMS_FAILED);
		free(dkms->log);
		dkms->log = part_of(log);
		return true;
	}
	take(dkms, name, DKMS_ADDED);
	return true;
}

void check_dkms(struct doctor *doctor)
{
	struct dkms dkms = { .doctor = doctor };
	/* what is loaded works without it */
	enum doctor_state bad = doctor->is_loaded || doctor->file[0] ? DOCTOR_WARNING :
								      DOCTOR_PROBLEM;
	int ret;

	ret = look_into(doctor->root, dkms_directory, add_entry, &dkms);
	if (ret < 0 && ret != -ENOENT) {
		say_unknown(doctor, "/var/lib/dkms/stacktap", ret);
	} else if (dkms.is_installed) {
		say(doctor, DOCTOR_OK, "installed for %s", doctor->release);
	} else if (!dkms.version[0] && bad == DOCTOR_WARNING) {
		say(doctor, DOCTOR_OK, "does not manage the module");
	} else if (!dkms.version[0]) {
		say(doctor, DOCTOR_PROBLEM, "does not know stacktap");
		remedy(doctor, "install the package stacktap-dkms, or `make install' from the "
		       "sources");
	} else if (dkms.state == DKMS_BUILT) {
		say(doctor, bad, "version %s is built for %s, but not installed", dkms.version,
		    doctor->release);
		remedy(doctor, "dkms install stacktap/%s -k %s", dkms.version, doctor->release);
	} else if (dkms.state == DKMS_FAILED) {
		say(doctor, bad, "building version %s for %s failed; the end of "
		    "/var/lib/dkms/stacktap/%s/build/make.log:", dkms.version, doctor->release,
		    dkms.version);
		remedy(doctor, "%smend what the log says, then dkms install stacktap/%s -k %s",
		       doctor->has_headers ? "" : "install the headers, ", dkms.version,
		       doctor->release);
		doctor->finding->log = steal_ptr(dkms.log);
	} else {
		say(doctor, bad, "version %s is added, but not built for %s", dkms.version,
		    doctor->release);
		remedy(doctor, "%sdkms install stacktap/%s -k %s", doctor->has_headers ? "" :
		       "install the headers, then ", dkms.version, doctor->release);
	}
	free(dkms.log);
}
