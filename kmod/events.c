// SPDX-License-Identifier: GPL-2.0-only
#include <linux/ktime.h>
#include <net/genetlink.h>

#include "compat/compat.h"
#include "events.h"
#include "netlink.h"
#include "report.h"

enum {
	EVENTS_INTERVAL = HZ / 10,
};

struct event {
	enum stacktap_event kind;
	bool has_cpu;
	unsigned int cpu;
	bool has_source;
	unsigned int source;
	u64 count;
	u64 lost[STACKTAP_LOST_REASONS]; /* what is in @count, by reason */
	unsigned int error;
};

static int event_put(struct sk_buff *skb, const struct stacktap_session *session,
		     const struct event *event)
{
	if (nla_put_u8(skb, STACKTAP_A_EVENT_KIND, event->kind) ||
	    nla_put_u64_64bit(skb, STACKTAP_A_EVENT_TIME, ktime_get_mono_fast_ns(),
			      STACKTAP_A_PAD) ||
	    nla_put_u64_64bit(skb, STACKTAP_A_SESSION_ID, session->id, STACKTAP_A_PAD) ||
	    (event->has_cpu && nla_put_u32(skb, STACKTAP_A_CPU_ID, event->cpu)) ||
	    (event->has_source && nla_put_u32(skb, STACKTAP_A_SRC_ID, event->source)) ||
	    (event->count && nla_put_u64_64bit(skb, STACKTAP_A_EVENT_COUNT, event->count,
					       STACKTAP_A_PAD)) ||
	    (event->kind == STACKTAP_EVENT_LOSS &&
	     st_report_array(skb, STACKTAP_A_EVENT_LOST, event->lost, STACKTAP_LOST_REASONS)) ||
	    (event->error && nla_put_u32(skb, STACKTAP_A_ERRNO, event->error)))
		return -EMSGSIZE;
	return 0;
}

/* An event that cannot be sent for want of memory is lost; nothing depends on events. */
static void event_send(const struct stacktap_session *session, const struct event *event)
{
	struct sk_buff *skb;
	void *header;

	if (!COMPAT_MCAST_GROUPS || !genl_has_listeners(&st_netlink_family, &init_net, 0))
		return;
	skb = genlmsg_new(GENLMSG_DEFAULT_SIZE, GFP_KERNEL);
	if (!skb)
		return;
	header = genlmsg_put(skb, 0, 0, &st_netlink_family, 0, STACKTAP_CMD_EVENT);
	if (!header || event_put(skb, session, event)) {
		nlmsg_free(skb);
		return;
	}
	genlmsg_end(skb, header);
	genlmsg_multicast_netns(&st_netlink_family, &init_net, skb, 0, 0, GFP_KERNEL);
}

static void event_add(struct event *event, const struct stacktap_counter *counter, u64 count)
{
	if (!count)
		return;
	if (!event->has_cpu) {
		event->has_cpu = true;
		event->cpu = counter->cpu->cpu;
		event->has_source = true;
		event->source = counter->index;
	}
	event->count += count;
}

/* What @counter lost or was throttled since the last message of that kind. */
static void event_add_counter(struct event *event, struct stacktap_counter *counter)
{
	unsigned int i;
	u64 now;

	if (event->kind == STACKTAP_EVENT_THROTTLE) {
		now = local64_read(&counter->throttled);
		event_add(event, counter, now - counter->throttled_announced);
		counter->throttled_announced = now;
		return;
	}
	for (i = 0; i < STACKTAP_LOST_REASONS; i++) {
		now = local64_read(&counter->lost[i]);
		event->lost[i] += now - counter->lost_announced[i];
		event_add(event, counter, now - counter->lost_announced[i]);
		counter->lost_announced[i] = now;
	}
}

static void event_sum(struct stacktap_session *session, struct event *event)
{
	unsigned int cpu, i;

	for_each_possible_cpu(cpu) {
		struct stacktap_cpu *pc = session_cpu(session, cpu);

		for (i = 0; pc && i < STACKTAP_MAX_SOURCES; i++)
			event_add_counter(event, &pc->counters[i]);
	}
}

