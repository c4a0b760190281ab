// SPDX-License-Identifier: GPL-2.0-only
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/sort.h>

#include "compat/compat.h"
#include "filter.h"

static int filter_compare(const void *a, const void *b)
{
	u32 x = *(const u32 *)a, y = *(const u32 *)b;

	return x < y ? -1 : x > y;
}

int filter_create(u32 flags, const u64 *cpus, unsigned int nr_words, const u32 *tgids,
		  unsigned int nr_tgids, struct stacktap_filter **ret_filter)
{
	struct stacktap_filter *filter;
	unsigned int cpu;

	filter = kvzalloc(struct_size(filter, tgids, nr_tgids), GFP_KERNEL_ACCOUNT);
	if (!filter)
		return -ENOMEM;
	if (!zalloc_cpumask_var(&filter->cpus, GFP_KERNEL_ACCOUNT)) {
		kvfree(filter);
		return -ENOMEM;
	}

	filter->flags = flags;
	filter->has_cpus = cpus;
	if (cpus)
		for_each_possible_cpu(cpu)
			if (cpu / 64 < nr_words && cpus[cpu / 64] >> cpu % 64 & 1)
				cpumask_set_cpu(cpu, filter->cpus);
	filter->nr_tgids = nr_tgids;
	if (nr_tgids)
		memcpy(filter->tgids, tgids, nr_tgids * sizeof(*tgids));
	sort(filter->tgids, nr_tgids, sizeof(*filter->tgids), filter_compare, NULL);
	*ret_filter = filter;
	return 0;
}

void filter_destroy(struct stacktap_filter *filter)
{
	if (!filter)
		return;
	free_cpumask_var(filter->cpus);
	kvfree(filter);
}

static bool filter_has_tgid(const struct stacktap_filter *filter, u32 tgid)
{
	u32 low = 0, high = filter->nr_tgids;

	while (low < high) {
		u32 middle = (low + high) / 2;

		if (filter->tgids[middle] < tgid)
			low = middle + 1;
		else
			high = middle;
	}
	return low < filter->nr_tgids && filter->tgids[low] == tgid;
}

bool filter_pass(const struct stacktap_filter *filter, struct pt_regs *regs)
{
	if (filter->flags & STACKTAP_FILTER_USER_ONLY && !user_mode(regs))
		return false;
	if (filter->flags & STACKTAP_FILTER_KERNEL_ONLY && user_mode(regs))
		return false;
	if (filter->flags & STACKTAP_FILTER_EXCLUDE_IDLE && is_idle_task(current))
		return false;
	return !filter->nr_tgids || filter_has_tgid(filter, current->tgid);
}

bool filter_wants_cpu(const struct stacktap_filter *filter, unsigned int cpu)
{
	if (filter && filter->has_cpus)
		return cpumask_test_cpu(cpu, filter->cpus);
	return housekeeping_test_cpu(cpu, HK_TYPE_DOMAIN) &&
	       housekeeping_test_cpu(cpu, HK_TYPE_TICK);
}
