// SPDX-License-Identifier: GPL-2.0-only
/* What an overflow leaves to be done on its CPU as soon as it may: phase 2 and waking readers. */
#include <linux/bitops.h>
#include <linux/interrupt.h>
#include <linux/irq_work.h>
#include <linux/poll.h>
#include <linux/rcupdate.h>

#include "allowance.h"
#include "capture.h"
#include "compat/compat.h"
#include "defer.h"
#include "events.h"
#include "session.h"
#include "stack.h"

DEFINE_PER_CPU(u64, st_defer_draining);
static DEFINE_PER_CPU(unsigned int, defer_first); /* slot of who begins, so that each has its turn */
static DEFINE_PER_CPU(u64, defer_waking);
static DEFINE_PER_CPU(struct irq_work, defer_drain_work);
static DEFINE_PER_CPU(struct tasklet_struct, defer_drain_tasklet);
static DEFINE_PER_CPU(struct irq_work, defer_wake_work);

static bool defer_by_softirq __ro_after_init;

/* by session->slot; read with IRQs off or under RCU, cleared before a grace period */
static struct stacktap_session *defer_slots[STACKTAP_MAX_SESSIONS];
static_assert(STACKTAP_MAX_SESSIONS <= 64);

/*
 * Where the PMU's interrupt is no NMI the softirq at its end is much cheaper than the interrupt that
 * an irq_work is. Should it be put off to ksoftirqd, the switch there drains the stash.
 */
void st_defer_drain(struct stacktap_session *session)
{
	this_cpu_or(st_defer_draining, 1ULL << session->slot);
	if (defer_by_softirq && hardirq_count() && !in_nmi())
		tasklet_hi_schedule(this_cpu_ptr(&defer_drain_tasklet));
	else
		irq_work_queue(this_cpu_ptr(&defer_drain_work));
}

void st_defer_run(u32 limit_ns)
{
	unsigned int this_cpu = smp_processor_id();
	struct cost_moment began = cost_moment();
	struct stacktap_session *session;
	struct stacktap_cpu *cpu;
	unsigned int first;
	bool is_first = true, is_left = false, is_waiting = false, is_late;
	u64 draining;

	/* the interrupt that raised this one had IRQs off, too */
	limit_ns -= min(limit_ns / 2, allowance_spent(this_cpu_ptr(&st_allowance), began.now));
	/* cleared before the stash is read: an NMI in between sets it again and queues the work */
	first = this_cpu_read(defer_first);
	draining = ror64(this_cpu_xchg(st_defer_draining, 0), first);
	while (draining) {
		session = READ_ONCE(defer_slots[(__ffs64(draining) + first) % 64]);
		draining &= draining - 1;
		if (!session)
			continue;
		cpu = session_cpu(session, this_cpu);
		if (!cpu)
			continue;
		/* the first one drains a sample in any case */
		is_late = !is_first && cost_since(began) > limit_ns;
		if (is_late || st_capture_drain_cpu(cpu, began, limit_ns)) {
			this_cpu_or(st_defer_draining, 1ULL << session->slot);
			is_left = true;
		}
		/* who had no turn begins the next time, before who has more to drain */
		if (is_late && !is_waiting) {
			this_cpu_write(defer_first, session->slot);
			is_waiting = true;
		}
		is_first = false;
	}
	if (!is_left)
		return;
	/*
	 * A softirq lets other interrupts in first, an irq_work may come before them. Under the lock of
	 * a run queue it cannot be raised, as that may wake ksoftirqd; and RT runs it in a thread.
	 */
	if (!IS_ENABLED(CONFIG_PREEMPT_RT) && in_interrupt())
		tasklet_hi_schedule(this_cpu_ptr(&defer_drain_tasklet));
	else
		irq_work_queue(this_cpu_ptr(&defer_drain_work));
}

static void defer_drain_run(struct irq_work *work)
{
	defer_run_pending(SESSION_WALK_LIMIT_NS);
}

static void defer_drain_softirq(struct tasklet_struct *tasklet)
{
	unsigned long flags;

	local_irq_save(flags);
	defer_run_pending(SESSION_WALK_LIMIT_NS);
	local_irq_restore(flags);
}

static void defer_wake_run(struct irq_work *work)
{
	struct stacktap_session *session;
	u64 waking = this_cpu_xchg(defer_waking, 0);

	rcu_read_lock();
	while (waking) {
		session = READ_ONCE(defer_slots[__ffs64(waking)]);
		waking &= waking - 1;
		if (!session)
			continue;
		wake_up_poll(&session->wait, EPOLLIN | EPOLLRDNORM);
		st_events_kick(session);
	}
	rcu_read_unlock();
}

void st_defer_wake(struct stacktap_session *session)
{
	preempt_disable();
	this_cpu_or(defer_waking, 1ULL << session->slot);
	irq_work_queue(this_cpu_ptr(&defer_wake_work));
	preempt_enable();
}

void st_defer_attach(struct stacktap_session *session)
{
	WRITE_ONCE(defer_slots[session->slot], session);
}

void st_defer_detach(struct stacktap_session *session)
{
	WRITE_ONCE(defer_slots[session->slot], NULL);
	synchronize_rcu();
}

#ifdef STACKTAP_TEST
struct stacktap_session *st_defer_session(unsigned int slot)
{
	return READ_ONCE(defer_slots[slot]);
}
#endif

void st_defer_init(void)
{
	unsigned int cpu;

	/* PREEMPT_RT runs softirqs in threads */
	defer_by_softirq = !st_stack_pmu_is_nmi() && !IS_ENABLED(CONFIG_PREEMPT_RT);
	for_each_possible_cpu(cpu) {
		tasklet_setup(per_cpu_ptr(&defer_drain_tasklet, cpu), defer_drain_softirq);
		compat_irq_work_init_hard(per_cpu_ptr(&defer_drain_work, cpu), defer_drain_run);
		init_irq_work(per_cpu_ptr(&defer_wake_work, cpu), defer_wake_run);
	}
}

void st_defer_exit(void)
{
	unsigned int cpu;

	/* nobody queues any more, and nothing was queued on a CPU after its offline callback */
	for_each_possible_cpu(cpu) {
		irq_work_sync(per_cpu_ptr(&defer_drain_work, cpu));
		tasklet_kill(per_cpu_ptr(&defer_drain_tasklet, cpu));
		irq_work_sync(per_cpu_ptr(&defer_wake_work, cpu));
	}
}
