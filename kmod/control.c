// SPDX-License-Identifier: GPL-2.0-only
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/netlink.h>
#include <linux/poll.h>
#include <linux/rcupdate.h>
#include <linux/security.h>

#include "control.h"
#include "counting.h"
#include "degrade.h"
#include "events.h"
#include "mappings.h"
#include "policy.h"
#include "probe.h"

int st_control_start(struct stacktap_session *session, struct netlink_ext_ack *extack)
{
	int err;

	lockdep_assert_held(&session->lock);
	if (session->state == STACKTAP_STATE_RUNNING) {
		NL_SET_ERR_MSG(extack, "the session is running");
		return -EALREADY;
	}
	if (!session->nr_sources) {
		NL_SET_ERR_MSG(extack, "the session has no source");
		return -EINVAL;
	}
	if (!session->nr_rings) {
		NL_SET_ERR_MSG(extack, "the session has no ring");
		return -EINVAL;
	}
	if (session->slice_bytes && security_locked_down(LOCKDOWN_PERF)) {
		NL_SET_ERR_MSG(extack, "the kernel was locked down since: no stack slices");
		return -EPERM;
	}

	/* lists are not set any more, and those from before are of no use either */
	if (atomic_read(&session->tables.lists) && security_locked_down(LOCKDOWN_PERF)) {
		st_mappings_forget(&session->tables);
		/* a fork that had found a list by then may have handed it on behind that */
		synchronize_rcu();
		st_mappings_forget(&session->tables);
	}

	session->generation++;
	st_degrade_start(session);
	WRITE_ONCE(session->state, STACKTAP_STATE_RUNNING);
	WRITE_ONCE(session->armed, true);
	err = st_counting_reconcile(session);
	if (err) {
		st_control_stop(session);
		return st_counting_refuse(err, extack);
	}
	st_policy_watch(session);
	st_events_raise(session, STACKTAP_EVENT_SESSION_STARTED, 0);
	return 0;
}

void st_control_stop(struct stacktap_session *session)
{
	unsigned int cpu;

	lockdep_assert_held(&session->lock);
	/* still armed: what overflows until its counter is gone is a sample like any other */
	for_each_possible_cpu(cpu) {
		struct stacktap_cpu *pc = session_cpu(session, cpu);

		if (pc)
			st_counting_disarm(pc);
	}
	/* software events' handlers may outlive the release of their event by a grace period */
	synchronize_rcu();
	WRITE_ONCE(session->armed, false);
	for_each_possible_cpu(cpu) {
		struct stacktap_cpu *pc = session_cpu(session, cpu);

		if (!pc)
			continue;
		pc->error = 0;
		pc->error_told = 0;
		if (!pc->announced)
			continue;
		pc->final_owed = true;
		pc->announced = false;
		WRITE_ONCE(pc->active, false);
		st_counting_finish(pc);
	}
	if (session->probing)
		st_probe_drop();
	session->probing = false;
	st_degrade_stop(session);
	WRITE_ONCE(session->state, STACKTAP_STATE_STOPPED);
	session->generation++;
	/* nothing is lost from here on, so that the sum of what events told is exact */
	events_note(session, STACKTAP_EVENT_LOSS);
	st_events_raise(session, STACKTAP_EVENT_SESSION_STOPPED, 0);
	wake_up_poll(&session->wait, EPOLLIN | EPOLLRDNORM);
}

int st_control_add_ring(struct stacktap_session *session, unsigned int cpu, u32 data_bytes,
			u32 watermark)
{
	struct stacktap_cpu *pc;
	int err;

	lockdep_assert_held(&session->lock);
	if (session_cpu(session, cpu))
		return -EEXIST;
	if (!cpumask_test_cpu(cpu, session->seen))
		return -ENODEV;
	err = st_cpu_create(session, cpu, data_bytes, watermark, &pc);
	if (err)
		return err;
	/* pairs with session_cpu(): readers without the lock see a complete ring */
	smp_store_release(&session->cpus[cpu], pc);
	/* pairs with the barrier in hotplug_offline(): it marks our counters or we make none */
	smp_mb();
	WRITE_ONCE(session->nr_rings, session->nr_rings + 1);
	/* the ring is there whatever becomes of the counters */
	st_counting_follow(session);
	return 0;
}

