/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * What a walk remembers of its searches: for an address of code the rule that was found, if that is
 * one of the plain ones that nine of ten frames have, a leaf's, or the outermost frame's. An address
 * has one place; what comes later takes it.
 *
 * An entry is good for one list of mappings. Who walks gives every list a number of its own, from 1 on,
 * and never uses one again; a list and its tables do not change, so neither does what was found.
 * Nothing here points anywhere, so entries of what is long gone do no harm.
 *
 * The lower bits of a tag are a clock: an entry that is used first after it moved tells of its table.
 *
 * One walk at a time uses a memo, and those of a list have one machine and one address_limit. It begins
 * as zeroes.
 */
#ifndef STACKTAP_UNWIND_MEMO_H
#define STACKTAP_UNWIND_MEMO_H

#include <linux/types.h>
#include <stacktap/unwind_table.h>

enum {
	UNWIND_MEMO_BITS	= 9,
	UNWIND_MEMO_REACH	= 1 << 15, /* bytes that offsets from the CFA are below */
	UNWIND_MEMO_CLOCK_BITS	= 8,
	/* in the lower bits of cfa_offset */
	UNWIND_MEMO_BY_FP	= 1,	/* the CFA is the frame pointer + the rest */
	UNWIND_MEMO_END		= 2,	/* the outermost frame */
	UNWIND_MEMO_BY_LINK	= 4,	/* the return address is in the link register, which the first frame knows */
};

/*
 * In an entry's tag, which is none of a list then: all but the usual frames, whose CFA is the stack pointer
 * and something, and whose return address a call pushed, if the machine's calls do. So those are told by the
 * comparisons that find an entry.
 */
#define UNWIND_MEMO_UNUSUAL	0x8000000000000000ULL
#define UNWIND_MEMO_SPREAD	0x9e3779b1U

struct unwind_memo_entry {
	__u64 key;		/* unwind_memo_key() */
	__u64 tag;
	__s32 cfa_offset;	/* from the stack pointer, positive, unless it is marked */
	__s16 ra_offset;	/* from the CFA, negative */
	__s16 fp_offset;	/* likewise; 0: the caller's frame pointer is the same */
	__u32 mapping;		/* its number */
};

struct unwind_memo {
	struct unwind_memo_entry entries[1 << UNWIND_MEMO_BITS];
};

static inline __u64 unwind_memo_tag(__u64 list, __u64 clock)
{
	return (list << UNWIND_MEMO_CLOCK_BITS | (clock & ((1 << UNWIND_MEMO_CLOCK_BITS) - 1))) &
	       ~UNWIND_MEMO_UNUSUAL;
}

/*
 * What the keys of a list are apart from their addresses, modulo 2^64: with equal tags, equal keys are equal
 * addresses. Each list has its places moved by as much, which costs nothing where a return address becomes
 * a key.
 */
static __always_inline __u64 unwind_memo_moved(__u64 tag)
{
	return (tag >> UNWIND_MEMO_CLOCK_BITS) * 0x85ebca6bU;
}

static __always_inline __u64 unwind_memo_key(__u64 tag, __u64 address)
{
	return address + unwind_memo_moved(tag);
}

/*
 * The place of @key; the shift bounds it, under speculation as well. @spread is UNWIND_MEMO_SPREAD, from
 * who has it in a register.
 */
static __always_inline struct unwind_memo_entry *
unwind_memo_entry(struct unwind_memo *memo, __u64 key, __u32 spread)
{
	return memo->entries + ((__u32)key * spread >> (32 - UNWIND_MEMO_BITS));
}

/*
 * What a leaf of arm64 has that saved nothing, which is where most samples hit: the first frame, whose
 * registers are known. One that a signal interrupted is looked up.
 */
static inline int unwind_rule_is_leaf(const struct unwind_rule *rule)
{
	return rule->cfa == (UNWIND_VALUE | UNWIND_BASE_SP) && !rule->extra &&
	       rule->cfa_offset >= 0 && rule->cfa_offset % UNWIND_WORD == 0 &&
	       rule->ra == (UNWIND_VALUE | UNWIND_LINK_REGISTER) && !rule->ra_offset &&
	       rule->fp == UNWIND_FP_SAME;
}

/*
 * Nine of ten rules are plain: the CFA is sp or fp plus an offset, the return address is below it, and
 * fp is there as well or untouched.
 */
static inline int unwind_rule_is_plain(const struct unwind_rule *rule)
{
	return (rule->cfa == (UNWIND_VALUE | UNWIND_BASE_SP) ||
		rule->cfa == (UNWIND_VALUE | UNWIND_BASE_FP)) &&
	       rule->ra == (UNWIND_LOAD | UNWIND_BASE_CFA) && !rule->extra &&
	       (rule->fp == UNWIND_FP_SAME || rule->fp == (UNWIND_LOAD | UNWIND_BASE_CFA));
}

static inline int unwind_memo_reaches(__s32 offset)
{
	return offset > -UNWIND_MEMO_REACH && offset < 0 && offset % UNWIND_WORD == 0;
}

/*
 * @rule was found for @address in @mapping, and it does not tell of UNWIND_SAVED_REGISTER. @address + 1 is
 * below the address_limit, so what is remembered of a return address says that this is one of the user's. Calls
 * push it unless the machine @has_link.
 */
static inline void unwind_memo_learn(struct unwind_memo *memo, __u64 tag, __u64 address,
				     const struct unwind_rule *rule, __u32 mapping, int has_link)
{
	struct unwind_memo_entry entry = {
		.key = unwind_memo_key(tag, address), .tag = tag, .mapping = mapping,
	};
	int is_by_fp = rule->cfa == (UNWIND_VALUE | UNWIND_BASE_FP), is_usual = 0;

	if (rule->cfa == UNWIND_END) {
		entry.cfa_offset = UNWIND_MEMO_END;
	} else if (unwind_rule_is_leaf(rule)) {
		entry.cfa_offset = rule->cfa_offset | UNWIND_MEMO_BY_LINK;
	} else {
		if (!unwind_rule_is_plain(rule) || rule->cfa_offset % UNWIND_WORD ||
		    (!is_by_fp && rule->cfa_offset <= 0) || !unwind_memo_reaches(rule->ra_offset) ||
		    (rule->fp != UNWIND_FP_SAME && !unwind_memo_reaches(rule->fp_offset)))
			return;
		entry.cfa_offset = rule->cfa_offset | (is_by_fp ? UNWIND_MEMO_BY_FP : 0);
		entry.ra_offset = (__s16)rule->ra_offset;
		entry.fp_offset = (__s16)rule->fp_offset;
		is_usual = !is_by_fp && (has_link || rule->ra_offset == -UNWIND_WORD);
	}
	if (!is_usual)
		entry.tag |= UNWIND_MEMO_UNUSUAL;
	*unwind_memo_entry(memo, entry.key, UNWIND_MEMO_SPREAD) = entry;
}

#endif /* STACKTAP_UNWIND_MEMO_H */
