// SPDX-License-Identifier: GPL-2.0-only
#include <linux/bitmap.h>
#include <linux/cpu.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/ktime.h>
#include <linux/xarray.h>

#include "control.h"
#include "defer.h"
#include "degrade.h"
#include "events.h"
#include "hotplug.h"
#include "mappings.h"
#include "policy.h"
#include "session.h"

static DEFINE_XARRAY(sessions);		/* by id; looked up under RCU */
static DEFINE_MUTEX(sessions_lock);	/* slots and ids */
static DECLARE_BITMAP(sessions_slots, STACKTAP_MAX_SESSIONS);
static u64 sessions_last_id;
static atomic_t sessions_generation = ATOMIC_INIT(1);

static int session_publish(struct stacktap_session *session)
{
	unsigned int slot;
	int err = -EMFILE;
	u64 id;

	mutex_lock(&sessions_lock);
	slot = find_first_zero_bit(sessions_slots, STACKTAP_MAX_SESSIONS);
	if (slot < STACKTAP_MAX_SESSIONS) {
		id = ++sessions_last_id;
		session->slot = slot;
		WRITE_ONCE(session->id, id);
		err = xa_insert(&sessions, id, session, GFP_KERNEL);
		if (!err)
			__set_bit(slot, sessions_slots);
	}
	mutex_unlock(&sessions_lock);
	if (err)
		return err;
	st_defer_attach(session);
	atomic_inc(&sessions_generation);
	return 0;
}

static void session_unpublish(struct stacktap_session *session)
{
	xa_erase(&sessions, session->id);
	atomic_inc(&sessions_generation);
	st_defer_detach(session);
	mutex_lock(&sessions_lock);
	__clear_bit(session->slot, sessions_slots);
	mutex_unlock(&sessions_lock);
}

static void session_free(struct stacktap_session *session)
{
	unsigned int cpu;

	for (cpu = 0; cpu < nr_cpu_ids; cpu++)
		st_cpu_destroy(session->cpus[cpu]);
	st_filter_destroy(rcu_dereference_protected(session->filter, true));
	kvfree(session->cpus);
	free_cpumask_var(session->seen);
	free_cpumask_var(session->online);
	mutex_destroy(&session->lock);
	/* st_session_get() may still look at the kref */
	kfree_rcu(session, rcu);
}

/*
 * perf takes the lock of CPU hotplug to make a counter, thus inside ours. lockdep is told before any
 * counter is made, so that it objects to whatever takes them the other way round at the first try.
 */
static void session_lock_order(struct stacktap_session *session)
{
	if (!IS_ENABLED(CONFIG_PROVE_LOCKING))
		return;
	mutex_lock(&session->lock);
	cpus_read_lock();
	cpus_read_unlock();
	mutex_unlock(&session->lock);
}

int st_session_create(struct stacktap_session **ret_session)
{
	struct stacktap_session *session;
	int err = -ENOMEM;

	session = kzalloc(sizeof(*session), GFP_KERNEL_ACCOUNT);
	if (!session)
		return -ENOMEM;
	if (!zalloc_cpumask_var(&session->online, GFP_KERNEL_ACCOUNT))
		goto err_session;
	if (!zalloc_cpumask_var(&session->seen, GFP_KERNEL_ACCOUNT))
		goto err_online;
	session->cpus = kvcalloc(nr_cpu_ids, sizeof(*session->cpus), GFP_KERNEL_ACCOUNT);
	if (!session->cpus)
		goto err_seen;

	kref_init(&session->kref);
	mutex_init(&session->lock);
	session_lock_order(session);
	init_waitqueue_head(&session->wait);
	INIT_WORK(&session->work, st_control_work);
	st_events_init(session);
	st_policy_init(session);
	st_degrade_init(session);
	st_table_open(&session->tables);
	session->state = STACKTAP_STATE_STOPPED;
	session->user_frames = STACKTAP_DEFAULT_USER_FRAMES;
	session->walk_limit_ns = SESSION_WALK_LIMIT_NS;
	session->created = ktime_get_ns();
	session->owner_tgid = task_tgid_nr(current);
	get_task_comm(session->owner_comm, current);

	err = st_hotplug_add(session);
	if (err)
		goto err_cpus;
	err = session_publish(session);
	if (err)
		goto err_hotplug;
	st_events_raise(session, STACKTAP_EVENT_SESSION_CREATED, 0);
	*ret_session = session;
	return 0;

err_hotplug:
	st_hotplug_remove(session);
	/* a CPU may have come or gone between the two */
	cancel_work_sync(&session->work);
	cancel_delayed_work_sync(&session->events_work);
err_cpus:
	kvfree(session->cpus);
err_seen:
	free_cpumask_var(session->seen);
err_online:
	free_cpumask_var(session->online);
err_session:
	kfree(session);
	return err;
}

void st_session_close(struct stacktap_session *session)
{
	mutex_lock(&session->lock);
	session->dead = true;
	if (session->state == STACKTAP_STATE_RUNNING)
		st_control_stop(session);
	mutex_unlock(&session->lock);

	st_hotplug_remove(session);
	session_unpublish(session);
	st_mappings_close(&session->tables);
	st_table_close(&session->tables);
	/* with callbacks, counters and the slot gone nobody queues these again */
	st_policy_close(session);
	cancel_work_sync(&session->work);
	st_events_close(session);
	st_session_put(session);
}

struct stacktap_session *st_session_get(u64 id)
{
	struct stacktap_session *session;

	rcu_read_lock();
	session = xa_load(&sessions, id);
	if (session && !kref_get_unless_zero(&session->kref))
		session = NULL;
	rcu_read_unlock();
	return session;
}

struct stacktap_session *st_session_get_from(u64 id)
{
	struct stacktap_session *session;
	unsigned long index = id;

	rcu_read_lock();
	xa_for_each_start(&sessions, index, session, id)
		if (kref_get_unless_zero(&session->kref))
			break;
	rcu_read_unlock();
	return session;
}

static void session_release(struct kref *kref)
{
	session_free(container_of(kref, struct stacktap_session, kref));
}

void st_session_put(struct stacktap_session *session)
{
	kref_put(&session->kref, session_release);
}

unsigned int st_session_count(void)
{
	unsigned int count;

	mutex_lock(&sessions_lock);
	count = bitmap_weight(sessions_slots, STACKTAP_MAX_SESSIONS);
	mutex_unlock(&sessions_lock);
	return count;
}

unsigned int st_session_list_generation(void)
{
	return atomic_read(&sessions_generation);
}
