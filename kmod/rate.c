// SPDX-License-Identifier: GPL-2.0-only
#include <linux/netlink.h>

#include "counting.h"
#include "events.h"
#include "rate.h"

int st_rate_set(struct stacktap_session *session, unsigned int index,
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
		err = st_counting_prepare_phases(session, pc, NULL);
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
			return st_counting_refuse(err, extack);
		NL_SET_ERR_MSG(extack, "refused by perf, see kernel.perf_event_max_sample_rate");
		return err;
	}

	session->generation++;
	for_each_possible_cpu(cpu) {
		struct stacktap_cpu *pc = session_cpu(session, cpu);

		if (pc && pc->active)
			st_counting_announce(pc, &pc->counters[index]);
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

void st_rate_follow(struct stacktap_session *session, bool is_new)
{
	unsigned int cpu;

	lockdep_assert_held(&session->lock);
	for_each_possible_cpu(cpu) {
		struct stacktap_cpu *pc = session_cpu(session, cpu);

		if (pc && pc->active && (cpu_follow_step(session, pc) || is_new))
			st_counting_announce(pc, NULL);
	}
}
