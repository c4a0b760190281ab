// SPDX-License-Identifier: Apache-2.0
#include "client/kmodload.h"

#include <libkmod.h>
#include <limits.h>
#include <string.h>

#include "base/file.h"

static const char module_name[] = "stacktap";

static void free_ctx(struct kmod_ctx **ctx)
{
	if (*ctx)
		kmod_unref(*ctx);
}

static void free_list(struct kmod_list **list)
{
	kmod_module_unref_list(*list);
}

const char *kmodload_certificate(const char *root)
{
	/* Ubuntu's, and that of everybody else's dkms */
	static const char *const certificates[] = {
		"/var/lib/shim-signed/mok/MOK.der",
		"/var/lib/dkms/mok.pub",
	};
	char path[PATH_MAX];

	for (size_t i = 0; i < ARRAY_SIZE(certificates); i++) {
		snprintf(path, sizeof(path), "%s%s", root, certificates[i]);
		/* where it is closed to us it is there */
		if (access(path, F_OK) == 0 || errno == EACCES)
			return certificates[i];
	}
	return NULL;
}

static void write_enrolment(const char *root, char *buffer, size_t size)
{
	const char *certificate = kmodload_certificate(root);

	if (certificate)
		snprintf(buffer, size, "mokutil --import %s, reboot and enrol it", certificate);
	else
		snprintf(buffer, size, "there is no key to enrol yet, see docs/secure-boot.md");
}

/* Does lockdown ask for signatures? That is EPERM, too. */
static bool is_locked_down(const char *root)
{
	_cleanup_free_ char *text = NULL;
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/sys/kernel/security/lockdown", root);
	return file_read(AT_FDCWD, path, 256, &text, NULL) == 0 && !strstr(text, "[none]");
}

static void write_remedy(const char *root, int error, char *buffer, size_t size)
{
	static const char locked[] = "CAP_SYS_MODULE is missing, or loading modules is locked "
				     "(sysctl kernel.modules_disabled)";
	char enrolment[128];

	write_enrolment(root, enrolment, sizeof(enrolment));
	switch (error) {
	case -ENOENT:
		snprintf(buffer, size, "it is not built for this kernel: see `dkms status', "
			 "install the kernel's headers and run `dkms autoinstall'");
		break;
	case -EPERM:
		if (is_locked_down(root))
			snprintf(buffer, size, "lockdown (Secure Boot) refuses it unless a key "
				 "that is enrolled signed it: %s, `stacktap doctor' knows more; or "
				 "%s", enrolment, locked);
		else
			snprintf(buffer, size, "%s", locked);
		break;
	case -EKEYREJECTED:
	case -ENOKEY:
		snprintf(buffer, size, "it is not signed, or by a key that is not enrolled: "
			 "%s; `stacktap doctor' tells which", enrolment);
		break;
	case -ENOEXEC:
		snprintf(buffer, size, "it was built for another kernel: run `dkms autoinstall'");
		break;
	default:
		snprintf(buffer, size, "see the kernel's log (dmesg)");
		break;
	}
}

void kmodload_explain(const char *root, int error, char *sentence, size_t size)
{
	char text[384];

	write_remedy(root, error, text, sizeof(text));
	snprintf(sentence, size, "cannot load the kernel module stacktap: %s; %s", strerror(-error),
		 text);
}

bool kmodload_is_loaded(void)
{
	return access("/sys/module/stacktap", F_OK) == 0;
}

static int fail(int error, char *sentence, size_t size)
{
	kmodload_explain("", error, sentence, size);
	return error;
}

int kmodload_load(char *error, size_t error_size)
{
	_cleanup_(free_ctx) struct kmod_ctx *ctx = NULL;
	_cleanup_(free_list) struct kmod_list *list = NULL;
	struct kmod_list *item;
	int ret;

	if (kmodload_is_loaded())
		return 0;
	ctx = kmod_new(NULL, NULL);
	if (!ctx)
		return fail(-ENOMEM, error, error_size);
	/* libkmod would write to stderr what the caller gets as a sentence */
	kmod_set_log_priority(ctx, 0);
	ret = kmod_module_new_from_lookup(ctx, module_name, &list);
	if (!ret && !list)
		ret = -ENOENT;
	if (ret < 0)
		return fail(ret, error, error_size);
	kmod_list_foreach(item, list) {
		struct kmod_module *module = kmod_module_get_module(item);

		ret = kmod_module_probe_insert_module(module, KMOD_PROBE_APPLY_BLACKLIST, NULL,
						      NULL, NULL, NULL);
		kmod_module_unref(module);
		if (ret == KMOD_PROBE_APPLY_BLACKLIST) {
			snprintf(error, error_size, "the kernel module stacktap is blacklisted: "
				 "remove it from /etc/modprobe.d or load it by hand");
			return -EPERM;
		}
		if (ret < 0)
			return fail(ret, error, error_size);
	}
	return 0;
}
