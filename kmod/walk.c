// SPDX-License-Identifier: GPL-2.0-only
#include <linux/nospec.h>
#include <linux/uaccess.h>

#include "compat/compat.h"
#include "hook.h"
#include "registers.h"
#include "walk.h"

enum {
	WALK_CLOCK_FRAMES = 16,	/* frames between two looks at the clock: 3 us of cache misses */
	WALK_CLOCK_SEARCHES = 8, /* likewise, frames that are not remembered */
	/* the same at first and where they are slow: one that misses every cache takes 10 us */
	WALK_SLOW_SEARCHES = 2,
	WALK_SLOW_PART = 8,	/* of the limit: what so many searches may take at most */
};

struct walk_memory {
	u32 stamp;		/* for the tables that are hit */
	bool is_admitted;	/* copy_from_user_nmi() found current's mm loaded */
	bool is_hooked;		/* each frame may be the last */
	unsigned long mask;	/* of the user's half, to the end of the page behind it */
	u64 missing;		/* the last address that could not be read */
	struct cost_moment began;
	u32 limit_ns;
};

#ifdef CONFIG_X86_64
/* by copy_from_user_nmi(), because only that checks that the loaded mm is current's */
static noinline int walk_read_first(struct walk_memory *memory, const u64 __user *p, u64 *ret_value)
{
	if (copy_from_user_nmi(ret_value, p, sizeof(*p)))
		return -EFAULT;
	memory->is_admitted = true;
	return 0;
}

/* What is out of range is 0, under speculation as well. */
static __always_inline const u64 __user *walk_clamp(u64 address)
{
	unsigned long top = WALK_ADDRESS_LIMIT - sizeof(u64) + 1;

	/* in a register: 5.10 has an assembler that takes no such constant */
	OPTIMIZER_HIDE_VAR(top);
	return (const u64 __user *)array_index_nospec(address, top);
}

static __always_inline int walk_read(struct walk_memory *memory, u64 address, u64 *ret_value)
{
	const u64 __user *p = walk_clamp(address);
	u64 value;

	if (unlikely(!memory->is_admitted))
		return walk_read_first(memory, p, ret_value);
	if (!user_access_begin(p, sizeof(*p)))
		return -EFAULT;
	unsafe_get_user(value, p, unreadable);
	user_access_end();
	*ret_value = value;
	return 0;

unreadable:
	user_access_end();
	return -EFAULT;
}

/*
 * The read that checks is one at @sp, so that those of frames need not. Where it faults, these go by
 * walk_read_first() until one does not.
 */
static void walk_admit(struct walk_memory *memory, u64 sp)
{
	u64 probe;

	memory->mask = TASK_SIZE_MAX + PAGE_SIZE - 1;
	OPTIMIZER_HIDE_VAR(memory->mask);
	walk_read_first(memory, walk_clamp(sp), &probe);
}

#define unwind_pac_mask(walk) 0
#define unwind_has_link(walk) 0
#define UNWIND_READ_QUICK

/* one section for all reads, without a call in it */
static __always_inline int unwind_read_begin(void *memory, u64 address)
{
	const struct walk_memory *walk = memory;

	return walk->is_admitted && user_access_begin((void __user *)address, sizeof(u64));
}

static __always_inline int unwind_read_quick(void *memory, u64 address, u64 *ret_value)
{
	const struct walk_memory *walk = memory;
	u64 value;

	/* @address is in range; the mask makes that hold under speculation as well */
	unsafe_get_user(value, (const u64 __user *)(address & walk->mask), unreadable);
	*ret_value = value;
	return 0;

unreadable:
	return -EFAULT;
}

static __always_inline int unwind_read_pair(void *memory, u64 first, u64 second, u64 *ret_first,
					    u64 *ret_second)
{
	return unwind_read_quick(memory, first, ret_first) ||
	       unwind_read_quick(memory, second, ret_second);
}

static __always_inline void unwind_read_end(void *memory)
{
	user_access_end();
}
#else
static __always_inline int walk_read(struct walk_memory *memory, u64 address, u64 *ret_value)
{
	return compat_raw_get(compat_mask_user(address), ret_value);
}

static inline void walk_admit(struct walk_memory *memory, u64 sp)
{
}

#define unwind_has_link(walk) 1
#define UNWIND_READ_QUICK
#define unwind_read_begin(memory, address) 1
#define unwind_read_end(memory) ((void)0)

static __always_inline int unwind_read_quick(void *memory, u64 address, u64 *ret_value)
{
	return compat_raw_get(compat_mask_user(address), ret_value);
}

static __always_inline int unwind_read_pair(void *memory, u64 first, u64 second, u64 *ret_first,
					    u64 *ret_second)
{
	return compat_raw_get_two(compat_mask_user(first), compat_mask_user(second), ret_first,
				  ret_second);
}
#endif

