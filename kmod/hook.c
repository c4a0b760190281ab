// SPDX-License-Identifier: GPL-2.0-only
#include <linux/cache.h>
#include <linux/kernel.h>
#include <linux/kprobes.h>

#include "compat/compat.h"
#include "hook.h"

unsigned long st_hook_trampolines[HOOK_TRAMPOLINES] __ro_after_init;

#ifdef CONFIG_KPROBES
/*
 * A probe that is never armed. The kernel looks its symbol up first and leaves the address there, also
 * where it then refuses to have that probed, as it does for most trampolines.
 */
static unsigned long __init hook_find(const char *name)
{
	struct kprobe probe = { .symbol_name = name, .flags = KPROBE_FLAG_DISABLED };
	int err = register_kprobe(&probe);
	unsigned long address = (unsigned long)probe.addr;

	if (!err)
		unregister_kprobe(&probe);
	return address;
}

void __init st_hook_init(void)
{
	static const char *const names[] __initconst = { COMPAT_TRAMPOLINES };
	unsigned int i, count = 0;

	BUILD_BUG_ON(ARRAY_SIZE(names) > HOOK_TRAMPOLINES);
	for (i = 0; i < ARRAY_SIZE(names); i++) {
		unsigned long address = hook_find(names[i]);

		if (address)
			st_hook_trampolines[count++] = address;
	}
}
#else
void __init st_hook_init(void)
{
}
#endif
