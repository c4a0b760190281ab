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

	err = st_probe_init();
	if (err)
		return err;
	st_cost_init();
	st_hook_init();
	st_table_init();
	err = st_mappings_init();
	if (err)
		return err;
	st_defer_init();
	err = st_hotplug_init();
	if (err)
		goto err_defer;
	err = st_netlink_init();
	if (err)
		goto err_hotplug;
	err = st_device_init();
	if (err)
		goto err_netlink;
	pr_info("version %s, ABI %d.%d\n", STACKTAP_VERSION, STACKTAP_ABI_MAJOR,
		STACKTAP_ABI_MINOR);
	return 0;

err_netlink:
	st_netlink_exit();
err_hotplug:
	st_hotplug_exit();
err_defer:
	st_defer_exit();
	st_mappings_exit();
	return err;
}

static void __exit stacktap_exit(void)
{
	st_device_exit();
	st_netlink_exit();
	st_hotplug_exit();
	st_defer_exit();
	st_mappings_exit();
}

module_init(stacktap_init);
module_exit(stacktap_exit);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Continuous profiler: samples stacks from perf counter overflows");
MODULE_AUTHOR("The stacktap authors");
MODULE_VERSION(STACKTAP_VERSION);
/* no alias by the family's name: the kernel would load us for anybody who asks for it */
