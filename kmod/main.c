// SPDX-License-Identifier: GPL-2.0-only
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/module.h>
#include <linux/stacktap.h>
#include <stacktap/version.h>

#include "compat/untested.h"
#include "cost.h"
#include "defer.h"
#include "device.h"
#include "hook.h"
#include "hotplug.h"
#include "mappings.h"
#include "netlink.h"
#include "probe.h"
#include "table.h"

static int __init stacktap_init(void)
{
	int err;

	err = probe_init();
	if (err)
		return err;
	cost_init();
	hook_init();
	table_init();
	err = mappings_init();
	if (err)
		return err;
	defer_init();
	err = hotplug_init();
	if (err)
		goto err_defer;
	err = netlink_init();
	if (err)
		goto err_hotplug;
	err = device_init();
	if (err)
		goto err_netlink;
	pr_info("version %s, ABI %d.%d\n", STACKTAP_VERSION, STACKTAP_ABI_MAJOR,
		STACKTAP_ABI_MINOR);
	return 0;

err_netlink:
	netlink_exit();
err_hotplug:
	hotplug_exit();
err_defer:
	defer_exit();
	mappings_exit();
	return err;
}

static void __exit stacktap_exit(void)
{
	device_exit();
	netlink_exit();
	hotplug_exit();
	defer_exit();
	mappings_exit();
}

module_init(stacktap_init);
module_exit(stacktap_exit);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Continuous profiler: samples stacks from perf counter overflows");
MODULE_AUTHOR("The stacktap authors");
MODULE_VERSION(STACKTAP_VERSION);
/* no alias by the family's name: the kernel would load us for anybody who asks for it */
