// SPDX-License-Identifier: GPL-2.0-only
/*
 * CPUs coming and going. The state is above perf's: on the way up perf is ready when we are called,
 * on the way down we are called while perf and interrupts still work. The callbacks run on the CPU
 * itself, create and release nothing and take no lock that a counter's creation holds.
 */
#include <linux/cpuhotplug.h>
#include <linux/poll.h>

#include "capture.h"
#include "compat/compat.h"
#include "events.h"
#include "hotplug.h"
#include "record.h"
#include "session.h"

static enum cpuhp_state hotplug_state;

static int hotplug_online(unsigned int cpu, struct hlist_node *node)
{
	struct stacktap_session *session = hlist_entry(node, struct stacktap_session,
						       hotplug_node);

	cpumask_set_cpu(cpu, session->seen);
	cpumask_set_cpu(cpu, session->online);
	/* not yet published: this is st_hotplug_add() asking for the CPUs that are online */
	if (!READ_ONCE(session->id))
		return 0;
	queue_work(COMPAT_UNBOUND_WQ, &session->work);
	st_events_raise(session, STACKTAP_EVENT_CPU_ONLINE, cpu);
	/* POLLPRI: it may lack a ring */
	wake_up_poll(&session->wait, EPOLLPRI);
	return 0;
}

static int hotplug_offline(unsigned int cpu, struct hlist_node *node)
{
	struct stacktap_session *session = hlist_entry(node, struct stacktap_session,
						       hotplug_node);
	struct stacktap_cpu *pc;
	struct cost_moment began;
	unsigned long flags;
	bool is_left;

	cpumask_clear_cpu(cpu, session->online);
	/* pairs with the barrier in st_control_add_ring(): it sees the bit or we see the ring */
	smp_mb__after_atomic();
	pc = session_cpu(session, cpu);
	if (pc) {
		/* handlers stash no more on this CPU, so this empties it for good */
		do {
			local_irq_save(flags);
			began = cost_moment();
			is_left = st_capture_drain_cpu(pc, began, SESSION_WALK_LIMIT_NS);
			local_irq_restore(flags);
		} while (is_left);
		local_irq_save(flags);
		/* pairs with st_counter_create(): who sees the new number sees the bit cleared */
		smp_store_release(&pc->hotplug_seq, pc->hotplug_seq + 1);
		st_record_owe_state(pc, STACKTAP_CPU_OFFLINE);
		record_pay(pc);
		local_irq_restore(flags);
	}
	/* not yet published: it has no number to tell, and nothing that would have to go */
	if (!READ_ONCE(session->id))
		return 0;
	queue_work(COMPAT_UNBOUND_WQ, &session->work);
	st_events_raise(session, STACKTAP_EVENT_CPU_OFFLINE, cpu);
	return 0;
}

int st_hotplug_add(struct stacktap_session *session)
{
	return cpuhp_state_add_instance(hotplug_state, &session->hotplug_node);
}

void st_hotplug_remove(struct stacktap_session *session)
{
	cpuhp_state_remove_instance_nocalls(hotplug_state, &session->hotplug_node);
}

int st_hotplug_init(void)
{
	int state = cpuhp_setup_state_multi(CPUHP_AP_ONLINE_DYN, "stacktap:online",
					    hotplug_online, hotplug_offline);

	if (state < 0)
		return state;
	hotplug_state = state;
	return 0;
}

void st_hotplug_exit(void)
{
	cpuhp_remove_multi_state(hotplug_state);
}
