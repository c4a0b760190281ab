// SPDX-License-Identifier: GPL-2.0-only
#include <linux/hash.h>
#include <linux/llist.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/pid.h>
#include <linux/pid_namespace.h>
#include <linux/rculist.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/uaccess.h>
#include <linux/workqueue.h>

#include "compat/compat.h"
#include "mappings.h"
#include "probe.h"
#include "walk.h"

#define MAPPINGS_GFP (GFP_KERNEL_ACCOUNT | __GFP_NORETRY | __GFP_NOWARN)

enum {
	MAPPINGS_HASH_BITS = 10,
	MAPPINGS_MAX_SPACES = 32768,	/* a dead one pins up to three pages until it is swept up */
	MAPPINGS_SPARES = 256,		/* forks between two runs of the work item */
	MAPPINGS_SWEEP_ADDED = 64,	/* forks that bring the next sweep forward */
};

/* One address space with a list, for one session. */
struct stacktap_space {
	struct hlist_node node;
	struct llist_node dead;
	struct mm_struct *mm;
	struct stacktap_list *list;
};

static struct hlist_head spaces[1 << MAPPINGS_HASH_BITS];
/* Chains of @spaces and the next four. Taken in a tracepoint, so on RT it must not sleep either. */
static DEFINE_RAW_SPINLOCK(spaces_lock);
static unsigned int spaces_count;
static unsigned int spaces_added;	/* by forks since the last sweep */
static struct stacktap_space *spaces_spare[MAPPINGS_SPARES]; /* forks cannot allocate */
static unsigned int spaces_spares;

static LLIST_HEAD(mappings_dead);	/* unlinked, waiting for a grace period */
static DEFINE_MUTEX(mappings_lock);	/* one at a time frees; and the flags of the fork probe */
static atomic_long_t mappings_bytes = ATOMIC_LONG_INIT(0);
static atomic64_t mappings_last_id = ATOMIC64_INIT(0);
static struct workqueue_struct *mappings_queue;
static void mappings_sweep_run(struct work_struct *work);
static DECLARE_DEFERRABLE_WORK(mappings_sweep_work, mappings_sweep_run);

static size_t list_size(u32 count)
{
	return struct_size((struct stacktap_list *)NULL, mappings, count);
}

static void list_charge_moved(struct stacktap_tables *tables, long bytes)
{
	atomic_long_add(bytes, &tables->list_bytes);
	atomic_long_add(bytes, &mappings_bytes);
}

static int list_charge(struct stacktap_tables *tables, size_t bytes)
{
	int err = table_charge(tables, bytes, bytes);

	if (!err)
		list_charge_moved(tables, bytes);
	return err;
}

static void list_uncharge(struct stacktap_tables *tables, size_t bytes)
{
	list_charge_moved(tables, -(long)bytes);
	table_uncharge(tables, bytes, bytes);
}

/* After a grace period, or never published. */
static void list_put(struct stacktap_list *list)
{
	struct stacktap_tables *tables = list->tables;
	u32 i;

	if (!refcount_dec_and_test(&list->refs))
		return;
	for (i = 0; i < list->count; i++)
		if (list->mappings[i].table)
			table_put(tables, list->mappings[i].table);
	list_uncharge(tables, list_size(list->count));
	kvfree(list);
}

/* The next mapping of a list that ends at @end so far. */
static int list_append(struct stacktap_list *list,
		       const struct stacktap_mapping __user *user, u64 *end)
{
	struct unwind_mapping *mapping = &list->mappings[list->count];
	struct stacktap_mapping arg;
	int err;

	if (copy_from_user(&arg, user, sizeof(arg)))
		return -EFAULT;
	if (arg.start < *end || arg.start >= arg.end || arg.end > WALK_ADDRESS_LIMIT)
		return -EINVAL;
	mapping->start = arg.start;
	mapping->end = arg.end;
	mapping->bias = arg.bias;
	mapping->table = NULL;
	if (arg.table_id) {
		err = table_get(list->tables, arg.table_id, &mapping->table);
		if (err)
			return err;
	}
	list->count++;
	*end = arg.end;
	return 0;
}

