// SPDX-License-Identifier: GPL-2.0-only
#include <linux/elf.h>
#include <linux/hashtable.h>
#include <linux/ktime.h>
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/moduleparam.h>
#include <linux/mutex.h>
#include <linux/random.h>
#include <linux/siphash.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

/* a table of 64 MiB takes a fifth of a second to check */
#define unwind_check_pause() cond_resched()

#include "table.h"

#define TABLE_GFP (GFP_KERNEL_ACCOUNT | __GFP_NORETRY | __GFP_NOWARN)

#ifdef CONFIG_X86_64
#define TABLE_MACHINE EM_X86_64
#else
#define TABLE_MACHINE EM_AARCH64
#endif

enum {
	TABLE_HASH_BITS = 8,
	TABLE_HASH_WORDS = 4,
	TABLE_PART_BYTES = 1 << 20,	/* between two chances for others to run */
	TABLE_LIMIT_FRACTION = 16,	/* of the memory */
	TABLE_LIMIT_MAX_MIB = 256,	/* unless somebody asks for more */
};

struct stacktap_table {
	u64 id;
	struct hlist_node node;
	struct list_head uses;
	u64 hash[TABLE_HASH_WORDS];
	u64 bytes;
	void *data;
	struct unwind_table view;
};

static DEFINE_MUTEX(tables_lock);
static DEFINE_XARRAY(tables_by_id);
static DEFINE_HASHTABLE(tables_by_hash, TABLE_HASH_BITS);
/* secret, so that nobody can make tables that collide */
static siphash_key_t tables_keys[TABLE_HASH_WORDS];
static u64 tables_last_id;
static u32 tables_count;
static u64 tables_rows;
static u64 tables_bytes;
static atomic_long_t tables_charged = ATOMIC_LONG_INIT(0);

static unsigned int table_limit_mib;
module_param(table_limit_mib, uint, 0444);
MODULE_PARM_DESC(table_limit_mib,
		 "limit of all unwind tables and mapping lists together in MiB, 0 for a 16th of the memory, at most 256; a session may take half");

static_assert(STACKTAP_MAX_TABLE_BYTES == UNWIND_TABLE_MAX_BYTES);
static_assert(sizeof_field(struct stacktap_table_load, hash) ==
	      sizeof_field(struct stacktap_table, hash));

static unsigned long table_limit(void)
{
	if (table_limit_mib)
		return (unsigned long)table_limit_mib << 20;
	return min(totalram_pages() / TABLE_LIMIT_FRACTION << PAGE_SHIFT,
		   (unsigned long)TABLE_LIMIT_MAX_MIB << 20);
}

int st_table_charge(struct stacktap_tables *tables, unsigned long own, unsigned long shared)
{
	unsigned long limit = table_limit();
	int err = 0;

	if ((unsigned long)atomic_long_add_return(own, &tables->charged) > limit / 2)
		err = -EDQUOT;
	if ((unsigned long)atomic_long_add_return(shared, &tables_charged) > limit && !err)
		err = -ENOSPC;
	if (err)
		st_table_uncharge(tables, own, shared);
	return err;
}

void st_table_uncharge(struct stacktap_tables *tables, unsigned long own, unsigned long shared)
{
	atomic_long_sub(own, &tables->charged);
	atomic_long_sub(shared, &tables_charged);
}

static unsigned long table_size(const struct stacktap_table *table)
{
	return sizeof(*table) + table->bytes;
}

static unsigned long table_use_size(const struct stacktap_table *table)
{
	return sizeof(struct stacktap_table_use) + table_size(table);
}

static void table_free(struct stacktap_table *table)
{
	kvfree(table->data);
	kfree(table);
}

static int table_copy(void *to, const void __user *from, u64 bytes)
{
	u64 done, part;

	for (done = 0; done < bytes; done += part) {
		part = min_t(u64, bytes - done, TABLE_PART_BYTES);
		if (copy_from_user(to + done, from + done, part))
			return -EFAULT;
		cond_resched();
	}
	return 0;
}

/* Of each part, over those of the parts before. */
static u64 table_hash(const void *data, u64 bytes, const siphash_key_t *key)
{
	u64 hash = bytes, done, part;

	for (done = 0; done < bytes; done += part) {
		part = min_t(u64, bytes - done, TABLE_PART_BYTES);
		hash = siphash_2u64(hash, siphash(data + done, part, key), key);
		cond_resched();
	}
	return hash;
}

