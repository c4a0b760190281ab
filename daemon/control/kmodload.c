// SPDX-License-Identifier: Apache-2.0
#include "control/kmodload.h"

#include <libkmod.h>
#include <string.h>

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

static const char *remedy_of(int error)
{
	switch (error) {
	case -ENOENT:
		return "it is not built for this kernel: see `dkms status', install the kernel's "
		       "headers and run `dkms autoinstall'";
	case -EPERM:
		return "CAP_SYS_MODULE is missing, or loading modules is locked "
		       "(sysctl kernel.modules_disabled)";
	case -EKEYREJECTED:
	case -ENOKEY:
		return "its signature is not accepted: enrol the DKMS key (mokutil --import)";
	case -ENOEXEC:
		return "it was built for another kernel: run `dkms autoinstall'";
	default:
		return "see the kernel's log (dmesg)";
	}
}

bool kmodload_is_loaded(void)
{
	return access("/sys/module/stacktap", F_OK) == 0;
}

static int fail(int error, char *sentence, size_t size)
{
	snprintf(sentence, size, "cannot load the kernel module stacktap: %s; %s",
		 strerror(-error), remedy_of(error));
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
