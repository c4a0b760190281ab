// SPDX-License-Identifier: GPL-2.0-only
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/netlink.h>
#include <linux/poll.h>
#include <linux/rcupdate.h>
#include <linux/security.h>

#include "capture.h"
#include "control.h"
#include "degrade.h"
#include "events.h"
#include "fallback.h"
#include "mappings.h"
#include "probe.h"
#include "record.h"
#include "stall.h"

enum {
	CONTROL_MIN_SLOTS = 16,
	CONTROL_STASH_PER_SECOND = 20,	/* a stash holds 50 ms */
};

static bool control_wants(struct stacktap_session *session, unsigned int cpu)
{
	return cpumask_test_cpu(cpu, session->online) &&
	       st_filter_wants_cpu(session_filter(session), cpu);
}

static void cpu_drain_part(struct stacktap_cpu *cpu, void *arg)
{
	struct cost_moment began = cost_moment();
	bool *is_left = arg;

	*is_left = st_capture_drain_cpu(cpu, began, SESSION_WALK_LIMIT_NS);
}

/* Phase 2 of what waits for it on @cpu, with IRQs on now and then. */
static void control_drain(struct stacktap_cpu *cpu)
{
	unsigned int rounds = cpu->stash ? cpu->stash->nr_slots : 0;
	bool is_left;

	/* each takes one at least, so that what there was at first is gone then */
	do {
		st_cpu_call(cpu, cpu_drain_part, &is_left);
	} while (is_left && rounds--);
}

/* What has come since control_drain(). */
static void cpu_drain_rest(struct stacktap_cpu *cpu)
{
	struct cost_moment began = cost_moment();

	st_capture_drain_cpu(cpu, began, U32_MAX);
}

static void stash_swap(struct stacktap_cpu *cpu, void *arg)
{
	struct stacktap_stash **stash = arg;

	/* NMIs are turned away while the pointer changes */
	WRITE_ONCE(cpu->stashing, true);
	barrier();
	cpu_drain_rest(cpu);
	swap(cpu->stash, *stash);
	barrier();
	WRITE_ONCE(cpu->stashing, false);
}

static int stash_fit(struct stacktap_cpu *cpu, unsigned int rate)
{
	unsigned int nr_slots = max_t(unsigned int, rate / CONTROL_STASH_PER_SECOND,
				      CONTROL_MIN_SLOTS);
	struct stacktap_stash *stash;
	int err;

	if (cpu->stash && cpu->stash->nr_slots >= nr_slots)
		return 0;
	err = st_stash_create(cpu->cpu, nr_slots, &stash);
	if (err)
		return err;
	control_drain(cpu);
	st_cpu_call(cpu, stash_swap, &stash);
	st_stash_destroy(stash);
	return 0;
}

/* Have what phase 2 needs on @cpu, if any of its counters goes through it, or @more will. */
static int control_prepare_phases(struct stacktap_session *session, struct stacktap_cpu *cpu,
				  const struct stacktap_counter *more)
{
	unsigned int i, rate = 0;
	int err;

	for (i = 0; i < session->nr_sources; i++)
		if (cpu->counters[i].event &&
		    (!cpu->counters[i].one_phase || more == &cpu->counters[i]))
			rate += st_source_rate(&session->sources[i]);
	if (!rate)
		return 0;
	err = stash_fit(cpu, rate);
	if (err || session->probing)
		return err;
	err = st_probe_hold();
	if (!err)
		session->probing = true;
	return err;
}

static void cpu_begin(struct stacktap_cpu *cpu)
{
	if (!cpu->announced)
		st_record_owe_anchor(cpu);
	cpu->announced = true;
}

static void cpu_announce(struct stacktap_cpu *cpu, void *arg)
{
	unsigned int i;

	cpu_begin(cpu);
	st_record_owe_state(cpu, STACKTAP_CPU_ONLINE);
	for (i = 0; i < cpu->session->nr_sources; i++)
		st_record_owe_config(&cpu->counters[i]);
	record_pay(cpu);
}

static void cpu_announce_config(struct stacktap_cpu *cpu, void *arg)
{
	unsigned int i;

	/* what overflowed before comes before it */
	cpu_drain_rest(cpu);
	/* it has left, or is about to be made anew, which tells all of it */
	if (cpu->state != STACKTAP_CPU_ONLINE)
		return;
	for (i = 0; i < cpu->session->nr_sources; i++)
		if (!arg || arg == &cpu->counters[i])
			st_record_owe_config(&cpu->counters[i]);
	record_pay(cpu);
}