static bool table_same(const struct stacktap_table *a, const struct stacktap_table *b)
{
	u64 done, part;

	if (a->bytes != b->bytes || memcmp(a->hash, b->hash, sizeof(a->hash)))
		return false;
	for (done = 0; done < a->bytes; done += part) {
		part = min_t(u64, a->bytes - done, TABLE_PART_BYTES);
		if (memcmp(a->data + done, b->data + done, part))
			return false;
		cond_resched();
	}
	return true;
}

/* A copy that nobody can change any more, checked. */
static int table_create(const void __user *data, u64 bytes, struct stacktap_table **ret_table)
{
	struct stacktap_table *table;
	unsigned int i;
	int err = -ENOMEM;

	table = kzalloc(sizeof(*table), TABLE_GFP);
	if (!table)
		return -ENOMEM;
	INIT_LIST_HEAD(&table->uses);
	table->bytes = bytes;
	table->data = kvmalloc(bytes, TABLE_GFP);
	if (!table->data)
		goto err_table;
	err = table_copy(table->data, data, bytes) ?:
	      unwind_table_check(table->data, bytes, &table->view);
	if (!err && table->view.machine != TABLE_MACHINE)
		err = -EINVAL;
	if (err)
		goto err_table;
	for (i = 0; i < TABLE_HASH_WORDS; i++)
		table->hash[i] = table_hash(table->data, bytes, &tables_keys[i]);
	*ret_table = table;
	return 0;

err_table:
	table_free(table);
	return err;
}

/* The hash is no proof: the bytes decide. */
static struct stacktap_table *table_find(const struct stacktap_table *like)
{
	struct stacktap_table *table;

	hash_for_each_possible(tables_by_hash, table, node, like->hash[0])
		if (table_same(table, like))
			return table;
	return NULL;
}

static int table_add(struct stacktap_table *table)
{
	int err = xa_insert(&tables_by_id, tables_last_id + 1, table, TABLE_GFP);

	if (err)
		return err;
	table->id = ++tables_last_id;
	hash_add(tables_by_hash, &table->node, table->hash[0]);
	tables_count++;
	tables_rows += table->view.row_count;
	tables_bytes += table_size(table);
	return 0;
}

static void table_remove(struct stacktap_table *table)
{
	tables_bytes -= table_size(table);
	tables_rows -= table->view.row_count;
	tables_count--;
	hash_del(&table->node);
	xa_erase(&tables_by_id, table->id);
}

static int table_use_create(struct stacktap_tables *tables, struct stacktap_table *table)
{
	struct stacktap_table_use *use;
	int err;

	err = st_table_charge(tables, table_use_size(table), sizeof(*use));
	if (err)
		return err;
	err = -ENOMEM;
	use = kzalloc(sizeof(*use), TABLE_GFP);
	if (!use)
		goto err_charge;
	use->view = table->view;
	use->table = table;
	use->held = true;
	err = xa_insert(&tables->uses, table->id, use, TABLE_GFP);
	if (err)
		goto err_use;
	list_add(&use->node, &table->uses);
	tables->count++;
	tables->bytes += table_use_size(table);
	return 0;

err_use:
	kfree(use);
err_charge:
	st_table_uncharge(tables, table_use_size(table), sizeof(*use));
	return err;
}

static void table_use_put(struct stacktap_tables *tables, struct stacktap_table_use *use)
{
	struct stacktap_table *table = use->table;

	if (use->held || use->mappings)
		return;
	tables->bytes -= table_use_size(table);
	tables->count--;
	xa_erase(&tables->uses, table->id);
	list_del(&use->node);
	st_table_uncharge(tables, table_use_size(table), sizeof(*use));
	kfree(use);
	if (!list_empty(&table->uses))
		return;
	table_remove(table);
	st_table_uncharge(tables, 0, table_size(table));
	table_free(table);
}

int st_table_load(struct stacktap_tables *tables, const void __user *data, u64 bytes, u64 *ret_id,
		  u8 *ret_hash)
{
	struct stacktap_table *table, *known;
	struct stacktap_table_use *use;
	int err;

	if (bytes > STACKTAP_MAX_TABLE_BYTES)
		return -E2BIG;
	if (bytes < sizeof(struct unwind_table_header))
		return -EINVAL;
	/* the session's own as well: reading from user memory may take for ever, in many threads */
	err = st_table_charge(tables, sizeof(*table) + bytes, sizeof(*table) + bytes);
	if (err)
		return err;
	err = table_create(data, bytes, &table);
	if (err) {
		st_table_uncharge(tables, sizeof(*table) + bytes, sizeof(*table) + bytes);
		return err;
	}
	st_table_uncharge(tables, table_size(table), 0);

	mutex_lock(&tables_lock);
	known = table_find(table);
	if (known) {
		st_table_uncharge(tables, 0, table_size(table));
		table_free(table);
		table = known;
	} else {
		err = table_add(table);
		if (err)
			goto err_table;
	}
	use = xa_load(&tables->uses, table->id);
	if (use)
		use->held = true;
	else
		err = table_use_create(tables, table);
	if (err && !known) {
		table_remove(table);
		goto err_table;
	}
	if (!err) {
		*ret_id = table->id;
		memcpy(ret_hash, table->hash, sizeof(table->hash));
	}
	mutex_unlock(&tables_lock);
	return err;

err_table:
	st_table_uncharge(tables, 0, table_size(table));
	table_free(table);
	mutex_unlock(&tables_lock);
	return err;
}

