// SPDX-License-Identifier: GPL-2.0-only
#include <linux/cpu.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/smp.h>
#include <linux/topology.h>

#include "cpu.h"
#include "quota.h"
#include "session.h"

int st_cpu_create(struct stacktap_session *session, unsigned int cpu, u32 data_bytes, u32 watermark,
		  struct stacktap_cpu **ret_cpu)
{
	struct stacktap_cpu *pc;
	unsigned int i;
	int err;

	pc = kzalloc_node(sizeof(*pc), GFP_KERNEL_ACCOUNT | __GFP_NORETRY | __GFP_NOWARN,
			  cpu_to_node(cpu));
	if (!pc)
		return -ENOMEM;
	err = st_quota_take(sizeof(*pc->memo));
	if (err)
		goto err_cpu;
	err = -ENOMEM;
	pc->memo = kvzalloc_node(sizeof(*pc->memo),
				 GFP_KERNEL_ACCOUNT | __GFP_NORETRY | __GFP_NOWARN,
				 cpu_to_node(cpu));
	if (!pc->memo)
		goto err_budget;
	err = st_ring_create(cpu, data_bytes, watermark, &pc->ring);
	if (err)
		goto err_memo;
	pc->session = session;
	pc->cpu = cpu;
	for (i = 0; i < STACKTAP_MAX_SOURCES; i++) {
		pc->counters[i].cpu = pc;
		pc->counters[i].index = i;
		counter_share_restart(&pc->counters[i]);
	}
	*ret_cpu = pc;
	return 0;

err_memo:
	kvfree(pc->memo);
err_budget:
	st_quota_return(sizeof(*pc->memo));
err_cpu:
	kfree(pc);
	return err;
}

void st_cpu_destroy(struct stacktap_cpu *cpu)
{
	if (!cpu)
		return;
	st_stash_destroy(cpu->stash);
	st_ring_destroy(cpu->ring);
	kvfree(cpu->memo);
	st_quota_return(sizeof(*cpu->memo));
	kfree(cpu);
}

struct cpu_call {
	struct stacktap_cpu *cpu;
	void (*fn)(struct stacktap_cpu *cpu, void *arg);
	void *arg;
};

static void cpu_call_run(void *data)
{
	struct cpu_call *call = data;

	call->fn(call->cpu, call->arg);
}

void st_cpu_call(struct stacktap_cpu *cpu, void (*fn)(struct stacktap_cpu *cpu, void *arg),
		 void *arg)
{
	struct cpu_call call = { .cpu = cpu, .fn = fn, .arg = arg };
	unsigned long flags;

	lockdep_assert_held(&cpu->session->lock);
	/* no CPU comes or goes until @fn is through */
	cpus_read_lock();
	/* an offline CPU finished its offline callback, so nothing there touches the ring */
	if (smp_call_function_single(cpu->cpu, cpu_call_run, &call, 1)) {
		local_irq_save(flags);
		fn(cpu, arg);
		local_irq_restore(flags);
	}
	cpus_read_unlock();
}
