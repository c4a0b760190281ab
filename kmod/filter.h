/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef STACKTAP_KMOD_FILTER_H
#define STACKTAP_KMOD_FILTER_H

#include <linux/cpumask.h>
#include <linux/ptrace.h>
#include <linux/stacktap.h>

struct cgroup;
struct idset;

enum { FILTER_COMM_WORDS = STACKTAP_COMM_LEN / sizeof(u64) };

/*
 * What is to be sampled: all of the kinds that are given, of each any of its values. Immutable once
 * published. CPUs restrict where counters exist, the rest is asked per overflow.
 */
struct stacktap_filter {
	u32 flags;		/* STACKTAP_FILTER_* */
	bool has_cpus;
	cpumask_var_t cpus;
	struct idset *tgids;	/* NULL: any; as the next two */
	struct idset *tids;
	struct idset *uids;	/* effective ones, of the initial user namespace */
	u32 nr_comms;
	u32 nr_cgroups;
	u64 comms[STACKTAP_MAX_COMMS][FILTER_COMM_WORDS]; /* zero from their end on */
	struct cgroup *cgroups[STACKTAP_MAX_CGROUPS]; /* a reference each */
};

/* One that lets everything pass, to be filled in by the next ones and by hand. */
int st_filter_create(struct stacktap_filter **ret_filter);
void st_filter_destroy(struct stacktap_filter *filter);
/* @words: a bitmap. */
void st_filter_set_cpus(struct stacktap_filter *filter, const u64 *words, unsigned int nr_words);
/* Takes over the reference to @cgroup; there has to be room. */
void st_filter_add_cgroup(struct stacktap_filter *filter, struct cgroup *cgroup);
size_t st_filter_bytes(const struct stacktap_filter *filter);

/* Of the task that runs. Safe in NMI; no locks, and a bounded number of steps. */
bool st_filter_pass(const struct stacktap_filter *filter, struct pt_regs *regs);

/* Is @cpu to be sampled? Without a CPU set, isolated and nohz_full CPUs are left alone. */
bool st_filter_wants_cpu(const struct stacktap_filter *filter, unsigned int cpu);

#endif /* STACKTAP_KMOD_FILTER_H */
