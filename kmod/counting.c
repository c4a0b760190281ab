// SPDX-License-Identifier: GPL-2.0-only
#include <linux/netlink.h>
#include <linux/rcupdate.h>

#include "capture.h"
#include "counting.h"
#include "events.h"
#include "probe.h"
#include "record.h"

enum {
	COUNTING_MIN_SLOTS = 16,
	COUNTING_STASH_PER_SECOND = 20,	/* a stash holds 50 ms */
};

bool st_counting_wants(struct stacktap_session *session, unsigned int cpu)
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

void st_counting_drain(struct stacktap_cpu *cpu)
{
	unsigned int rounds = cpu->stash ? cpu->stash->nr_slots : 0;
	bool is_left;

	/* each takes one at least, so that what there was at first is gone then */
	do {
		st_cpu_call(cpu, cpu_drain_part, &is_left);
	} while (is_left && rounds--);
}

/* What has come since st_counting_drain(). */
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
	unsigned int nr_slots = max_t(unsigned int, rate / COUNTING_STASH_PER_SECOND,
				      COUNTING_MIN_SLOTS);
	struct stacktap_stash *stash;
	int err;

	if (cpu->stash && cpu->stash->nr_slots >= nr_slots)
		return 0;
	err = st_stash_create(cpu->cpu, nr_slots, &stash);
	if (err)
		return err;
	st_counting_drain(cpu);
	st_cpu_call(cpu, stash_swap, &stash);
	st_stash_destroy(stash);
	return 0;
}

int st_counting_prepare_phases(struct stacktap_session *session, struct stacktap_cpu *cpu,
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

void st_counting_announce(struct stacktap_cpu *cpu, struct stacktap_counter *counter)
{
	st_counting_drain(cpu);
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

void st_counting_finish(struct stacktap_cpu *cpu)
{
	st_counting_drain(cpu);
	st_cpu_call(cpu, cpu_finish, NULL);
}

void st_counting_flush(struct stacktap_cpu *cpu)
{
	st_cpu_call(cpu, cpu_flush, NULL);
}

void st_counting_disarm(struct stacktap_cpu *cpu)
{
	unsigned int i;

	for (i = 0; i < STACKTAP_MAX_SOURCES; i++)
		st_counter_release(&cpu->counters[i]);
}

int st_counting_prepare(struct stacktap_session *session, struct stacktap_cpu *cpu)
{
	unsigned int i;
	int err;

	for (i = 0; i < session->nr_sources; i++) {
		err = st_counter_create(&cpu->counters[i], &session->sources[i], session->two_phase,
					st_capture_overflow);
		if (err)
			goto err_disarm;
	}
	err = st_counting_prepare_phases(session, cpu, NULL);
	if (err)
		goto err_disarm;
	return 0;

err_disarm:
	st_counting_disarm(cpu);
	return err;
}

void st_counting_begin(struct stacktap_session *session, struct stacktap_cpu *cpu)
{
	unsigned int i;

	for (i = 0; i < session->nr_sources; i++)
		if (cpu->counters[i].fallback_errno)
			st_events_raise_counter(&cpu->counters[i], STACKTAP_EVENT_FALLBACK,
						cpu->counters[i].fallback_errno);
	WRITE_ONCE(cpu->active, true);
	st_cpu_call(cpu, cpu_announce, NULL);
	for (i = 0; i < session->nr_sources; i++)
		st_counter_enable(&cpu->counters[i]);
}

static int counting_arm(struct stacktap_session *session, struct stacktap_cpu *cpu)
{
	int err = st_counting_prepare(session, cpu);

	if (!err)
		st_counting_begin(session, cpu);
	return err;
}

static bool counting_is_dead(struct stacktap_session *session, struct stacktap_cpu *cpu)
{
	unsigned int i;

	for (i = 0; i < session->nr_sources; i++)
		if (cpu->counters[i].hotplug_seq != READ_ONCE(cpu->hotplug_seq))
			return true;
	return false;
}

/* No counters where there should be none. */
static void counting_retire(struct stacktap_session *session)
{
	bool retired = false;
	unsigned int cpu;

	for_each_possible_cpu(cpu) {
		struct stacktap_cpu *pc = session_cpu(session, cpu);

		if (!pc || !pc->active)
			continue;
		if (counting_is_dead(session, pc)) {
			st_counting_disarm(pc);
			st_cpu_call(pc, cpu_depart, NULL);
			WRITE_ONCE(pc->active, false);
		} else if (!st_counting_wants(session, cpu)) {
			st_counting_disarm(pc);
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
			st_counting_drain(pc);
			st_cpu_call(pc, cpu_deselect, NULL);
			WRITE_ONCE(pc->active, false);
		}
	}
}

int st_counting_reconcile(struct stacktap_session *session)
{
	unsigned int cpu;
	int err, ret = 0;

	lockdep_assert_held(&session->lock);
	if (session->state != STACKTAP_STATE_RUNNING)
		return 0;

	counting_retire(session);
	for_each_possible_cpu(cpu) {
		struct stacktap_cpu *pc = session_cpu(session, cpu);

		if (!pc)
			continue;
		pc->error = 0;
		if (pc->active || !st_counting_wants(session, cpu))
			continue;
		err = counting_arm(session, pc);
		/* -ENODEV: it is leaving; when it comes back the work runs again */
		if (!err || err == -ENODEV)
			continue;
		pc->error = -err;
		if (!ret)
			ret = err;
	}
	return ret;
}

int st_counting_follow(struct stacktap_session *session)
{
	int err = st_counting_reconcile(session);
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

int st_counting_refuse(int err, struct netlink_ext_ack *extack)
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
