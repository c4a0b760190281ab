/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much of a stretch of time a process waited for a CPU: a loaded host, or a quota of its control group (CPUQuota=), does that to
 * it, and not what it was asked.
 */
#ifndef STACKTAP_HELPER_CPU_WAIT_H
#define STACKTAP_HELPER_CPU_WAIT_H

#include <stdint.h>
#include <sys/types.h>

enum { CPU_WAIT_PERCENT = 100 };

struct cpu_wait {
	uint64_t began;			/* CLOCK_MONOTONIC ns; 0: nothing is known */
	uint64_t ran, waited;		/* by then, ns */
	uint64_t sleeps;		/* by then; UINT64_MAX: it slept right then, or nobody knows */
};

void cpu_wait_begin(struct cpu_wait *wait, pid_t pid);
/* Percent of the time since then in which it did not wait for a CPU; where nothing is known all. */
unsigned int cpu_wait_rest(const struct cpu_wait *wait, pid_t pid);

#endif /* STACKTAP_HELPER_CPU_WAIT_H */
