/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef STACKTAP_KMOD_SESSION_H
#define STACKTAP_KMOD_SESSION_H

#include <linux/atomic.h>
#include <linux/cpumask.h>
#include <linux/kref.h>
#include <linux/mutex.h>
#include <linux/rcupdate.h>
#include <linux/stacktap.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <stacktap/ceiling.h>
#include <stacktap/degrade.h>

#include "cpu.h"
#include "filter.h"
#include "source.h"
#include "table.h"

/* PREEMPT_RT promises how late an interrupt may be, so less of it is ours there */
#define SESSION_IS_STRICT IS_ENABLED(CONFIG_PREEMPT_RT)
/* of one user stack, at most */
#define SESSION_WALK_LIMIT_NS (SESSION_IS_STRICT ? 25000 : 100000)

struct netlink_ext_ack;

/* What events of one kind are about that are not sent yet: the first of them. */
struct stacktap_event_subject {
	unsigned int cpu;
	unsigned int source;
	unsigned int error;
	unsigned int count;	/* of them */
};

/*
 * One profiling request.
 *
 * Locks: session->lock > cpu_hotplug_lock (taken inside static keys, tracepoints and software
 * events) > perf's context locks. Hotplug callbacks never take session->lock, they queue @work.
 * That is why no path holds cpu_hotplug_lock when it comes here, and why every counter, of
 * whatever type, is made and released in process context under session->lock alone: a CPU that
 * goes offline in between kills its events, which @hotplug_seq of struct stacktap_cpu tells.
 *
 * Lifetime: the file owns a reference; netlink takes another for the length of one message.
 * release() stops everything, so the last put only frees memory.
 */
struct stacktap_session {
	u64 id;
	unsigned int slot;	/* its bit in the per-CPU words of defer.c */
	struct kref kref;
	struct rcu_head rcu;
	struct hlist_node hotplug_node;
	u32 owner_tgid;
	char owner_comm[STACKTAP_COMM_LEN];
	u64 created;

	struct mutex lock;	/* everything up to @armed */
	bool dead;
	u8 state;		/* enum stacktap_state; also read by poll() */
	u64 generation;
	unsigned int nr_sources;
	unsigned int nr_rings;	/* also read by poll() */
	struct stacktap_source sources[STACKTAP_MAX_SOURCES];
	bool probing;		/* holds the sched_switch probe */

	/* read by overflow handlers */
	bool armed;
	bool two_phase;		/* constant while armed, as the next five */
	u32 user_frames;
	u32 walk_limit_ns;
	u32 slice_bytes;
	u32 slice_max_bytes;	/* where the stack's extent is known */
	u32 slice_every;
	u32 kernel_frames;	/* moves while armed */
	struct ceiling_rate ceiling; /* of its own; moves while armed */
	struct stacktap_filter __rcu *filter;
	cpumask_var_t online;	/* set and cleared by the hotplug callbacks */
	cpumask_var_t seen;	/* ever online in this session's life */
	struct stacktap_cpu **cpus; /* [nr_cpu_ids]; entries appear once, with release */

	struct stacktap_tables tables;

	struct wait_queue_head wait;
	struct work_struct work; /* make counters agree with what is wanted */
	struct delayed_work policy_work;

	/* degrade.c; by @lock, but for events.c's look at the step */
	u32 budget_ns;		/* 0: none */
	u32 ceiling_permille;	/* what @ceiling is made of */
	struct degrade degrade;
	u64 degradations;	/* steps ever taken */
	u64 rates_refused;	/* times that perf did not let a counter follow */

	/* events.c */
	struct delayed_work events_work;
	unsigned long events;	/* bits of enum stacktap_event */
	unsigned long events_sent; /* jiffies */
	spinlock_t events_lock;	/* the subjects, with the bits of their kinds; not of LOSS and THROTTLE */
	struct stacktap_event_subject event_subjects[STACKTAP_EVENT_KINDS];
};

int st_session_create(struct stacktap_session **ret_session);
/* The owner is gone: stop, unpublish, put. */
void st_session_close(struct stacktap_session *session);

struct stacktap_session *st_session_get(u64 id);
/* The session with the lowest id that is at least @id, or NULL. */
struct stacktap_session *st_session_get_from(u64 id);
void st_session_put(struct stacktap_session *session);
unsigned int st_session_count(void);
/* moves whenever a session comes or goes, for consistent dumps */
unsigned int st_session_list_generation(void);

/* For the holder of @session's mutex. */
static inline struct stacktap_filter *session_filter(const struct stacktap_session *session)
{
	return rcu_dereference_protected(session->filter, lockdep_is_held(&session->lock));
}

static inline struct stacktap_cpu *session_cpu(const struct stacktap_session *session,
					       unsigned int cpu)
{
	/* pairs with the release in st_control_add_ring(): the ring is complete */
	return smp_load_acquire(&session->cpus[cpu]);
}

#endif /* STACKTAP_KMOD_SESSION_H */
