// SPDX-License-Identifier: GPL-2.0-only
/*
 * NMIs for the capture path on x86 without a PMU: a thread sends them to all CPUs, its own
 * included, every interval_us. Some coalesce on their way, so only what arrives is counted. A burst
 * comes while IRQs are off, so that nothing can be done about one before all have come. For guests
 * that nothing else sends NMIs: all of them are taken for ours.
 */
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/kernel.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/percpu.h>
#include <linux/sched.h>
#include <asm/apic.h>
#include <asm/nmi.h>

#include "inject.h"

static unsigned int interval_us;
module_param(interval_us, uint, 0644);
MODULE_PARM_DESC(interval_us, "pause between NMIs, 0 for none");

enum {
	NMI_MOST_BURST = 1000,
	NMI_ARRIVAL_US = 1000,	/* what one is waited for */
};

struct nmi_counts {
	u64 nmis, calls, recording, stashing;
};

static DEFINE_PER_CPU(struct nmi_counts, nmi_counts);
static struct task_struct *nmi_sender;

/* "NMIs calls calls-while-recording calls-while-stashing" */
static int counts_get(char *buffer, const struct kernel_param *param)
{
	struct nmi_counts sum = { 0 };
	unsigned int cpu;

	for_each_possible_cpu(cpu) {
		const struct nmi_counts *counts = per_cpu_ptr(&nmi_counts, cpu);

		sum.nmis += READ_ONCE(counts->nmis);
		sum.calls += READ_ONCE(counts->calls);
		sum.recording += READ_ONCE(counts->recording);
		sum.stashing += READ_ONCE(counts->stashing);
	}
	return sysfs_emit(buffer, "%llu %llu %llu %llu\n", sum.nmis, sum.calls, sum.recording,
			  sum.stashing);
}

static const struct kernel_param_ops counts_ops = { .get = counts_get };
module_param_cb(counts, &counts_ops, NULL, 0444);
MODULE_PARM_DESC(counts, "NMIs, calls of the handler, those that hit it recording and stashing");

static int burst_set(const char *text, const struct kernel_param *param)
{
	unsigned int wanted, us;
	unsigned long flags;
	u64 before;
	int err;

	err = kstrtouint(text, 0, &wanted);
	if (err)
		return err;
	if (wanted > NMI_MOST_BURST)
		return -ERANGE;
	local_irq_save(flags);
	for (; wanted; wanted--) {
		before = this_cpu_read(nmi_counts.nmis);
		apic->send_IPI(smp_processor_id(), NMI_VECTOR);
		for (us = 0; us < NMI_ARRIVAL_US && this_cpu_read(nmi_counts.nmis) == before; us++)
			udelay(1);
	}
	local_irq_restore(flags);
	return 0;
}

static const struct kernel_param_ops burst_ops = { .set = burst_set };
module_param_cb(burst, &burst_ops, NULL, 0200);
MODULE_PARM_DESC(burst, "so many NMIs to the CPU of whoever writes it, with IRQs off");

static int nmi_take(unsigned int reason, struct pt_regs *regs)
{
	struct nmi_counts *counts = this_cpu_ptr(&nmi_counts);
	struct stacktap_injection injection;

	stacktap_inject(regs, &injection);
	counts->nmis++;
	counts->calls += injection.calls;
	counts->recording += injection.recording;
	counts->stashing += injection.stashing;
	return NMI_HANDLED;
}

static int nmi_send(void *arg)
{
	unsigned int cpu, us;

	while (!kthread_should_stop()) {
		us = READ_ONCE(interval_us);
		if (!us) {
			msleep(20);
			continue;
		}
		/* a CPU does not go offline while another cannot be preempted */
		preempt_disable();
		for_each_online_cpu(cpu)
			apic->send_IPI(cpu, NMI_VECTOR);
		preempt_enable();
		usleep_range(us, us + us / 2);
	}
	return 0;
}

static int __init nmi_init(void)
{
	int err;

	err = register_nmi_handler(NMI_LOCAL, nmi_take, 0, "stacktap_nmi");
	if (err)
		return err;
	nmi_sender = kthread_run(nmi_send, NULL, "stacktap_nmi");
	if (IS_ERR(nmi_sender)) {
		unregister_nmi_handler(NMI_LOCAL, "stacktap_nmi");
		return PTR_ERR(nmi_sender);
	}
	/* all CPUs are busy; it sleeps most of the time */
	sched_set_fifo(nmi_sender);
	return 0;
}

static void __exit nmi_exit(void)
{
	kthread_stop(nmi_sender);
	/* what is on its way needs its handler */
	msleep(100);
	unregister_nmi_handler(NMI_LOCAL, "stacktap_nmi");
}

module_init(nmi_init);
module_exit(nmi_exit);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Drives stacktap's capture path from NMIs, for tests");
MODULE_AUTHOR("The stacktap authors");
