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
	MAPPINGS_HASH_BITS = 15,
	/* as many as the table has chains; a dead one pins up to three pages until it is swept up */
	MAPPINGS_MAX_SPACES = 1 << MAPPINGS_HASH_BITS,
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

struct spaces_chain {
	struct hlist_head head;		/* read under RCU */
	/* of what changes. Taken in a tracepoint, so on RT it must not sleep either; never two */
	raw_spinlock_t lock;
};

/* 512 KiB; made for the first list, and kept as long as the module. */
static struct spaces_chain *spaces;
static atomic_t spaces_count = ATOMIC_INIT(0);
static atomic_t spaces_added = ATOMIC_INIT(0);	/* by forks since the last sweep */
static struct stacktap_space *spaces_spare[MAPPINGS_SPARES]; /* forks cannot allocate; by xchg() */
static atomic_t spaces_spares = ATOMIC_INIT(0);

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
	int err = st_table_charge(tables, bytes, bytes);

	if (!err)
		list_charge_moved(tables, bytes);
	return err;
}

static void list_uncharge(struct stacktap_tables *tables, size_t bytes)
{
	list_charge_moved(tables, -(long)bytes);
	st_table_uncharge(tables, bytes, bytes);
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
			st_table_put(tables, list->mappings[i].table);
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
		err = st_table_get(list->tables, arg.table_id, &mapping->table);
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

/* Once there are lists. */
static struct spaces_chain *space_chain(const struct mm_struct *mm)
{
	return &spaces[hash_ptr(mm, MAPPINGS_HASH_BITS)];
}

static struct stacktap_space *space_find(const struct stacktap_tables *tables,
					 const struct mm_struct *mm)
{
	struct spaces_chain *chain = space_chain(mm);
	struct stacktap_space *space;

	hlist_for_each_entry_rcu(space, &chain->head, node, lockdep_is_held(&chain->lock))
		if (space->mm == mm && space->list->tables == tables)
			return space;
	return NULL;
}

const struct stacktap_list *st_mappings_find(const struct stacktap_tables *tables,
					     const struct mm_struct *mm)
{
	struct stacktap_space *space;

	/* a region with IRQs off is a read side of RCU */
	lockdep_assert_irqs_disabled();
	/* pairs with spaces_create() */
	if (!smp_load_acquire(&spaces))
		return NULL;
	space = space_find(tables, mm);
	return space ? space->list : NULL;
}

/* One of MAPPINGS_MAX_SPACES, which space_link() then uses. */
static bool spaces_reserve(void)
{
	if (atomic_inc_return(&spaces_count) <= MAPPINGS_MAX_SPACES)
		return true;
	atomic_dec(&spaces_count);
	return false;
}

static void space_link(struct stacktap_space *space)
{
	struct spaces_chain *chain = space_chain(space->mm);

	lockdep_assert_held(&chain->lock);
	hlist_add_head_rcu(&space->node, &chain->head);
	atomic_inc(&space->list->tables->lists);
}

static void space_unlink(struct stacktap_space *space)
{
	hlist_del_rcu(&space->node);
	atomic_dec(&space->list->tables->lists);
	atomic_dec(&spaces_count);
	llist_add(&space->dead, &mappings_dead);
}

static void space_free(struct stacktap_space *space)
{
	/* a spare one */
	if (!space->mm) {
		kfree(space);
		return;
	}
	list_uncharge(space->list->tables, sizeof(*space));
	mmdrop(space->mm);
	list_put(space->list);
	kfree(space);
}

static void spaces_refill(void)
{
	struct stacktap_space *space = NULL;
	unsigned int i;

	for (i = 0; i < MAPPINGS_SPARES; i++) {
		if (READ_ONCE(spaces_spare[i]))
			continue;
		if (!space)
			space = kmalloc(sizeof(*space), GFP_KERNEL | __GFP_NORETRY | __GFP_NOWARN);
		if (!space)
			return;
		if (cmpxchg(&spaces_spare[i], NULL, space))
			continue;
		atomic_inc(&spaces_spares);
		space = NULL;
	}
	kfree(space);
}

static struct stacktap_space *spaces_take_spare(void)
{
	/* CPUs begin to look at different places */
	unsigned int i, first = raw_smp_processor_id() * 29;
	struct stacktap_space *space;

	for (i = 0; i < MAPPINGS_SPARES && atomic_read(&spaces_spares) > 0; i++) {
		struct stacktap_space **slot = &spaces_spare[(first + i) % MAPPINGS_SPARES];

		space = READ_ONCE(*slot) ? xchg(slot, NULL) : NULL;
		if (!space)
			continue;
		atomic_dec(&spaces_spares);
		return space;
	}
	return NULL;
}

/* What spaces_take_spare() gave. Frees nothing: this is in the midst of a fork. */
static void spaces_return_spare(struct stacktap_space *space)
{
	unsigned int i;

	for (i = 0; i < MAPPINGS_SPARES; i++) {
		if (READ_ONCE(spaces_spare[i]) || cmpxchg(&spaces_spare[i], NULL, space))
			continue;
		atomic_inc(&spaces_spares);
		return;
	}
	/* somebody refilled it meanwhile */
	space->mm = NULL;
	llist_add(&space->dead, &mappings_dead);
}

static void spaces_drain(void)
{
	unsigned int i;

	for (i = 0; i < MAPPINGS_SPARES; i++)
		kfree(spaces_spare[i]);
}

/* Unlink what is dead, and everything of @tables. */
static void spaces_unlink(const struct stacktap_tables *tables)
{
	struct stacktap_space *space;
	struct hlist_node *next;
	unsigned int i;

	for (i = 0; spaces && i < MAPPINGS_MAX_SPACES; i++) {
		struct spaces_chain *chain = &spaces[i];

		if (i % 1024 == 1023)
			cond_resched();
		/* of @tables none may be left, and a fork may be about to bring one: see there */
		if (!tables && hlist_empty(&chain->head))
			continue;
		raw_spin_lock(&chain->lock);
		hlist_for_each_entry_safe(space, next, &chain->head, node)
			/* without users it never gets one again */
			if (!atomic_read(&space->mm->mm_users) || space->list->tables == tables)
				space_unlink(space);
		raw_spin_unlock(&chain->lock);
	}
}

static void mappings_reap(const struct stacktap_tables *tables)
{
	struct stacktap_space *space, *next;
	struct llist_node *dead;

	lockdep_assert_held(&mappings_lock);
	atomic_set(&spaces_added, 0);
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
	if (atomic_read(&spaces_count))
		spaces_refill();
	mutex_lock(&mappings_lock);
	mappings_reap(NULL);
	mutex_unlock(&mappings_lock);
	if (!atomic_read(&spaces_count))
		return;
	spaces_refill();
	queue_delayed_work(mappings_queue, &mappings_sweep_work, HZ);
}

static void mappings_sweep_soon(void)
{
	mod_delayed_work(mappings_queue, &mappings_sweep_work, 0);
}

/* Whether the child got it, or had one. */
static bool space_inherit(const struct stacktap_space *space, struct mm_struct *to)
{
	struct stacktap_tables *tables = space->list->tables;
	struct spaces_chain *chain = space_chain(to);
	struct stacktap_space *child;

	if (!spaces_reserve())
		return false;
	child = spaces_take_spare();
	if (!child)
		goto err_count;
	if (list_charge(tables, sizeof(*child)))
		goto err_child;
	mmgrab(to);
	/* as long as the parent's is in a chain, or was in this grace period, it has a reference */
	refcount_inc(&space->list->refs);
	child->mm = to;
	child->list = space->list;

	raw_spin_lock(&chain->lock);
	/*
	 * st_mappings_close() sets this and then takes the lock of each chain: it finds ours, or we see
	 * it. And the child is known before this runs: user space may have given it a list.
	 */
	if (READ_ONCE(tables->closed) || space_find(tables, to)) {
		raw_spin_unlock(&chain->lock);
		/* not the last ones: the parent's list and the child are there as long as this runs */
		refcount_dec(&space->list->refs);
		mmdrop(to);
		list_uncharge(tables, sizeof(*child));
		spaces_return_spare(child);
		atomic_dec(&spaces_count);
		return true;
	}
	space_link(child);
	raw_spin_unlock(&chain->lock);
	atomic_inc(&spaces_added);
	return true;

err_child:
	spaces_return_spare(child);
err_count:
	atomic_dec(&spaces_count);
	return false;
}

void st_mappings_inherit(const struct mm_struct *from, struct mm_struct *to)
{
	struct stacktap_space *space;
	bool soon = false, found = false;
	struct spaces_chain *chain;

	/* pairs with spaces_create() */
	if (!atomic_read(&spaces_count) || !smp_load_acquire(&spaces))
		return;
	rcu_read_lock();
	chain = space_chain(from);
	/* new ones come at the head of their chain: if it is the same one, they are behind us */
	hlist_for_each_entry_rcu(space, &chain->head, node) {
		if (space->mm != from)
			continue;
		found = true;
		if (space_inherit(space, to))
			continue;
		atomic64_inc(&space->list->tables->lists_refused);
		soon = true;
	}
	rcu_read_unlock();
	if (found)
		soon |= atomic_read(&spaces_added) >=
				MAPPINGS_SWEEP_ADDED + atomic_read(&spaces_count) / 4 ||
			atomic_read(&spaces_spares) < MAPPINGS_SPARES / 2;
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

int st_mappings_image(struct stacktap_image *image)
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

static int spaces_create(void)
{
	struct spaces_chain *chains;
	unsigned int i;

	lockdep_assert_held(&mappings_lock);
	if (spaces)
		return 0;
	chains = kvcalloc(MAPPINGS_MAX_SPACES, sizeof(*chains),
			  GFP_KERNEL | __GFP_NORETRY | __GFP_NOWARN);
	if (!chains)
		return -ENOMEM;
	for (i = 0; i < MAPPINGS_MAX_SPACES; i++)
		raw_spin_lock_init(&chains[i].lock);
	/* walks look for lists of sessions that have none */
	smp_store_release(&spaces, chains);
	return 0;
}

static int mappings_probe(struct stacktap_tables *tables)
{
	int err;

	mutex_lock(&mappings_lock);
	err = spaces_create();
	if (!err && !tables->probing)
		err = st_probe_hold_fork();
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

	if (!spaces_reserve())
		return -ENFILE;
	err = list_charge(tables, sizeof(*space));
	if (err)
		goto err_count;
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
err_count:
	atomic_dec(&spaces_count);
	return err;
}

int st_mappings_set(struct stacktap_tables *tables, const struct stacktap_mappings_set *set)
{
	struct stacktap_space *space = NULL, *old;
	struct spaces_chain *chain;
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

	chain = space_chain(mm);
	raw_spin_lock(&chain->lock);
	old = space_find(tables, mm);
	/* the new one is found before the old one until that is gone */
	if (space)
		space_link(space);
	if (old)
		space_unlink(old);
	raw_spin_unlock(&chain->lock);
	if (!space)
		mmdrop(mm);
	/* whatever there is to do or comes to be done: the work item goes on by itself from here */
	queue_delayed_work(mappings_queue, &mappings_sweep_work,
			   atomic_read(&spaces_spares) ? HZ : 0);
	return 0;

err_space:
	if (space) {
		list_put(space->list);
		list_uncharge(tables, sizeof(*space));
		kfree(space);
		atomic_dec(&spaces_count);
	}
	return err;
}

void st_mappings_forget(struct stacktap_tables *tables)
{
	mutex_lock(&mappings_lock);
	mappings_reap(tables);
	mutex_unlock(&mappings_lock);
}

void st_mappings_close(struct stacktap_tables *tables)
{
	/* before the locks of the chains, see space_inherit() */
	WRITE_ONCE(tables->closed, true);
	if (!tables->probing)
		return;
	st_mappings_forget(tables);
	st_probe_drop_fork();
}

void st_mappings_sum(u32 *ret_lists, u64 *ret_bytes)
{
	*ret_lists = atomic_read(&spaces_count);
	*ret_bytes = atomic_long_read(&mappings_bytes);
}

int st_mappings_init(void)
{
	mappings_queue = alloc_workqueue("stacktap", WQ_UNBOUND, 1);
	return mappings_queue ? 0 : -ENOMEM;
}

void st_mappings_exit(void)
{
	cancel_delayed_work_sync(&mappings_sweep_work);
	destroy_workqueue(mappings_queue);
	/* spare ones that were too many */
	st_mappings_forget(NULL);
	spaces_drain();
	kvfree(spaces);
}
