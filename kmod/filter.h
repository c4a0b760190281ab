/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef STACKTAP_KMOD_FILTER_H
#define STACKTAP_KMOD_FILTER_H

#include <linux/cpumask.h>
#include <linux/ptrace.h>
#include <linux/stacktap.h>

/* Immutable once published. CPUs restrict where counters exist, the rest is asked per overflow. */
struct stacktap_filter {
	u32 flags;		/* STACKTAP_FILTER_* */
	bool has_cpus;
	cpumask_var_t cpus;
	u32 nr_tgids;
	u32 tgids[];		/* sorted */
};

/* @cpus: bitmap words or NULL; @tgids: unsorted, may be NULL. */
int filter_create(u32 flags, const u64 *cpus, unsigned int nr_words, const u32 *tgids,
		  unsigned int nr_tgids, struct stacktap_filter **ret_filter);
void filter_destroy(struct stacktap_filter *filter);

/* Safe in NMI. */
bool filter_pass(const struct stacktap_filter *filter, struct pt_regs *regs);

/* Is @cpu to be sampled? Without a CPU set, isolated and nohz_full CPUs are left alone. */
bool filter_wants_cpu(const struct stacktap_filter *filter, unsigned int cpu);

#endif /* STACKTAP_KMOD_FILTER_H */
