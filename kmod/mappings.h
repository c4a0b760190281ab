/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef STACKTAP_KMOD_MAPPINGS_H
#define STACKTAP_KMOD_MAPPINGS_H

#include <linux/refcount.h>
#include <linux/stacktap.h>
#include <linux/types.h>
#include <stacktap/unwind_table.h>

#include "table.h"

struct mm_struct;

/*
 * Mapping lists. A list never changes; address spaces that a fork copied share it. Which list
 * belongs to an address space is found by its mm, which is pinned (not its memory, only the struct)
 * so that no other can have its address. Lookups are by overflow handlers, without a lock, and
 * everything that they may find is freed after a grace period, from a work item.
 *
 * What died with its address space is swept up every second, and sooner if there is much of it.
 */
struct stacktap_list {
	refcount_t refs;
	u64 id;			/* never used again */
	struct stacktap_tables *tables;
	u64 generation;
	u32 count;
	struct unwind_mapping mappings[];
};

/* IRQs are off, and the list is good for as long. */
const struct stacktap_list *st_mappings_find(const struct stacktap_tables *tables,
					     const struct mm_struct *mm);

int st_mappings_set(struct stacktap_tables *tables, const struct stacktap_mappings_set *set);
/* Fills in what @image->tgid runs. */
int st_mappings_image(struct stacktap_image *image);
/* All of a session's lists go. */
void st_mappings_forget(struct stacktap_tables *tables);
/* No walk looks for this session's lists any more. */
void st_mappings_close(struct stacktap_tables *tables);

/* Address spaces with a list, once per session, and bytes of all lists. */
void st_mappings_sum(u32 *ret_lists, u64 *ret_bytes);

/* For the fork tracepoint. */
void st_mappings_inherit(const struct mm_struct *from, struct mm_struct *to);

int st_mappings_init(void);
void st_mappings_exit(void);

#endif /* STACKTAP_KMOD_MAPPINGS_H */
