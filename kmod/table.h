/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef STACKTAP_KMOD_TABLE_H
#define STACKTAP_KMOD_TABLE_H

#include <linux/atomic.h>
#include <linux/stacktap.h>
#include <linux/types.h>
#include <linux/xarray.h>
#include <stacktap/unwind_table.h>

/*
 * The module-wide registry of unwind tables, and what each session has of it. A table lives as long
 * as a session uses it. Walks reach tables only through mapping lists, and a list lets go of its
 * tables only after a grace period; so a table that nobody uses can be freed on the spot.
 *
 * Locks: session->lock > the registry's own, which is a mutex. Nothing else is taken inside but what
 * the allocators take.
 */

/* What one session has loaded. Part of struct stacktap_session. */
struct stacktap_tables {
	struct xarray uses;	/* struct stacktap_table_use by table id; under the registry's lock */
	u32 count;		/* of uses; as above */
	u64 bytes;		/* charged for them; as above */
	atomic_long_t charged;	/* all that counts for the session's limit */

	/* mappings.c */
	atomic_t lists;
	atomic_long_t list_bytes;
	atomic64_t lists_refused;
	bool probing;		/* holds the fork probe; under the lock of mappings.c */
	bool closed;		/* forks inherit nothing any more; set once, see mappings.c */
};

struct stacktap_table;

/* One table for one session. @view is what the mappings of its lists point to. */
struct stacktap_table_use {
	struct unwind_table view;
	struct stacktap_table *table;
	struct list_head node;	/* in the table's */
	unsigned long mappings;	/* that name it, in this session's lists */
	bool held;		/* loaded and not dropped */
	u32 hit;		/* when a walk last used it, see table_hit_time(); written by walks */
};

struct stacktap_table_info {
	u64 id;
	u64 bytes;
	u64 rows;
	u64 hit;
	u32 users;
};

struct stacktap_table_sums {
	u32 count;
	u64 bytes;
	u64 rows;
	u64 limit;
};

/* Times of hits have 32 bits of 2^30 ns each. */
static inline u32 table_hit_stamp(u64 now)
{
	return now >> 30;
}

static inline u64 table_hit_time(u32 stamp)
{
	return (u64)stamp << 30;
}

void st_table_init(void);
void st_table_open(struct stacktap_tables *tables);
/* The session's lists are gone already, those that wait for a grace period included. */
void st_table_close(struct stacktap_tables *tables);

int st_table_load(struct stacktap_tables *tables, const void __user *data, u64 bytes, u64 *ret_id,
		  u8 *ret_hash);
int st_table_drop(struct stacktap_tables *tables, u64 id);

/* For one mapping of a list: -ENOENT when the session does not hold the table. */
int st_table_get(struct stacktap_tables *tables, u64 id, const struct unwind_table **ret_view);
void st_table_put(struct stacktap_tables *tables, const struct unwind_table *view);

/*
 * Memory: @own counts for the session's limit (-EDQUOT), @shared for the module's (-ENOSPC). Any
 * context.
 */
int __must_check st_table_charge(struct stacktap_tables *tables, unsigned long own,
				 unsigned long shared);
void st_table_uncharge(struct stacktap_tables *tables, unsigned long own, unsigned long shared);

/* The table with the lowest id that is at least @id, of @only if that is not NULL; -ENOENT. */
int st_table_next(struct stacktap_tables *only, u64 id, struct stacktap_table_info *ret_info);
void st_table_sum(struct stacktap_table_sums *ret_sums);
void st_table_sum_session(struct stacktap_tables *tables, struct stacktap_table_sums *ret_sums);

#endif /* STACKTAP_KMOD_TABLE_H */
