// SPDX-License-Identifier: Apache-2.0
/* The module: its file, the module that is loaded, and what it has left to give. */
#include <inttypes.h>
#include <libkmod.h>
#include <string.h>

#include "client/kmodload.h"
#include "doctor/check.h"
#include "doctor/look.h"

enum {
	NEARLY_FULL = 90,	/* percent */
	RING_FRACTION = 8,	/* of the memory, where ring_limit_mib is 0 */
};

static void free_ctx(struct kmod_ctx **ctx)
{
	if (*ctx)
		kmod_unref(*ctx);
}

static void free_module(struct kmod_module **module)
{
	if (*module)
		kmod_module_unref(*module);
}

static void free_info(struct kmod_list **list)
{
	kmod_module_info_free_list(*list);
}

/* "updates/dkms/stacktap.ko.xz: dependencies", a line of modules.dep */
static bool find_file(const char *dep, char *buffer, size_t size)
{
	for (const char *line = dep; *line;) {
		size_t bytes = strcspn(line, "\n"), length = strcspn(line, ":\n");
		const char *name = memrchr(line, '/', length);

		name = name ? name + 1 : line;
		if (!strncmp(name, "stacktap.ko", strlen("stacktap.ko")) && length < size) {
			memcpy(buffer, line, length);
			buffer[length] = '\0';
			return true;
		}
		line += bytes + (line[bytes] == '\n');
	}
	return false;
}

static void copy(char *buffer, size_t size, const char *text)
{
	snprintf(buffer, size, "%.*s", (int)strcspn(text, " "), text);
}

static int read_info(struct doctor *doctor, struct kmod_ctx *ctx, const char *path)
{
	_cleanup_(free_module) struct kmod_module *module = NULL;
	_cleanup_(free_info) struct kmod_list *info = NULL;
	struct kmod_list *item;
	int ret;

	ret = kmod_module_new_from_path(ctx, path, &module);
	if (!ret)
		ret = kmod_module_get_info(module, &info);
	if (ret < 0)
		return ret;
	kmod_list_foreach(item, info) {
		const char *key = kmod_module_info_get_key(item);
		const char *value = kmod_module_info_get_value(item);

		if (!strcmp(key, "version"))
			copy(doctor->file_version, sizeof(doctor->file_version), value);
		else if (!strcmp(key, "vermagic"))
			copy(doctor->file_release, sizeof(doctor->file_release), value);
		else if (!strcmp(key, "signer"))
			snprintf(doctor->signer, sizeof(doctor->signer), "%s", value);
		else if (!strcmp(key, "sig_id"))
			doctor->is_signed = true;
	}
	return 0;
}

static bool is_blacklisted(struct kmod_ctx *ctx)
{
	struct kmod_config_iter *iter = kmod_config_get_blacklists(ctx);
	bool found = false;

	while (iter && !found && kmod_config_iter_next(iter))
		found = !strcmp(kmod_config_iter_get_key(iter), "stacktap");
	if (iter)
		kmod_config_iter_free_iter(iter);
	return found;
}

void module_look(struct doctor *doctor)
{
	static const char *const directories[] = { "run", "etc", "usr/local/lib", "usr/lib", "lib" };
	char paths[ARRAY_SIZE(directories)][PATH_MAX], relative[PATH_MAX];
	const char *config[ARRAY_SIZE(directories) + 1] = { NULL };
	_cleanup_(free_ctx) struct kmod_ctx *ctx = NULL;
	_cleanup_free_ char *dep = NULL;
	char path[2 * PATH_MAX];

	doctor->is_loaded = look_for(doctor->root, "sys/module/stacktap") == 0;
	snprintf(relative, sizeof(relative), "lib/modules/%s/build/Makefile", doctor->release);
	doctor->has_headers = look_for(doctor->root, relative) == 0;
	for (size_t i = 0; i < ARRAY_SIZE(directories); i++) {
		snprintf(paths[i], sizeof(paths[i]), "%s/%s/modprobe.d", doctor->root,
			 directories[i]);
		config[i] = paths[i];
	}
	snprintf(relative, sizeof(relative), "lib/modules/%s/modules.dep", doctor->release);
	doctor->file_error = look_text(doctor->root, relative, &dep);
	ctx = kmod_new(NULL, config);
	if (!ctx) {
		doctor->file_error = -ENOMEM;
		return;
	}
	kmod_set_log_priority(ctx, 0);
	doctor->is_blacklisted = is_blacklisted(ctx);
	if (doctor->file_error ||
	    !find_file(dep, doctor->file, sizeof(doctor->file)))
		return;
	snprintf(path, sizeof(path), "%s/lib/modules/%s/%s", doctor->root, doctor->release,
		 doctor->file);
	doctor->file_error = read_info(doctor, ctx, path);
}

static void check_loaded(struct doctor *doctor)
{
	const struct control_module *module = doctor->input->module;
	_cleanup_free_ char *version = NULL;
	int error = doctor->input->module_error;

	if (look_text(doctor->root, "sys/module/stacktap/version", &version) < 0)
		version = strdup("unknown");
	if (!version) {
		say_unknown(doctor, "the module", -ENOMEM);
	} else if (!module && error == -ENODEV) {
		say(doctor, DOCTOR_PROBLEM, "loaded, but not visible in this network namespace");
		remedy(doctor, "run stacktap on the host itself");
	} else if (!module && (error == -EPERM || error == -EACCES)) {
		say(doctor, DOCTOR_UNKNOWN, "loaded, version %s; only privileged callers can read "
		    "its ABI", version);
		remedy(doctor, "sudo stacktap doctor");
	} else if (!module) {
		say(doctor, DOCTOR_PROBLEM, "loaded, version %s, but does not answer: %s", version,
		    strerror(-error));
		remedy(doctor, "%s", KMODLOAD_RELOAD);
	} else if (module->abi_major != STACKTAP_ABI_MAJOR) {
		say(doctor, DOCTOR_PROBLEM, "loaded, version %s, speaks ABI %u.%u, this program "
		    "speaks %u.%u", version, module->abi_major, module->abi_minor,
		    STACKTAP_ABI_MAJOR, STACKTAP_ABI_MINOR);
		remedy(doctor, "install both from one version, then %s", KMODLOAD_RELOAD);
	} else if (doctor->file_version[0] && strcmp(doctor->file_version, version) != 0) {
		say(doctor, DOCTOR_WARNING, "loaded, version %s, but the one on disk is %s", version,
		    doctor->file_version);
		remedy(doctor, "%s", KMODLOAD_RELOAD);
	} else {
		say(doctor, DOCTOR_OK, "loaded, version %s, ABI %u.%u", version, module->abi_major,
		    module->abi_minor);
	}
}

