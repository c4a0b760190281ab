/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef STACKTAP_KMOD_ALLOWANCE_H
#define STACKTAP_KMOD_ALLOWANCE_H

#include <linux/percpu.h>

#include <stacktap/allowance.h>

/* This CPU's only. An NMI in the midst of a change costs the exactness of a mean, nothing else. */
DECLARE_PER_CPU(struct allowance, st_allowance);
extern unsigned int st_allowance_limit_ns;

#endif /* STACKTAP_KMOD_ALLOWANCE_H */