void st_control_flush(struct stacktap_session *session)
{
	unsigned int cpu;

	lockdep_assert_held(&session->lock);
	for_each_possible_cpu(cpu) {
		struct stacktap_cpu *pc = session_cpu(session, cpu);

		if (pc)
			st_counting_flush(pc);
	}
	wake_up_poll(&session->wait, EPOLLIN | EPOLLRDNORM);
}

void st_control_set_sources(struct stacktap_session *session, const struct stacktap_source *sources,
			    unsigned int nr_sources)
{
	lockdep_assert_held(&session->lock);
	memcpy(session->sources, sources, nr_sources * sizeof(*sources));
	WRITE_ONCE(session->nr_sources, nr_sources);
	session->generation++;
	st_events_raise(session, STACKTAP_EVENT_SESSION_CHANGED, 0);
}

/* What control_prepare_filter() made, and nothing has begun of. */
static bool control_is_prepared(const struct stacktap_cpu *cpu)
{
	return cpu && !cpu->active && cpu->counters[0].event;
}

static void control_unprepare(struct stacktap_session *session)
{
	unsigned int cpu;

	for_each_possible_cpu(cpu) {
		struct stacktap_cpu *pc = session_cpu(session, cpu);

		if (control_is_prepared(pc))
			st_counting_disarm(pc);
	}
}

/* Counters where @filter will want them and the one in force does not; all or none. */
static int control_prepare_filter(struct stacktap_session *session,
				  const struct stacktap_filter *filter)
{
	unsigned int cpu;
	int err;

	if (session->state != STACKTAP_STATE_RUNNING)
		return 0;
	for_each_possible_cpu(cpu) {
		struct stacktap_cpu *pc = session_cpu(session, cpu);

		if (!pc || pc->active || !cpumask_test_cpu(cpu, session->online) ||
		    !st_filter_wants_cpu(filter, cpu) || st_counting_wants(session, cpu))
			continue;
		err = st_counting_prepare(session, pc);
		/* -ENODEV: it is leaving, as in st_counting_reconcile() */
		if (!err || err == -ENODEV)
			continue;
		control_unprepare(session);
		return err;
	}
	return 0;
}

int st_control_set_filter(struct stacktap_session *session, struct stacktap_filter *filter,
			  struct netlink_ext_ack *extack)
{
	struct stacktap_filter *old = session_filter(session);
	unsigned int cpu;
	int err;

	lockdep_assert_held(&session->lock);
	err = control_prepare_filter(session, filter);
	if (err) {
		st_filter_destroy(filter);
		return st_counting_refuse(err, extack);
	}
	rcu_assign_pointer(session->filter, filter);
	session->generation++;
	/* handlers that saw the old one are over, so every sample from here on obeys the new one */
	synchronize_rcu();
	st_filter_destroy(old);

	for_each_possible_cpu(cpu) {
		struct stacktap_cpu *pc = session_cpu(session, cpu);

		if (control_is_prepared(pc))
			st_counting_begin(session, pc);
		else if (pc && pc->active)
			st_counting_announce(pc, NULL);
	}
	/* a CPU that still has no counter had none before: it tells by itself */
	st_counting_follow(session);
	st_events_raise(session, STACKTAP_EVENT_SESSION_CHANGED, 0);
	/* POLLPRI depends on the CPU set */
	wake_up_poll(&session->wait, EPOLLPRI);
	return 0;
}

void st_control_work(struct work_struct *work)
{
	struct stacktap_session *session = container_of(work, struct stacktap_session, work);
	int err = 0;

	mutex_lock(&session->lock);
	if (!session->dead)
		err = st_counting_follow(session);
	mutex_unlock(&session->lock);
	if (err)
		pr_warn_ratelimited("session %llu: no counter on a CPU that came online: %d\n",
				    session->id, err);
}
