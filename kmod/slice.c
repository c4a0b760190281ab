// SPDX-License-Identifier: GPL-2.0-only
#include <linux/hash.h>
#include <linux/nospec.h>
#include <linux/sched.h>
#include <linux/sched/task_stack.h>
#include <linux/uaccess.h>

#include "compat/compat.h"
#include "hook.h"
#include "record.h"
#include "registers.h"
#include "session.h"
#include "slice.h"
#include "walk.h"

enum {
	SLICE_CHUNK = 1024,	/* bytes between two looks at the clock; divides every page */
	SLICE_RING_SHARE = 4,	/* slices take one part in so many of a ring */
	SLICE_SPACE_NS = 100000000,
	/* all but the bytes of the stack */
	SLICE_REGS_BYTES = sizeof(struct stacktap_regs) + REGISTERS_COUNT * sizeof(u64),
	SLICE_HEAD_BYTES = 2 * sizeof(struct stacktap_section) + SLICE_REGS_BYTES + sizeof(u64),
};

static_assert(SLICE_HEAD_BYTES % STACKTAP_RECORD_ALIGN == 0);

/* A piece of a stack: where, how much, and why no more. */
struct slice {
	u64 address;
	u32 bytes;
	u16 end;		/* enum stacktap_end */
};

#ifdef CONFIG_X86_64
/* by copy_from_user_nmi(), because only that checks that the loaded mm is current's */
static bool slice_admit(u64 address)
{
	u64 probe;

	return !copy_from_user_nmi(&probe, (const void __user *)address, sizeof(probe));
}

static u32 slice_read(u64 *to, u64 from, u32 bytes)
{
	unsigned long top = WALK_ADDRESS_LIMIT - bytes + 1;
	unsigned int i = 0, words = bytes / sizeof(*to);
	const u64 __user *p;

	/* in a register: 5.10 has an assembler that takes no such constant */
	OPTIMIZER_HIDE_VAR(top);
	/* all of it is in range; the clamp makes that hold under speculation as well */
	p = (const u64 __user *)array_index_nospec(from, top);
	if (!user_access_begin(p, bytes))
		return 0;
	do {
		unsafe_get_user(to[i], p + i, unreadable);
	} while (++i < words);
unreadable:
	user_access_end();
	return i * sizeof(*to);
}
#else
static bool slice_admit(u64 address)
{
	return true;
}

static u32 slice_read(u64 *to, u64 from, u32 bytes)
{
	/* not what checks @to as well: that it is in the ring is known, and looking it up takes locks */
	return bytes - raw_copy_from_user(to, compat_mask_user(from), bytes);
}
#endif

/* What there is to copy if all of it can be read and the ring has room for it. */
static void slice_plan(struct slice *slice, u64 sp, const struct stacktap_session *session)
{
	u64 address = round_down(untagged_addr(sp), sizeof(u64)), base, most;

	/* but not from the page before, which need not be there */
	address -= min_t(u64, address % PAGE_SIZE, STACKTAP_SLICE_BELOW);
	slice->address = address;
	slice->bytes = 0;
	slice->end = STACKTAP_END_UNREADABLE;
	if (address >= WALK_ADDRESS_LIMIT)
		return;
	slice->bytes = min_t(u64, session->slice_bytes, WALK_ADDRESS_LIMIT - address);
	slice->end = STACKTAP_END_DEPTH;
	most = min_t(u64, max(session->slice_bytes, session->slice_max_bytes),
		     WALK_ADDRESS_LIMIT - address);
	/* its own task may move either at any time, to anything */
	base = round_down(READ_ONCE(current->mm->start_stack), sizeof(u64));
	if (base >= address && base - address <= most) {
		slice->bytes = base - address;
		slice->end = STACKTAP_END_COMPLETE;
		return;
	}
	/* C libraries keep a thread's own data right above its stack; never less for it */
	base = round_down(registers_thread_pointer(), sizeof(u64));
	if (base > address + slice->bytes && base - address <= most)
		slice->bytes = base - address;
}