int st_table_drop(struct stacktap_tables *tables, u64 id)
{
	struct stacktap_table_use *use;
	int err = -ENOENT;

	mutex_lock(&tables_lock);
	use = xa_load(&tables->uses, id);
	if (use && use->held) {
		use->held = false;
		table_use_put(tables, use);
		err = 0;
	}
	mutex_unlock(&tables_lock);
	return err;
}

int st_table_get(struct stacktap_tables *tables, u64 id, const struct unwind_table **ret_view)
{
	struct stacktap_table_use *use;
	int err = -ENOENT;

	mutex_lock(&tables_lock);
	use = xa_load(&tables->uses, id);
	if (use && use->held) {
		use->mappings++;
		*ret_view = &use->view;
		err = 0;
	}
	mutex_unlock(&tables_lock);
	return err;
}

void st_table_put(struct stacktap_tables *tables, const struct unwind_table *view)
{
	/* drops the const that only walks need */
	struct stacktap_table_use *use = container_of((struct unwind_table *)view,
						      struct stacktap_table_use, view);

	mutex_lock(&tables_lock);
	use->mappings--;
	table_use_put(tables, use);
	mutex_unlock(&tables_lock);
}

void st_table_init(void)
{
	get_random_bytes(tables_keys, sizeof(tables_keys));
}

void st_table_open(struct stacktap_tables *tables)
{
	xa_init(&tables->uses);
}

void st_table_close(struct stacktap_tables *tables)
{
	struct stacktap_table_use *use;
	unsigned long id;

	mutex_lock(&tables_lock);
	xa_for_each(&tables->uses, id, use) {
		use->held = false;
		table_use_put(tables, use);
		cond_resched();
	}
	WARN_ON_ONCE(!xa_empty(&tables->uses));
	mutex_unlock(&tables_lock);
}

static void table_describe(const struct stacktap_table *table, struct stacktap_table_info *ret_info)
{
	const struct stacktap_table_use *use;

	*ret_info = (struct stacktap_table_info) {
		.id = table->id,
		.bytes = table_size(table),
		.rows = table->view.row_count,
	};
	list_for_each_entry(use, &table->uses, node) {
		ret_info->users++;
		ret_info->hit = max(ret_info->hit, table_hit_time(READ_ONCE(use->hit)));
	}
}

int st_table_next(struct stacktap_tables *only, u64 id, struct stacktap_table_info *ret_info)
{
	struct stacktap_table_use *use;
	struct stacktap_table *table;
	unsigned long index = id;
	int err = -ENOENT;

	mutex_lock(&tables_lock);
	if (only) {
		use = xa_find(&only->uses, &index, ULONG_MAX, XA_PRESENT);
		if (use) {
			table_describe(use->table, ret_info);
			ret_info->hit = table_hit_time(READ_ONCE(use->hit));
			err = 0;
		}
	} else {
		table = xa_find(&tables_by_id, &index, ULONG_MAX, XA_PRESENT);
		if (table) {
			table_describe(table, ret_info);
			err = 0;
		}
	}
	mutex_unlock(&tables_lock);
	return err;
}

void st_table_sum(struct stacktap_table_sums *ret_sums)
{
	mutex_lock(&tables_lock);
	ret_sums->count = tables_count;
	ret_sums->bytes = tables_bytes;
	ret_sums->rows = tables_rows;
	ret_sums->limit = table_limit();
	mutex_unlock(&tables_lock);
}

void st_table_sum_session(struct stacktap_tables *tables, struct stacktap_table_sums *ret_sums)
{
	mutex_lock(&tables_lock);
	ret_sums->count = tables->count;
	ret_sums->bytes = tables->bytes;
	ret_sums->rows = 0;
	ret_sums->limit = table_limit() / 2;
	mutex_unlock(&tables_lock);
}