static inline int unwind_read_word(void *memory, u64 address, u64 *ret_value)
{
	struct walk_memory *walk = memory;

	if (likely(!walk_read(walk, address, ret_value)))
		return 0;
	walk->missing = address;
	return -EFAULT;
}

/* Which tables are worth their memory. */
static inline void walk_note_table(const struct walk_memory *memory,
				   const struct unwind_table *table)
{
	/* drops the const that only walks need */
	struct stacktap_table_use *use = container_of((struct unwind_table *)table,
						      struct stacktap_table_use, view);

	if (READ_ONCE(use->hit) != memory->stamp)
		WRITE_ONCE(use->hit, memory->stamp);
}

static __always_inline u32 walk_look(const struct walk_memory *memory)
{
	return !memory->is_hooked && cost_is_within(memory->began, memory->limit_ns) ?
	       WALK_CLOCK_FRAMES : 0;
}

#define unwind_note_table(memory, table) walk_note_table(memory, table)
#define unwind_look(memory) walk_look(memory)
#define unwind_register(walk, number) \
	registers_get((const struct pt_regs *)(walk)->regs, number)
#include <stacktap/unwind.h>

/* The trampoline is in code that has no table. */
static noinline bool walk_is_hook(struct unwind_walk *walk)
{
	const struct unwind_mapping *mapping;

	if (!hook_is_user(walk->pc))
		return false;
	mapping = unwind_walk_find(walk, walk->pc);
	return !mapping || !mapping->table;
}

void st_walk_tables(const struct stacktap_list *list, struct unwind_memo *memo,
		    struct pt_regs *regs, struct stacktap_stack *stack,
		    struct cost_moment began, u32 limit_ns, struct walk_counts *ret_counts)
{
	struct walk_memory memory = {
		.stamp = table_hit_stamp(began.now),
		.is_hooked = hook_user_active(current),
		.began = began,
		.limit_ns = limit_ns,
	};
	struct unwind_walk walk = {
		.pc = instruction_pointer(regs),
		.sp = untagged_addr(user_stack_pointer(regs)),
		.fp = untagged_addr(stack_regs_fp(regs)),
		.regs = (const u64 *)regs,
		.reg_count = REGISTERS_COUNT,
		.machine = REGISTERS_MACHINE,
		.address_limit = WALK_ADDRESS_LIMIT,
		.pac_mask = registers_pac_mask(),
		.mappings = list->mappings,
		.mapping_count = list->count,
		.ips = stack->ips,
		.max = stack->max,
		.exact = stack->exact,
		.max_exact = ARRAY_SIZE(stack->exact),
		.memo = memo,
		.memo_tag = unwind_memo_tag(list->id, memory.stamp),
		.pause = WALK_SLOW_SEARCHES,
	};
	unsigned int frames = memory.is_hooked ? 1 : WALK_CLOCK_FRAMES;
	u64 before = 0, spent;
	int end;

	walk_admit(&memory, walk.sp);
	unwind_walk_begin(&walk);
	for (;;) {
		end = unwind_walk_run(&walk, &memory, min(walk.count + frames, walk.max));
		if (unlikely(memory.is_hooked) && end == STACKTAP_END_NONE && walk_is_hook(&walk)) {
			walk.count--;
			if (walk.exact_count && walk.exact[walk.exact_count - 1] == walk.count)
				walk.exact_count--;
			end = STACKTAP_END_HOOK;
		}
		if (end != STACKTAP_END_NONE)
			break;
		/*
		 * Looked at last: a virtual CPU that was taken away for a while must not cost the
		 * first frames.
		 */
		spent = cost_since(began);
		if (spent > limit_ns) {
			end = STACKTAP_END_TIME;
			break;
		}
		walk.pause = walk.searches + ((spent - before) * WALK_SLOW_PART > limit_ns ?
					      WALK_SLOW_SEARCHES : WALK_CLOCK_SEARCHES);
		before = spent;
	}
	stack->nr = walk.count;
	stack->nr_exact = walk.exact_count;
	stack->generation = list->generation;
	stack->end = end;
	if (unlikely(end == STACKTAP_END_UNREADABLE)) {
		stack->is_missing = true;
		stack->missing = memory.missing;
	}
	ret_counts->frames = walk.count;
	ret_counts->fp_frames = walk.fp_count;
	ret_counts->searches = walk.searches;
	ret_counts->is_unlisted = end == STACKTAP_END_COMPLETE ? walk.is_unlisted :
				  end == STACKTAP_END_NO_RULE &&
				  !unwind_walk_find(&walk, walk.pc);
	/* the caller says more of a stack through code that no list knows */
	if (end == STACKTAP_END_COMPLETE && walk.is_guessed && !walk.is_unlisted)
		stack->end = STACKTAP_END_GUESSED;
}
