// SPDX-License-Identifier: GPL-2.0-only
#include <linux/cache.h>
#include <linux/init.h>
#include <linux/math64.h>
#include <linux/time64.h>
#ifdef CONFIG_ARM64
#include <asm/arch_timer.h>
#endif

#include "cost.h"

u32 st_cost_tick_ns __ro_after_init;

static u64 __init cost_ticks_per_second(void)
{
#ifdef CONFIG_X86_64
	/* before 2008 it went as fast as the CPU did at the time; what a hypervisor shows does not */
	if (!boot_cpu_has(X86_FEATURE_CONSTANT_TSC) && !boot_cpu_has(X86_FEATURE_HYPERVISOR))
		return 0;
	return tsc_khz * 1000ULL;
#else
	return arch_timer_get_cntfrq();
#endif
}

void __init st_cost_init(void)
{
	u64 rate = cost_ticks_per_second();

	/* slower than 1 MHz it would neither fit nor tell anything */
	if (rate >= USEC_PER_SEC)
		st_cost_tick_ns = div64_u64((u64)NSEC_PER_SEC << COST_SHIFT, rate);
}
