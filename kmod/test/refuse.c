// SPDX-License-Identifier: GPL-2.0-only
/*
 * perf refuses the kernel's own counters, but for cpu-clock, with whatever error a test likes, as it does
 * while another user has the PMU for itself. What perf is asked for becomes a type that no PMU has, and its
 * answer becomes that error.
 */
#include <linux/atomic.h>
#include <linux/err.h>
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/perf_event.h>
#include <linux/ptrace.h>

enum {
	REFUSE_TYPE = 0x7fffffff,
	REFUSE_AT_ONCE = 64,
};

static unsigned int error;
module_param(error, uint, 0644);
MODULE_PARM_DESC(error, "errno that perf refuses counters with; 0: it does not");

static atomic_t refuse_cycles, refuse_others;

static int counts_get(char *buffer, const struct kernel_param *param)
{
	return sysfs_emit(buffer, "%d %d\n", atomic_read(&refuse_cycles),
			  atomic_read(&refuse_others));
}

static const struct kernel_param_ops counts_ops = { .get = counts_get };
module_param_cb(counts, &counts_ops, NULL, 0444);
MODULE_PARM_DESC(counts, "how often that was: cycles, everything else");

static int refuse_enter(struct kretprobe_instance *instance, struct pt_regs *regs)
{
	struct perf_event_attr *attr = (void *)regs_get_kernel_argument(regs, 0);
	unsigned int *refused = (void *)instance->data;

	*refused = READ_ONCE(error);
	if (!*refused)
		return 0;
	if (attr->type == PERF_TYPE_SOFTWARE && attr->config == PERF_COUNT_SW_CPU_CLOCK) {
		*refused = 0;
		return 0;
	}
	if (attr->type == PERF_TYPE_HARDWARE && attr->config == PERF_COUNT_HW_CPU_CYCLES)
		atomic_inc(&refuse_cycles);
	else
		atomic_inc(&refuse_others);
	attr->type = REFUSE_TYPE;
	return 0;
}

static int refuse_return(struct kretprobe_instance *instance, struct pt_regs *regs)
{
	unsigned int refused = *(unsigned int *)instance->data;

	if (refused && IS_ERR_VALUE(regs_return_value(regs)))
		regs_set_return_value(regs, -(long)refused);
	return 0;
}

static struct kretprobe refuse_probe = {
	.kp.symbol_name = "perf_event_create_kernel_counter",
	.entry_handler = refuse_enter,
	.handler = refuse_return,
	.data_size = sizeof(unsigned int),
	.maxactive = REFUSE_AT_ONCE,
};

static int __init refuse_init(void)
{
	return register_kretprobe(&refuse_probe);
}

static void __exit refuse_exit(void)
{
	unregister_kretprobe(&refuse_probe);
}

module_init(refuse_init);
module_exit(refuse_exit);
MODULE_DESCRIPTION("perf refuses counters, for tests of stacktap");
MODULE_LICENSE("GPL");
