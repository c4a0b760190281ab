// SPDX-License-Identifier: GPL-2.0-only
#include <linux/cache.h>
#include <linux/kernel.h>
#include <linux/kprobes.h>
#include <linux/string.h>

#include "compat/compat.h"
#include "hook.h"

struct hook_trampoline st_hook_trampolines[HOOK_TRAMPOLINES] __ro_after_init;
unsigned long st_hook_graph __ro_after_init;
unsigned long st_hook_graph_bytes __ro_after_init;

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

/* Of the function that starts there, by what kallsyms says of it: return_to_handler+0x0/0x31. */
static unsigned long __init hook_bytes(unsigned long address)
{
	unsigned long bytes;
	char text[64], *size;

	snprintf(text, sizeof(text), "%pS", (void *)address);
	size = strchr(text, '/');
	return size && sscanf(size, "/%lx", &bytes) == 1 ? bytes : 0;
}

void __init st_hook_init(void)
{
	static const char *const names[] __initconst = {
		COMPAT_GRAPH_TRAMPOLINE, COMPAT_TRAMPOLINES
	};
	unsigned int i, count = 0;

	BUILD_BUG_ON(ARRAY_SIZE(names) > HOOK_TRAMPOLINES);
	for (i = 0; i < ARRAY_SIZE(names); i++) {
		struct hook_trampoline found = { .start = hook_find(names[i]) };

		if (!found.start)
			continue;
		found.bytes = hook_bytes(found.start);
		st_hook_trampolines[count++] = found;
		if (!i) {
			st_hook_graph = found.start;
			st_hook_graph_bytes = found.bytes;
		}
	}
}
#else
void __init st_hook_init(void)
{
}
#endif
