// SPDX-License-Identifier: GPL-2.0-only
#include <linux/cache.h>
#include <linux/kernel.h>
#include <linux/moduleparam.h>

#include "allowance.h"

enum {
	/* far above what makes sense on any CPU but an emulated one, and its products fit 32 bits */
	ALLOWANCE_MAX_NS = 1000000,
};

unsigned int st_allowance_limit_ns __read_mostly = ALLOWANCE_DEFAULT_NS;
DEFINE_PER_CPU(struct allowance, st_allowance);

static int allowance_param_set(const char *text, const struct kernel_param *param)
{
	unsigned int ns;
	int err = kstrtouint(text, 0, &ns);

	if (err)
		return err;
	if (ns > ALLOWANCE_MAX_NS)
		return -ERANGE;
	WRITE_ONCE(st_allowance_limit_ns, ns);
	return 0;
}

static const struct kernel_param_ops allowance_param_ops = {
	.set = allowance_param_set,
	.get = param_get_uint,
};

module_param_cb(in_place_ns, &allowance_param_ops, &st_allowance_limit_ns, 0644);
MODULE_PARM_DESC(in_place_ns,
		 "mean time of a CPU's PMU interrupts up to which they walk user stacks themselves, in ns; 0: never");
__MODULE_PARM_TYPE(in_place_ns, "uint");
