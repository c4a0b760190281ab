// SPDX-License-Identifier: GPL-2.0-only
#include <linux/kernel.h>
#include <linux/ktime.h>
#include <linux/lockdep.h>
#include <linux/moduleparam.h>
#include <linux/percpu.h>

#include "ceiling.h"
#include "session.h"

enum { CEILING_DEFAULT = 10 };

static unsigned int ceiling_wanted = CEILING_DEFAULT;
/* read without lock: a mixture of two ceilings' halves holds for one look */
static struct ceiling_rate ceiling_host = {
	.scale = (CEILING_WHOLE_CPU << CEILING_SHIFT) / CEILING_DEFAULT,
	.tolerance = (u64)CEILING_BURST_NS * CEILING_WHOLE_CPU / CEILING_DEFAULT,
};

static DEFINE_PER_CPU(local64_t, ceiling_horizon);

static void rate_set(struct ceiling_rate *rate, u32 permille)
{
	struct ceiling_rate wanted = ceiling_rate(permille);

	WRITE_ONCE(rate->scale, wanted.scale);
	WRITE_ONCE(rate->tolerance, wanted.tolerance);
}

static int ceiling_param_set(const char *text, const struct kernel_param *param)
{
	unsigned int permille;
	int err = kstrtouint(text, 0, &permille);

	if (err)
		return err;
	if (permille > CEILING_WHOLE_CPU)
		return -ERANGE;
	WRITE_ONCE(ceiling_wanted, permille);
	rate_set(&ceiling_host, permille);
	return 0;
}

static const struct kernel_param_ops ceiling_param_ops = {
	.set = ceiling_param_set,
	.get = param_get_uint,
};

module_param_cb(ceiling_permille, &ceiling_param_ops, &ceiling_wanted, 0644);
MODULE_PARM_DESC(ceiling_permille,
		 "share of each CPU that all sessions together may take, in permille; 0: no ceiling");
__MODULE_PARM_TYPE(ceiling_permille, "uint");

/*
 * An NMI may move the horizon between any two of these: what it adds is never overwritten, and a
 * horizon that it has brought up to now needs nothing more.
 */
static __always_inline enum ceiling_level
horizon_look(local64_t *horizon, const struct ceiling_rate *rate, u64 now)
{
	u64 tolerance = READ_ONCE(rate->tolerance);
	s64 was = local64_read(horizon), ahead = was - (s64)now;

	if (!tolerance)
		return CEILING_WHOLE;
	if (ahead < 0) {
		local64_cmpxchg(horizon, was, now);
		return CEILING_WHOLE;
	}
	/* of an hour ago, when the ceiling was lower */
	if (unlikely(ahead > (s64)(2 * tolerance)))
		local64_cmpxchg(horizon, was, now + 2 * tolerance);
	return ceiling_level(ahead, tolerance);
}

enum ceiling_level st_ceiling_look(struct stacktap_cpu *cpu, u64 now)
{
	enum ceiling_level host = horizon_look(this_cpu_ptr(&ceiling_horizon), &ceiling_host, now);
	const struct ceiling_rate *own = &cpu->session->ceiling;

	if (likely(!READ_ONCE(own->tolerance)))
		return host;
	return max(host, horizon_look(&cpu->horizon, own, now));
}

static __always_inline void horizon_charge(local64_t *horizon, const struct ceiling_rate *rate,
					   u32 ns)
{
	local64_add(ceiling_price(READ_ONCE(rate->scale), ns), horizon);
}

void st_ceiling_charge_all(u32 ns)
{
	horizon_charge(this_cpu_ptr(&ceiling_horizon), &ceiling_host, ns);
}

void st_ceiling_charge(struct stacktap_cpu *cpu, u32 ns)
{
	const struct ceiling_rate *own = &cpu->session->ceiling;

	horizon_charge(this_cpu_ptr(&ceiling_horizon), &ceiling_host, ns);
	if (unlikely(READ_ONCE(own->tolerance)))
		horizon_charge(&cpu->horizon, own, ns);
}

u32 st_ceiling_permille(void)
{
	return READ_ONCE(ceiling_wanted);
}

void st_ceiling_set(struct stacktap_session *session, u32 permille)
{
	lockdep_assert_held(&session->lock);
	session->ceiling_permille = permille;
	rate_set(&session->ceiling, permille);
}