void check_module(struct doctor *doctor)
{
	int64_t disabled = 0;

	if (doctor->is_loaded) {
		check_loaded(doctor);
	} else if (look_number(doctor->root, "proc/sys/kernel/modules_disabled", &disabled) == 0 &&
		   disabled) {
		say(doctor, DOCTOR_PROBLEM, "not loaded, and kernel.modules_disabled forbids it");
		remedy(doctor, "reboot; /etc/modules-load.d/stacktap.conf loads it before that is "
		       "set");
	} else if (!doctor->file[0] && doctor->file_error && doctor->file_error != -ENOENT) {
		say_unknown(doctor, "the modules of this kernel", doctor->file_error);
	} else if (!doctor->file[0]) {
		say(doctor, DOCTOR_PROBLEM, "there is none for this kernel");
		remedy(doctor, "%s`dkms autoinstall', or install the package stacktap-dkms",
		       doctor->has_headers ? "" : "first the headers, then ");
	} else if (doctor->is_blacklisted) {
		say(doctor, DOCTOR_PROBLEM, "not loaded, and blacklisted");
		remedy(doctor, "remove `blacklist stacktap' from /etc/modprobe.d and the kernel's "
		       "command line");
	} else if (doctor->file_error) {
		say_unknown(doctor, doctor->file, doctor->file_error);
	} else if (strcmp(doctor->file_release, doctor->release) != 0) {
		say(doctor, DOCTOR_PROBLEM, "%s was built for kernel %s", doctor->file,
		    doctor->file_release);
		remedy(doctor, "dkms autoinstall");
	} else {
		say(doctor, DOCTOR_WARNING, "not loaded; %s, version %s, is installed",
		    doctor->file, doctor->file_version);
		remedy(doctor, "modprobe stacktap (stacktapd does that itself)");
	}
}

/* What the module grants all rings together, 0: unknown. */
static uint64_t ring_limit(const struct doctor *doctor)
{
	_cleanup_free_ char *meminfo = NULL, *total = NULL;
	int64_t mib;

	if (look_number(doctor->root, "sys/module/stacktap/parameters/ring_limit_mib", &mib) < 0)
		return 0;
	if (mib)
		return (uint64_t)mib << 20;
	if (look_text(doctor->root, "proc/meminfo", &meminfo) < 0 ||
	    look_field(meminfo, "MemTotal", ':', &total) < 0)
		return 0;
	return strtoull(total, NULL, 10) * 1024 / RING_FRACTION;
}

static unsigned int percent(uint64_t part, uint64_t whole)
{
	return whole ? (unsigned int)(100.0 * (double)part / (double)whole) : 0;
}

static const char *ceiling_text(const struct control_module *module, char *ret_text, size_t size)
{
	if (!module->has_ceiling)
		return "";
	snprintf(ret_text, size, ", at most %u.%u %% of each CPU", module->ceiling_permille / 10,
		 module->ceiling_permille % 10);
	return ret_text;
}

void check_limits(struct doctor *doctor)
{
	const struct control_module *module = doctor->input->module;
	unsigned int tables, rings;
	char ceiling[48];

	if (!module) {
		say(doctor, DOCTOR_UNKNOWN, "unknown: needs privilege and the loaded module");
		return;
	}
	tables = percent(module->table_bytes + module->list_bytes, module->table_limit);
	rings = percent(doctor->input->ring_bytes, ring_limit(doctor));
	if (module->sessions >= STACKTAP_MAX_SESSIONS) {
		say(doctor, DOCTOR_PROBLEM, "all %u sessions are in use", STACKTAP_MAX_SESSIONS);
		remedy(doctor, "end a program that owns one; stacktap status names them");
	} else if (rings >= NEARLY_FULL) {
		say(doctor, DOCTOR_WARNING, "%u %% of the memory for rings is taken: another "
		    "session may be refused", rings);
		remedy(doctor, "end a session, or give the module a larger ring_limit_mib");
	} else if (tables >= NEARLY_FULL) {
		say(doctor, DOCTOR_WARNING, "%u %% of the memory for unwind tables is taken: what "
		    "does not fit is walked by frame pointers", tables);
		remedy(doctor, "give the module a larger table_limit_mib");
	} else if (module->has_ceiling && !module->ceiling_permille) {
		say(doctor, DOCTOR_WARNING, "the module's CPU time has no ceiling");
		remedy(doctor, "echo 10 >/sys/module/stacktap/parameters/ceiling_permille, which is 1 %%");
	} else {
		say(doctor, DOCTOR_OK, "%u of %u sessions, %u %% of the memory for rings, %u %% of "
		    "that for unwind tables%s", module->sessions, STACKTAP_MAX_SESSIONS, rings, tables,
		    ceiling_text(module, ceiling, sizeof(ceiling)));
	}
}