/* Does this address space get another one? */
static bool slice_take_share(struct stacktap_slices *slices, u64 now)
{
	unsigned int i = hash_ptr(current->mm, ilog2(SLICE_SPACES));

	/* times of one CPU do not always ascend: this clock may step back by a little */
	if ((s64)(now - slices->spaces[i].since) >= SLICE_SPACE_NS) {
		slices->spaces[i].since = now;
		slices->spaces[i].count = 0;
	}
	if (slices->spaces[i].count >= STACKTAP_SLICES_PER_SPACE)
		return false;
	slices->spaces[i].count++;
	return true;
}

/* Bytes of the ring that slices may take yet. */
static u32 slice_room(struct stacktap_slices *slices, const struct stacktap_ring *ring, s64 space)
{
	u64 tail = ring->head - (ring->data_bytes - RECORD_RESERVE - space);

	if ((s64)(tail - slices->fence) >= 0) {
		slices->before = slices->behind;
		slices->behind = 0;
		slices->fence = ring->head;
	}
	return ring->data_bytes / SLICE_RING_SHARE - slices->before - slices->behind;
}

static void slice_copy(struct slice *slice, u64 *to, struct cost_moment began, u32 limit_ns)
{
	u32 done = 0, chunk, read;

	if (slice->bytes && !slice_admit(slice->address)) {
		slice->bytes = 0;
		slice->end = STACKTAP_END_UNREADABLE;
	}
	while (done < slice->bytes) {
		/* up to where a page may end, so that one that cannot be read costs no other bytes */
		chunk = SLICE_CHUNK - (slice->address + done) % SLICE_CHUNK;
		chunk = min(chunk, slice->bytes - done);
		read = slice_read(to + done / sizeof(*to), slice->address + done, chunk);
		done += round_down(read, sizeof(*to));
		if (read < chunk) {
			slice->end = STACKTAP_END_UNREADABLE;
			break;
		}
		if (done < slice->bytes && cost_since(began) > limit_ns) {
			slice->end = STACKTAP_END_TIME;
			break;
		}
	}
	slice->bytes = done;
}

static struct stacktap_section *slice_put_regs(struct stacktap_section *section,
					       struct pt_regs *user)
{
	struct stacktap_regs *regs = (void *)(section + 1);

	section->kind = STACKTAP_SECTION_REGS;
	section->flags = hook_user_active(current) ? STACKTAP_REGS_HOOKED : 0;
	section->len = SLICE_REGS_BYTES;
	regs->pc = instruction_pointer(user);
	regs->pac_mask = registers_pac_mask();
	regs->arch = REGISTERS_MACHINE;
	regs->count = REGISTERS_COUNT;
	registers_copy(user, regs->regs);
	return (void *)&regs->regs[REGISTERS_COUNT];
}

u32 st_slice_append(struct stacktap_cpu *cpu, void *sample, u32 size, s64 space,
		    struct cost_moment began, u32 limit_ns)
{
	const struct stacktap_session *session = cpu->session;
	struct stacktap_slices *slices = &cpu->slices;
	struct stacktap_section *section = sample + size;
	struct pt_regs *regs = task_pt_regs(current);
	struct slice slice;
	s64 room;

	slice_plan(&slice, user_stack_pointer(regs), session);
	room = min_t(s64, slice_room(slices, cpu->ring, space), space - size) - SLICE_HEAD_BYTES;
	if (room < min_t(s64, slice.bytes, STACKTAP_MIN_SLICE_BYTES) ||
	    (cpu->stack.slice == SLICE_UNLISTED && !slice_take_share(slices, began.now))) {
		count_add(1, &slices->refused);
		return 0;
	}
	if (slice.bytes > room) {
		/* it will not be whole, so it leaves room for the next one */
		slice.bytes = round_down(min_t(s64, room, session->slice_bytes), sizeof(u64));
		slice.end = STACKTAP_END_DEPTH;
	}

	section = slice_put_regs(section, regs);
	section->kind = STACKTAP_SECTION_STACK_SLICE;
	*(u64 *)(section + 1) = slice.address;
	pagefault_disable();
	slice_copy(&slice, (u64 *)(section + 1) + 1, began, limit_ns);
	pagefault_enable();
	section->flags = slice.end;
	section->len = sizeof(u64) + slice.bytes;

	slices->behind += SLICE_HEAD_BYTES + slice.bytes;
	count_add(1, &slices->written);
	return SLICE_HEAD_BYTES + slice.bytes;
}