static int list_create(struct stacktap_tables *tables, const struct stacktap_mappings_set *set,
		       struct stacktap_list **ret_list)
{
	const struct stacktap_mapping __user *user = u64_to_user_ptr(set->mappings);
	size_t bytes = list_size(set->count);
	struct stacktap_list *list;
	u64 end = 0;
	u32 i;
	int err;

	err = list_charge(tables, bytes);
	if (err)
		return err;
	list = kvmalloc(bytes, MAPPINGS_GFP);
	if (!list) {
		list_uncharge(tables, bytes);
		return -ENOMEM;
	}
	refcount_set(&list->refs, 1);
	list->id = atomic64_inc_return(&mappings_last_id);
	list->tables = tables;
	list->generation = set->generation;
	list->count = 0;
	for (i = 0; i < set->count; i++) {
		err = list_append(list, &user[i], &end);
		if (err) {
			/* list_put() gives back what the list has, not what it was to have */
			list_uncharge(tables, bytes - list_size(list->count));
			list_put(list);
			return err;
		}
		if (!(i % 256))
			cond_resched();
	}
	*ret_list = list;
	return 0;
}

static struct hlist_head *space_chain(const struct mm_struct *mm)
{
	return &spaces[hash_ptr(mm, MAPPINGS_HASH_BITS)];
}

static struct stacktap_space *space_find(const struct stacktap_tables *tables,
					 const struct mm_struct *mm)
{
	struct stacktap_space *space;

	hlist_for_each_entry_rcu(space, space_chain(mm), node, lockdep_is_held(&spaces_lock))
		if (space->mm == mm && space->list->tables == tables)
			return space;
	return NULL;
}

const struct stacktap_list *mappings_find(const struct stacktap_tables *tables,
					  const struct mm_struct *mm)
{
	struct stacktap_space *space;

	/* a region with IRQs off is a read side of RCU */
	lockdep_assert_irqs_disabled();
	space = space_find(tables, mm);
	return space ? space->list : NULL;
}

static void space_link(struct stacktap_space *space)
{
	lockdep_assert_held(&spaces_lock);
	hlist_add_head_rcu(&space->node, space_chain(space->mm));
	atomic_inc(&space->list->tables->lists);
	spaces_count++;
}

static void space_unlink(struct stacktap_space *space)
{
	lockdep_assert_held(&spaces_lock);
	hlist_del_rcu(&space->node);
	atomic_dec(&space->list->tables->lists);
	spaces_count--;
	llist_add(&space->dead, &mappings_dead);
}

static void space_free(struct stacktap_space *space)
{
	list_uncharge(space->list->tables, sizeof(*space));
	mmdrop(space->mm);
	list_put(space->list);
	kfree(space);
}

static void spaces_refill(void)
{
	struct stacktap_space *space;

	while (READ_ONCE(spaces_spares) < MAPPINGS_SPARES) {
		space = kmalloc(sizeof(*space), GFP_KERNEL | __GFP_NORETRY | __GFP_NOWARN);
		if (!space)
			return;
		raw_spin_lock(&spaces_lock);
		if (spaces_spares < MAPPINGS_SPARES) {
			spaces_spare[spaces_spares++] = space;
			space = NULL;
		}
		raw_spin_unlock(&spaces_lock);
		kfree(space);
	}
}

static void spaces_drain(void)
{
	while (spaces_spares)
		kfree(spaces_spare[--spaces_spares]);
}

/* Unlink what is dead, and everything of @tables. */
static void spaces_unlink(const struct stacktap_tables *tables)
{
	struct stacktap_space *space;
	struct hlist_node *next;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(spaces); i++) {
		if (hlist_empty(&spaces[i]))
			continue;
		raw_spin_lock(&spaces_lock);
		hlist_for_each_entry_safe(space, next, &spaces[i], node)
			/* without users it never gets one again */
			if (!atomic_read(&space->mm->mm_users) || space->list->tables == tables)
				space_unlink(space);
		raw_spin_unlock(&spaces_lock);
		cond_resched();
	}
}

