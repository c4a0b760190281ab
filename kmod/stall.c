// SPDX-License-Identifier: GPL-2.0-only
#include <linux/kernel_stat.h>

#include "compat/compat.h"
#include "degrade.h"
#include "events.h"
#include "fallback.h"
#include "record.h"
#include "share.h"
#include "stall.h"

enum {
	STALL_INTERVAL = 2 * HZ,
	/* of which a CPU must have been busy for so long: one that idles owes no overflows */
	STALL_BUSY_NS = NSEC_PER_SEC / 5,
	/* that a counter may count without an overflow; more than a delayed interrupt explains */
	STALL_PERIODS = 4,
};

static u64 stall_busy_ns(unsigned int cpu)
{
	const u64 *times = kcpustat_cpu(cpu).cpustat;

	return times[CPUTIME_USER] + times[CPUTIME_NICE] + times[CPUTIME_SYSTEM] +
	       times[CPUTIME_SOFTIRQ] + times[CPUTIME_IRQ];
}

/*
 * Reading a counter interrupts its CPU, so only those are read that gave no sample while their CPU
 * was busy. The first such look takes the count, a later one compares.
 */
static bool counter_stalled(struct stacktap_counter *counter, u64 busy_ns)
{
	struct stacktap_stall *stall = &counter->stall;
	u64 calls = local64_read(&counter->calls), count;

	if (calls != stall->calls) {
		stall->calls = calls;
		stall->busy_ns = busy_ns;
		stall->suspected = false;
		return false;
	}
	if (busy_ns - stall->busy_ns < STALL_BUSY_NS)
		return false;
	stall->busy_ns = busy_ns;
	count = st_counter_read(counter);
	if (!stall->suspected) {
		stall->suspected = true;
		stall->count = count;
		return false;
	}
	/* in frequency mode the kernel's own period, as it is now; one that is drawn is below two */
	return (count - stall->count) / STALL_PERIODS >
	       (counter->period ?: READ_ONCE(counter->event->hw.sample_period));
}

static void stall_tell(struct stacktap_cpu *cpu, void *arg)
{
	st_record_owe_counts(cpu);
	record_pay(cpu);
}

static void stall_look(struct stacktap_session *session, struct stacktap_cpu *cpu)
{
	u64 busy_ns = stall_busy_ns(cpu->cpu);
	unsigned int i;

	for (i = 0; i < session->nr_sources; i++) {
		struct stacktap_counter *counter = &cpu->counters[i];

		if (counter->type == PERF_TYPE_SOFTWARE)
			continue;
		st_share_look(counter, busy_ns);
		if (!counter_stalled(counter, busy_ns))
			continue;
		st_counter_rearm(counter);
		counter->stall.suspected = false;
		WRITE_ONCE(counter->stalled, counter->stalled + 1);
		st_cpu_call(cpu, stall_tell, NULL);
		st_events_raise_counter(counter, STACKTAP_EVENT_STALL, 0);
	}
}

static void stall_run(struct work_struct *work)
{
	struct stacktap_session *session = container_of(to_delayed_work(work),
							struct stacktap_session, stall_work);
	unsigned int cpu;

	mutex_lock(&session->lock);
	if (session->state == STACKTAP_STATE_RUNNING) {
		for_each_possible_cpu(cpu) {
			struct stacktap_cpu *pc = session_cpu(session, cpu);

			if (pc && pc->active)
				stall_look(session, pc);
		}
		st_degrade_look(session);
		/* behind that, so that the new counter has the rate that this arrived at */
		st_fallback_look(session);
		st_stall_watch(session);
	}
	mutex_unlock(&session->lock);
}

void st_stall_init(struct stacktap_session *session)
{
	INIT_DELAYED_WORK(&session->stall_work, stall_run);
}

void st_stall_watch(struct stacktap_session *session)
{
	lockdep_assert_held(&session->lock);
	queue_delayed_work(COMPAT_UNBOUND_WQ, &session->stall_work, STALL_INTERVAL);
}

void st_stall_close(struct stacktap_session *session)
{
	cancel_delayed_work_sync(&session->stall_work);
}