/* CONFIG of @counter, or of all of @cpu's when that is NULL. */
static void control_announce(struct stacktap_cpu *cpu, struct stacktap_counter *counter)
{
	control_drain(cpu);
	st_cpu_call(cpu, cpu_announce_config, counter);
}

static void cpu_refuse(struct stacktap_cpu *cpu, void *arg)
{
	cpu_begin(cpu);
	st_record_owe_state(cpu, STACKTAP_CPU_NO_COUNTER);
	record_pay(cpu);
}

/* It left before its coming was told: the offline callback had nothing to end then. */
static void cpu_depart(struct stacktap_cpu *cpu, void *arg)
{
	st_record_owe_state(cpu, STACKTAP_CPU_OFFLINE);
	record_pay(cpu);
}

static void cpu_deselect(struct stacktap_cpu *cpu, void *arg)
{
	cpu_drain_rest(cpu);
	st_record_owe_state(cpu, STACKTAP_CPU_DESELECTED);
	record_pay(cpu);
}

static void cpu_finish(struct stacktap_cpu *cpu, void *arg)
{
	cpu_drain_rest(cpu);
	st_record_final(cpu);
}

static void cpu_flush(struct stacktap_cpu *cpu, void *arg)
{
	st_record_final(cpu);
}

static void control_disarm_cpu(struct stacktap_cpu *cpu)
{
	unsigned int i;

	for (i = 0; i < STACKTAP_MAX_SOURCES; i++)
		st_counter_release(&cpu->counters[i]);
}

/* All of a CPU's counters that can fail; they do not count yet. */
static int control_prepare_cpu(struct stacktap_session *session, struct stacktap_cpu *cpu)
{
	unsigned int i;
	int err;

	for (i = 0; i < session->nr_sources; i++) {
		err = st_counter_create(&cpu->counters[i], &session->sources[i], session->two_phase,
					st_capture_overflow);
		if (err)
			goto err_disarm;
	}
	err = control_prepare_phases(session, cpu, NULL);
	if (err)
		goto err_disarm;
	return 0;

err_disarm:
	control_disarm_cpu(cpu);
	return err;
}

static void control_begin_cpu(struct stacktap_session *session, struct stacktap_cpu *cpu)
{
	unsigned int i;

	for (i = 0; i < session->nr_sources; i++)
		if (cpu->counters[i].fallback_errno)
			st_events_raise_counter(&cpu->counters[i], STACKTAP_EVENT_FALLBACK,
						cpu->counters[i].fallback_errno);
	WRITE_ONCE(cpu->active, true);
	st_cpu_call(cpu, cpu_announce, NULL);
	for (i = 0; i < session->nr_sources; i++) {
		st_fallback_begin(&cpu->counters[i]);
		st_counter_enable(&cpu->counters[i]);
	}
	st_stall_watch(session);
}

static int control_arm_cpu(struct stacktap_session *session, struct stacktap_cpu *cpu)
{
	int err = control_prepare_cpu(session, cpu);

	if (!err)
		control_begin_cpu(session, cpu);
	return err;
}

static bool control_cpu_dead(struct stacktap_session *session, struct stacktap_cpu *cpu)
{
	unsigned int i;

	for (i = 0; i < session->nr_sources; i++)
		if (cpu->counters[i].hotplug_seq != READ_ONCE(cpu->hotplug_seq))
			return true;
	return false;
}

/* No counters where there should be none. */
static void control_retire(struct stacktap_session *session)
{
	bool retired = false;
	unsigned int cpu;

	for_each_possible_cpu(cpu) {
		struct stacktap_cpu *pc = session_cpu(session, cpu);

		if (!pc || !pc->active)
			continue;
		if (control_cpu_dead(session, pc)) {
			control_disarm_cpu(pc);
			st_cpu_call(pc, cpu_depart, NULL);
			WRITE_ONCE(pc->active, false);
		} else if (!control_wants(session, cpu)) {
			control_disarm_cpu(pc);
			retired = true;
		} else {
			continue;
		}
		/* what was lost on its way down could not ask for that, see capture.c */
		events_note(session, STACKTAP_EVENT_LOSS);
		st_events_kick(session);
	}
	if (!retired)
		return;
	/* handlers that had begun are over, on all of them: who asks for this holds up others */
	synchronize_rcu();
	for_each_possible_cpu(cpu) {
		struct stacktap_cpu *pc = session_cpu(session, cpu);

		/* not by what is wanted, which a CPU that comes or goes has changed since */
		if (pc && pc->active && !pc->counters[0].event) {
			control_drain(pc);
			st_cpu_call(pc, cpu_deselect, NULL);
			WRITE_ONCE(pc->active, false);
		}
	}
}

