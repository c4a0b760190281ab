// SPDX-License-Identifier: GPL-2.0-only
#include <linux/cgroup.h>
#include <linux/cred.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uidgid.h>

#include "compat/compat.h"
#include "filter.h"
#include "idset.h"

int st_filter_create(struct stacktap_filter **ret_filter)
{
	struct stacktap_filter *filter = kzalloc(sizeof(*filter), GFP_KERNEL_ACCOUNT);

	if (!filter)
		return -ENOMEM;
	if (!zalloc_cpumask_var(&filter->cpus, GFP_KERNEL_ACCOUNT)) {
		kfree(filter);
		return -ENOMEM;
	}
	*ret_filter = filter;
	return 0;
}

void st_filter_destroy(struct stacktap_filter *filter)
{
	unsigned int i;

	if (!filter)
		return;
	for (i = 0; i < filter->nr_cgroups; i++)
		cgroup_put(filter->cgroups[i]);
	st_idset_destroy(filter->uids);
	st_idset_destroy(filter->tids);
	st_idset_destroy(filter->tgids);
	free_cpumask_var(filter->cpus);
	kfree(filter);
}

void st_filter_set_cpus(struct stacktap_filter *filter, const u64 *words, unsigned int nr_words)
{
	unsigned int cpu;

	filter->has_cpus = true;
	for_each_possible_cpu(cpu)
		if (cpu / 64 < nr_words && words[cpu / 64] >> cpu % 64 & 1)
			cpumask_set_cpu(cpu, filter->cpus);
}

void st_filter_add_cgroup(struct stacktap_filter *filter, struct cgroup *cgroup)
{
	filter->cgroups[filter->nr_cgroups++] = cgroup;
}

size_t st_filter_bytes(const struct stacktap_filter *filter)
{
	return sizeof(*filter) + cpumask_size() + idset_bytes(filter->tgids) +
	       idset_bytes(filter->tids) + idset_bytes(filter->uids);
}

/*
 * The owner as ps and /proc have it: real_cred, not cred, which a task that acts for another swaps
 * for a while, access() even for one that is freed without a grace period. real_cred is changed by
 * the task itself alone and freed after a grace period, and RCU waits for overflow handlers.
 */
static u32 filter_uid(void)
{
	const struct cred *cred = rcu_dereference_raw(current->real_cred);

	return __kuid_val(cred->euid);
}

static bool filter_has_comm(const struct stacktap_filter *filter)
{
	union {
		u64 words[FILTER_COMM_WORDS];
		char text[STACKTAP_COMM_LEN];
	} comm;
	size_t len;
	u32 i;

	/* a rename may be half done: then it is neither the old name nor the new one */
	memcpy(comm.text, current->comm, sizeof(comm.text));
	/* what an older, longer name left behind the end is not part of it */
	len = strnlen(comm.text, sizeof(comm.text) - 1);
	memset(comm.text + len, 0, sizeof(comm.text) - len);
	for (i = 0; i < filter->nr_comms; i++)
		if (filter->comms[i][0] == comm.words[0] && filter->comms[i][1] == comm.words[1])
			return true;
	return false;
}

static_assert(FILTER_COMM_WORDS == 2);
static_assert(STACKTAP_COMM_LEN == (int)TASK_COMM_LEN);

/* The task's own is kept by its css_set, which RCU waits with for us; the filter's we hold. */
static bool filter_has_cgroup(const struct stacktap_filter *filter)
{
	struct cgroup *cgroup = task_dfl_cgroup(current);
	u32 i;

	for (i = 0; i < filter->nr_cgroups; i++)
		if (cgroup_is_descendant(cgroup, filter->cgroups[i]))
			return true;
	return false;
}

bool st_filter_pass(const struct stacktap_filter *filter, struct pt_regs *regs)
{
	if (filter->flags & STACKTAP_FILTER_USER_ONLY && !user_mode(regs))
		return false;
	if (filter->flags & STACKTAP_FILTER_KERNEL_ONLY && user_mode(regs))
		return false;
	if (filter->flags & STACKTAP_FILTER_EXCLUDE_IDLE && is_idle_task(current))
		return false;
	if (filter->tgids && !idset_has(filter->tgids, current->tgid))
		return false;
	if (filter->tids && !idset_has(filter->tids, current->pid))
		return false;
	if (filter->uids && !idset_has(filter->uids, filter_uid()))
		return false;
	if (filter->nr_cgroups && !filter_has_cgroup(filter))
		return false;
	return !filter->nr_comms || filter_has_comm(filter);
}

bool st_filter_wants_cpu(const struct stacktap_filter *filter, unsigned int cpu)
{
	if (filter && filter->has_cpus)
		return cpumask_test_cpu(cpu, filter->cpus);
	return housekeeping_test_cpu(cpu, HK_TYPE_DOMAIN_BOOT) &&
	       housekeeping_test_cpu(cpu, HK_TYPE_TICK);
}
