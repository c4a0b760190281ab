// SPDX-License-Identifier: GPL-2.0-only
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/cache.h>
#include <linux/delay.h>
#include <linux/init.h>
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/preempt.h>
#include <linux/printk.h>
#include <linux/spinlock.h>
#include <linux/time64.h>
#ifdef CONFIG_ARM64
#include <asm/arch_timer.h>
#endif

#include <stacktap/ticks.h>

#include "cost.h"

enum {
	COST_TRIES = 5,
	COST_TRY_US = 200,
};

u32 st_cost_tick_ns __ro_after_init;
u32 st_cost_longest_ticks __read_mostly;

static u32 cost_khz __ro_after_init;
static struct ticks_watch cost_watch;
static DEFINE_RAW_SPINLOCK(cost_watch_lock);	/* cost_watch */

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

/*
 * Does it go as fast as is said, by the kernel's clock? Of a few looks one is enough: an interrupt, or
 * a hypervisor, may come between the two clocks, and then they differ.
 */
static bool __init cost_rate_holds(u32 khz)
{
	unsigned int i;

	for (i = 0; i < COST_TRIES; i++) {
		u64 began, ns;
		u32 ticks;

		preempt_disable();
		ticks = cost_ticks();
		began = ktime_get_mono_fast_ns();
		udelay(COST_TRY_US);
		ticks = cost_ticks() - ticks;
		ns = ktime_get_mono_fast_ns() - began;
		preempt_enable();
		if (ticks_hold(ticks, ns, khz))
			return true;
	}
	return false;
}

static void cost_warn(void)
{
	pr_warn("the CPU's counter does not go at the %u kHz that the kernel says; every stretch is taken for %u us\n",
		cost_khz, COST_UNKNOWN_NS / 1000);
}

void st_cost_look(void)
{
	bool is_off;

	if (!raw_spin_trylock(&cost_watch_lock))
		return;
	/* by the raw clock, as NTP makes the other one go faster and slower */
	is_off = cost_is_known() && !ticks_watch(&cost_watch, raw_smp_processor_id(), get_cycles(),
						 ktime_get_raw_ns(), cost_khz);
	if (is_off)
		WRITE_ONCE(st_cost_longest_ticks, 0);
	raw_spin_unlock(&cost_watch_lock);
	if (is_off)
		cost_warn();
}

void __init st_cost_init(void)
{
	u64 rate = cost_ticks_per_second();

	/* slower than 1 MHz it would neither fit nor tell anything */
	if (rate < USEC_PER_SEC)
		return;
	cost_khz = div64_u64(rate, 1000);
	if (!cost_rate_holds(cost_khz)) {
		cost_warn();
		return;
	}
	st_cost_tick_ns = div64_u64((u64)NSEC_PER_SEC << COST_SHIFT, rate);
	st_cost_longest_ticks = min_t(u64, U32_MAX,
				      div64_u64(rate * COST_LONGEST_NS, NSEC_PER_SEC));
}