/* Make counters exist exactly where they should. The first error is returned, the rest goes on. */
static int control_reconcile(struct stacktap_session *session)
{
	unsigned int cpu;
	int err, ret = 0;

	lockdep_assert_held(&session->lock);
	if (session->state != STACKTAP_STATE_RUNNING)
		return 0;

	control_retire(session);
	for_each_possible_cpu(cpu) {
		struct stacktap_cpu *pc = session_cpu(session, cpu);

		if (!pc)
			continue;
		pc->error = 0;
		if (pc->active || !control_wants(session, cpu))
			continue;
		err = control_arm_cpu(session, pc);
		/* -ENODEV: it is leaving; when it comes back the work runs again */
		if (!err || err == -ENODEV)
			continue;
		pc->error = -err;
		if (!ret)
			ret = err;
	}
	return ret;
}

/* The same for a session that goes on if it fails: then the CPUs that lack counters are told. */
static int control_follow(struct stacktap_session *session)
{
	int err = control_reconcile(session);
	unsigned int cpu;

	for_each_possible_cpu(cpu) {
		struct stacktap_cpu *pc = session_cpu(session, cpu);

		if (!pc || pc->error == pc->error_told)
			continue;
		pc->error_told = pc->error;
		/* it may have left meanwhile, which told more */
		if (!pc->error || !cpumask_test_cpu(cpu, session->online))
			continue;
		st_cpu_call(pc, cpu_refuse, NULL);
		st_events_raise_refused(pc);
	}
	return err;
}

/* Tell why counters or stashes could not be had, and return what the user gets. */
static int control_refuse(int err, struct netlink_ext_ack *extack)
{
	switch (err) {
	case -EDQUOT:
		NL_SET_ERR_MSG(extack,
			       "the stash would exceed what all sessions may take, ring_limit_mib");
		return -ENOMEM;
	case -ENOMEM:
		NL_SET_ERR_MSG(extack, "not enough memory for counters or stash");
		break;
	case -EACCES:
		NL_SET_ERR_MSG(extack, "the kernel refused a counter: perf_event_paranoid or LSM");
		break;
	default:
		NL_SET_ERR_MSG(extack, "a counter could not be created");
	}
	return err;
}

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
	err = control_reconcile(session);
	if (err) {
		st_control_stop(session);
		return control_refuse(err, extack);
	}
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
			control_disarm_cpu(pc);
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
		control_drain(pc);
		st_cpu_call(pc, cpu_finish, NULL);
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
	control_follow(session);
	return 0;
}