static void mappings_reap(const struct stacktap_tables *tables)
{
	struct stacktap_space *space, *next;
	struct llist_node *dead;

	lockdep_assert_held(&mappings_lock);
	WRITE_ONCE(spaces_added, 0);
	spaces_unlink(tables);
	dead = llist_del_all(&mappings_dead);
	if (!dead)
		return;
	synchronize_rcu();
	llist_for_each_entry_safe(space, next, dead, dead)
		space_free(space);
}

static void mappings_sweep_run(struct work_struct *work)
{
	/* before the grace period as well: forks go on meanwhile */
	if (READ_ONCE(spaces_count))
		spaces_refill();
	mutex_lock(&mappings_lock);
	mappings_reap(NULL);
	mutex_unlock(&mappings_lock);
	if (!READ_ONCE(spaces_count))
		return;
	spaces_refill();
	queue_delayed_work(mappings_queue, &mappings_sweep_work, HZ);
}

static void mappings_sweep_soon(void)
{
	mod_delayed_work(mappings_queue, &mappings_sweep_work, 0);
}

void mappings_inherit(const struct mm_struct *from, struct mm_struct *to)
{
	struct stacktap_space *space, *child;
	struct stacktap_tables *tables;
	bool soon = false;

	if (!READ_ONCE(spaces_count))
		return;
	raw_spin_lock(&spaces_lock);
	/* new ones come at the head of their chain: if it is the same one, they are behind us */
	hlist_for_each_entry(space, space_chain(from), node) {
		if (space->mm != from)
			continue;
		tables = space->list->tables;
		/* the child is known before this runs: user space may have given it a list */
		if (tables->closed || space_find(tables, to))
			continue;
		if (!spaces_spares || spaces_count >= MAPPINGS_MAX_SPACES ||
		    list_charge(tables, sizeof(*child))) {
			atomic64_inc(&tables->lists_refused);
			soon = true;
			continue;
		}
		child = spaces_spare[--spaces_spares];
		mmgrab(to);
		refcount_inc(&space->list->refs);
		child->mm = to;
		child->list = space->list;
		space_link(child);
		WRITE_ONCE(spaces_added, spaces_added + 1);
	}
	soon |= spaces_added >= MAPPINGS_SWEEP_ADDED + spaces_count / 4 ||
		spaces_spares < MAPPINGS_SPARES / 2;
	raw_spin_unlock(&spaces_lock);
	if (soon)
		mappings_sweep_soon();
}

/*
 * The process @image->tgid, with a reference to the memory of its mm; -ESTALE during exec, when the
 * mm may be the next image's already while everything else is still the last one's.
 */
static int image_find(struct stacktap_image *image, struct mm_struct **ret_mm)
{
	struct task_struct *leader, *task;
	struct mm_struct *mm = NULL;
	int err = -ESRCH;

	rcu_read_lock();
	leader = pid_task(find_pid_ns(image->tgid, &init_pid_ns), PIDTYPE_TGID);
	if (!leader)
		goto out;
	/* the leader may have ended before its threads */
	for_each_thread(leader, task) {
		image->start_time = leader->start_boottime;
		image->exec_id = READ_ONCE(task->self_exec_id);
		mm = get_task_mm(task);
		if (mm)
			break;
	}
	if (!mm)
		goto out;
	/*
	 * Who executes sets in_execve first, then has the new mm, then the new id, and then clears
	 * in_execve. Both changes of mm and the look at it are under the task's lock.
	 */
	smp_rmb(); /* mm before in_execve, against the other order of who executes */
	err = task->in_execve ? -ESTALE : 0;
	smp_rmb(); /* in_execve before the id, likewise */
	if (READ_ONCE(task->self_exec_id) != image->exec_id)
		err = -ESTALE;
out:
	rcu_read_unlock();
	if (err && mm)
		mmput(mm);
	*ret_mm = mm;
	return err;
}

int mappings_image(struct stacktap_image *image)
{
	struct mm_struct *mm;
	int err = image_find(image, &mm);

	if (!err)
		mmput(mm);
	return err;
}

