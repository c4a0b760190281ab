// SPDX-License-Identifier: GPL-2.0-only
#include <linux/kernel_stat.h>

#include "compat/compat.h"
#include "cost.h"
#include "degrade.h"
#include "fallback.h"
#include "policy.h"
#include "session.h"
#include "share.h"
#include "stall.h"

enum {
	POLICY_INTERVAL = 2 * HZ,
};

/* Reading a counter would wake a CPU that idles: who does looks at this first. */
static u64 policy_busy_ns(unsigned int cpu)
{
	const u64 *times = kcpustat_cpu(cpu).cpustat;

	return times[CPUTIME_USER] + times[CPUTIME_NICE] + times[CPUTIME_SYSTEM] +
	       times[CPUTIME_SOFTIRQ] + times[CPUTIME_IRQ];
}

static void policy_look(struct stacktap_session *session, struct stacktap_cpu *cpu)
{
	u64 busy_ns = policy_busy_ns(cpu->cpu);
	unsigned int i;

	for (i = 0; i < session->nr_sources; i++) {
		struct stacktap_counter *counter = &cpu->counters[i];

		if (counter->type == PERF_TYPE_SOFTWARE)
			continue;
		st_share_look(counter, busy_ns);
		st_stall_look(counter, busy_ns);
	}
}

static void policy_run(struct work_struct *work)
{
	struct stacktap_session *session = container_of(to_delayed_work(work),
							struct stacktap_session, policy_work);
	unsigned int cpu;

	st_cost_look();
	mutex_lock(&session->lock);
	if (session->state == STACKTAP_STATE_RUNNING) {
		for_each_possible_cpu(cpu) {
			struct stacktap_cpu *pc = session_cpu(session, cpu);

			if (pc && pc->active)
				policy_look(session, pc);
		}
		st_degrade_look(session);
		/* behind that, so that the new counter has the rate that this arrived at */
		st_fallback_look(session);
		st_policy_watch(session);
	}
	mutex_unlock(&session->lock);
}

void st_policy_init(struct stacktap_session *session)
{
	INIT_DELAYED_WORK(&session->policy_work, policy_run);
}

void st_policy_watch(struct stacktap_session *session)
{
	lockdep_assert_held(&session->lock);
	queue_delayed_work(COMPAT_UNBOUND_WQ, &session->policy_work, POLICY_INTERVAL);
}

void st_policy_close(struct stacktap_session *session)
{
	cancel_delayed_work_sync(&session->policy_work);
}