void st_control_flush(struct stacktap_session *session)
{
	unsigned int cpu;

	lockdep_assert_held(&session->lock);
	for_each_possible_cpu(cpu) {
		struct stacktap_cpu *pc = session_cpu(session, cpu);

		if (pc)
			st_cpu_call(pc, cpu_flush, NULL);
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

int st_control_set_rate(struct stacktap_session *session, unsigned int index,
			const struct stacktap_source *source, struct netlink_ext_ack *extack)
{
	struct stacktap_source old = session->sources[index];
	unsigned int cpu;
	int err = 0;

	lockdep_assert_held(&session->lock);
	session->sources[index] = *source;
	for_each_possible_cpu(cpu) {
		struct stacktap_cpu *pc = session_cpu(session, cpu);

		if (!pc || !pc->active)
			continue;
		err = control_prepare_phases(session, pc, NULL);
		if (!err)
			err = st_counter_set_period(&pc->counters[index], source);
		if (err)
			break;
	}
	if (err) {
		/* back on those CPUs that followed; the old value was good for them before */
		session->sources[index] = old;
		for_each_possible_cpu(cpu) {
			struct stacktap_cpu *pc = session_cpu(session, cpu);

			if (pc && pc->active)
				st_counter_set_period(&pc->counters[index], &old);
		}
		if (err == -EDQUOT || err == -ENOMEM)
			return control_refuse(err, extack);
		NL_SET_ERR_MSG(extack, "refused by perf, see kernel.perf_event_max_sample_rate");
		return err;
	}

	session->generation++;
	for_each_possible_cpu(cpu) {
		struct stacktap_cpu *pc = session_cpu(session, cpu);

		if (pc && pc->active)
			control_announce(pc, &pc->counters[index]);
	}
	st_events_raise(session, STACKTAP_EVENT_SESSION_CHANGED, 0);
	return 0;
}

static bool cpu_follow_step(struct stacktap_session *session, struct stacktap_cpu *cpu)
{
	u32 shift = degrade_rate_shift(session->degrade.step);
	bool has_changed = false;
	unsigned int i;

	for (i = 0; i < session->nr_sources; i++) {
		struct stacktap_counter *counter = &cpu->counters[i];

		if (counter->rate_shift == shift)
			continue;
		if (st_counter_set_period(counter, &session->sources[i]))
			session->rates_refused++;
		else
			has_changed = true;
	}
	return has_changed;
}

void st_control_follow_step(struct stacktap_session *session, bool is_new)
{
	unsigned int cpu;

	lockdep_assert_held(&session->lock);
	for_each_possible_cpu(cpu) {
		struct stacktap_cpu *pc = session_cpu(session, cpu);

		if (pc && pc->active && (cpu_follow_step(session, pc) || is_new))
			control_announce(pc, NULL);
	}
}

int st_control_restore(struct stacktap_counter *counter)
{
	struct stacktap_session *session = counter->cpu->session;
	const struct stacktap_source *source = &session->sources[counter->index];
	u32 fallback_errno = counter->fallback_errno;
	struct perf_event *event;
	int err;

	lockdep_assert_held(&session->lock);
	event = st_counter_create_real(counter, source, st_capture_overflow);
	if (IS_ERR(event))
		return PTR_ERR(event);
	/* before cpu-clock is gone: the real one goes through phase 2 where that does not */
	err = control_prepare_phases(session, counter->cpu, counter);
	if (err) {
		perf_event_release_kernel(event);
		return err;
	}
	st_counter_replace(counter, source, event, session->two_phase);
	/* while nothing counts: what cpu-clock sampled is before CONFIG, what the real one does behind */
	control_announce(counter->cpu, counter);
	st_counter_enable(counter);
	st_events_raise_counter(counter, STACKTAP_EVENT_FALLBACK_END, fallback_errno);
	return 0;
}

void st_control_tell(struct stacktap_counter *counter)
{
	control_announce(counter->cpu, counter);
}

void st_control_degrade(struct stacktap_session *session, u32 step)
{
	bool gives_up = step > session->degrade.step;
	u32 frames = degrade_kernel_frames(step);

	lockdep_assert_held(&session->lock);
	WRITE_ONCE(session->degrade.step, step);
	session->degradations += gives_up;
	session->generation++;
	/* before CONFIG or behind it, so that no stack is deeper than what was told last */
	if (gives_up)
		WRITE_ONCE(session->kernel_frames, frames);
	st_control_follow_step(session, true);
	WRITE_ONCE(session->kernel_frames, frames);
	st_events_raise(session, gives_up ? STACKTAP_EVENT_DEGRADED : STACKTAP_EVENT_RECOVERED, 0);
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
			control_disarm_cpu(pc);
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
		    !st_filter_wants_cpu(filter, cpu) || control_wants(session, cpu))
			continue;
		err = control_prepare_cpu(session, pc);
		/* -ENODEV: it is leaving, as in control_reconcile() */
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
		return control_refuse(err, extack);
	}
	rcu_assign_pointer(session->filter, filter);
	session->generation++;
	/* handlers that saw the old one are over, so every sample from here on obeys the new one */
	synchronize_rcu();
	st_filter_destroy(old);

	for_each_possible_cpu(cpu) {
		struct stacktap_cpu *pc = session_cpu(session, cpu);

		if (control_is_prepared(pc))
			control_begin_cpu(session, pc);
		else if (pc && pc->active)
			control_announce(pc, NULL);
	}
	/* a CPU that still has no counter had none before: it tells by itself */
	control_follow(session);
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
		err = control_follow(session);
	mutex_unlock(&session->lock);
	if (err)
		pr_warn_ratelimited("session %llu: no counter on a CPU that came online: %d\n",
				    session->id, err);
}