/* The mm of the image that @set names, pinned, but not its memory. */
static int image_grab(const struct stacktap_mappings_set *set, struct mm_struct **ret_mm)
{
	struct stacktap_image image = { .tgid = set->tgid };
	struct mm_struct *mm;
	int err = image_find(&image, &mm);

	if (err)
		return err;
	if (image.start_time != set->start_time || image.exec_id != set->exec_id)
		err = -ESTALE;
	else
		mmgrab(mm);
	mmput(mm);
	*ret_mm = mm;
	return err;
}

static int mappings_probe(struct stacktap_tables *tables)
{
	int err = 0;

	mutex_lock(&mappings_lock);
	if (!tables->probing)
		err = probe_hold_fork();
	if (!err)
		tables->probing = true;
	mutex_unlock(&mappings_lock);
	return err;
}

static int space_create(struct stacktap_tables *tables, const struct stacktap_mappings_set *set,
			struct stacktap_space **ret_space)
{
	struct stacktap_space *space;
	int err;

	if (READ_ONCE(spaces_count) >= MAPPINGS_MAX_SPACES)
		return -ENFILE;
	err = list_charge(tables, sizeof(*space));
	if (err)
		return err;
	err = -ENOMEM;
	space = kmalloc(sizeof(*space), MAPPINGS_GFP);
	if (!space)
		goto err_charge;
	err = list_create(tables, set, &space->list);
	if (err)
		goto err_space;
	*ret_space = space;
	return 0;

err_space:
	kfree(space);
err_charge:
	list_uncharge(tables, sizeof(*space));
	return err;
}

int mappings_set(struct stacktap_tables *tables, const struct stacktap_mappings_set *set)
{
	struct stacktap_space *space = NULL, *old;
	struct mm_struct *mm;
	int err;

	if (!set->generation)
		return -EINVAL;
	if (set->count > STACKTAP_MAX_MAPPINGS)
		return -E2BIG;
	if (!READ_ONCE(tables->probing)) {
		err = mappings_probe(tables);
		if (err)
			return err;
	}
	if (set->count) {
		err = space_create(tables, set, &space);
		if (err == -EDQUOT || err == -ENOSPC || err == -ENFILE) {
			/* what has died and was not swept up yet counts, too */
			mutex_lock(&mappings_lock);
			mappings_reap(NULL);
			mutex_unlock(&mappings_lock);
			err = space_create(tables, set, &space);
		}
		if (err)
			return err;
	}
	err = image_grab(set, &mm);
	if (err)
		goto err_space;
	if (space)
		space->mm = mm;

	raw_spin_lock(&spaces_lock);
	old = space_find(tables, mm);
	if (space && !old && spaces_count >= MAPPINGS_MAX_SPACES) {
		raw_spin_unlock(&spaces_lock);
		mmdrop(mm);
		err = -ENFILE;
		goto err_space;
	}
	/* the new one is found before the old one until that is gone */
	if (space)
		space_link(space);
	if (old)
		space_unlink(old);
	raw_spin_unlock(&spaces_lock);
	if (!space)
		mmdrop(mm);
	/* whatever there is to do or comes to be done: the work item goes on by itself from here */
	queue_delayed_work(mappings_queue, &mappings_sweep_work, spaces_spares ? HZ : 0);
	return 0;

err_space:
	if (space) {
		list_put(space->list);
		list_uncharge(tables, sizeof(*space));
		kfree(space);
	}
	return err;
}

void mappings_close(struct stacktap_tables *tables)
{
	raw_spin_lock(&spaces_lock);
	tables->closed = true;
	raw_spin_unlock(&spaces_lock);

	mutex_lock(&mappings_lock);
	mappings_reap(tables);
	mutex_unlock(&mappings_lock);
	if (tables->probing)
		probe_drop_fork();
}

void mappings_sum(u32 *ret_lists, u64 *ret_bytes)
{
	*ret_lists = READ_ONCE(spaces_count);
	*ret_bytes = atomic_long_read(&mappings_bytes);
}

int mappings_init(void)
{
	mappings_queue = alloc_workqueue("stacktap", WQ_UNBOUND, 1);
	return mappings_queue ? 0 : -ENOMEM;
}

void mappings_exit(void)
{
	cancel_delayed_work_sync(&mappings_sweep_work);
	destroy_workqueue(mappings_queue);
	spaces_drain();
}