static void event_tell(struct stacktap_session *session, enum stacktap_event kind,
		       const struct stacktap_event_subject *subject)
{
	struct event event = { .kind = kind };

	switch (kind) {
	case STACKTAP_EVENT_LOSS:
	case STACKTAP_EVENT_THROTTLE:
		event_sum(session, &event);
		/* noted after it was told with those before */
		if (!event.count)
			return;
		break;
	case STACKTAP_EVENT_STALL:
	case STACKTAP_EVENT_MULTIPLEX:
	case STACKTAP_EVENT_MULTIPLEX_END:
	case STACKTAP_EVENT_FALLBACK:
	case STACKTAP_EVENT_FALLBACK_END:
		event.has_source = true;
		event.source = subject->source;
		fallthrough;
	case STACKTAP_EVENT_NO_COUNTER:
	case STACKTAP_EVENT_CPU_ONLINE:
	case STACKTAP_EVENT_CPU_OFFLINE:
		event.has_cpu = true;
		event.cpu = subject->cpu;
		event.count = subject->count;
		event.error = subject->error;
		break;
	case STACKTAP_EVENT_DEGRADED:
	case STACKTAP_EVENT_RECOVERED:
		event.count = READ_ONCE(session->degrade.step);
		break;
	default:
		break;
	}
	event_send(session, &event);
}

static void events_send(struct stacktap_session *session)
{
	const unsigned long ends = BIT(STACKTAP_EVENT_SESSION_STOPPED) |
				   BIT(STACKTAP_EVENT_SESSION_DESTROYED);
	struct stacktap_event_subject subjects[STACKTAP_EVENT_KINDS];
	unsigned long noted;
	unsigned int kind;

	/*
	 * Cleared before the counts are read, which xchg() orders: what comes later is noted again.
	 * Whoever sees that a session was stopped sees what was noted before.
	 */
	spin_lock(&session->events_lock);
	noted = xchg(&session->events, 0);
	memcpy(subjects, session->event_subjects, sizeof(subjects));
	for (kind = 0; kind < STACKTAP_EVENT_KINDS; kind++)
		session->event_subjects[kind].count = 0;
	spin_unlock(&session->events_lock);

	for (kind = 1; kind < STACKTAP_EVENT_KINDS; kind++)
		if (noted & ~ends & BIT(kind))
			event_tell(session, kind, &subjects[kind]);
	/* behind them nothing comes */
	for (kind = 1; kind < STACKTAP_EVENT_KINDS; kind++)
		if (noted & ends & BIT(kind))
			event_tell(session, kind, &subjects[kind]);
}

static void events_run(struct work_struct *work)
{
	struct stacktap_session *session = container_of(to_delayed_work(work),
							struct stacktap_session, events_work);

	WRITE_ONCE(session->events_sent, jiffies);
	events_send(session);
}

void st_events_kick(struct stacktap_session *session)
{
	unsigned long next = READ_ONCE(session->events_sent) + EVENTS_INTERVAL;

	if (!READ_ONCE(session->events))
		return;
	queue_delayed_work(COMPAT_UNBOUND_WQ, &session->events_work,
			   time_before(jiffies, next) ? next - jiffies : 0);
}

static void events_raise_about(struct stacktap_session *session, enum stacktap_event kind,
			       unsigned int cpu, unsigned int source, unsigned int error)
{
	struct stacktap_event_subject *subject = &session->event_subjects[kind];

	spin_lock(&session->events_lock);
	if (events_note(session, kind)) {
		subject->cpu = cpu;
		subject->source = source;
		subject->error = error;
	}
	subject->count++;
	spin_unlock(&session->events_lock);
	st_events_kick(session);
}

void st_events_raise(struct stacktap_session *session, enum stacktap_event kind, unsigned int cpu)
{
	events_raise_about(session, kind, cpu, 0, 0);
}

void st_events_raise_refused(const struct stacktap_cpu *cpu)
{
	events_raise_about(cpu->session, STACKTAP_EVENT_NO_COUNTER, cpu->cpu, 0, cpu->error);
}

void st_events_raise_counter(const struct stacktap_counter *counter, enum stacktap_event kind,
			     unsigned int error)
{
	events_raise_about(counter->cpu->session, kind, counter->cpu->cpu, counter->index, error);
}

void st_events_init(struct stacktap_session *session)
{
	INIT_DELAYED_WORK(&session->events_work, events_run);
	spin_lock_init(&session->events_lock);
	session->events_sent = jiffies - EVENTS_INTERVAL;
}

void st_events_close(struct stacktap_session *session)
{
	cancel_delayed_work_sync(&session->events_work);
	events_note(session, STACKTAP_EVENT_SESSION_DESTROYED);
	events_send(session);
}
