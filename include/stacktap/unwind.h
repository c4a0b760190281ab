/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Walking a user stack with unwind tables: one pure function without locks or allocation, the same
 * in the module, in the daemon and in tests.
 *
 * Before this file the includer defines how a word of the walked task's memory is read:
 *
 *	static inline int unwind_read_word(void *memory, __u64 address, __u64 *ret_value);
 *
 * 0, or anything else when it cannot be read. It is only asked for aligned addresses below
 * address_limit - 8; a reader that needs protection against speculation adds it. Who wants to know
 * which tables were used defines unwind_note_table(memory, table) as well; of what a memo
 * remembers it is told once for each tag.
 *
 * Who has a cheaper way to read many words defines UNWIND_READ_QUICK and
 *
 *	static inline int unwind_read_begin(void *memory, __u64 address); may it be used, at @address?
 *	static inline int unwind_read_quick(void *memory, __u64 address, __u64 *ret_value);
 *	static inline int unwind_read_pair(void *memory, __u64 first, __u64 second, __u64 *ret_first,
 *					   __u64 *ret_second);
 *	static inline void unwind_read_end(void *memory);
 *
 * Between begin and end nothing else of the includer's is called than unwind_note_table() and unwind_look(),
 * with which it may look at the clock there:
 *
 *	static inline __u32 unwind_look(void *memory); how many frames may follow before the next look?
 *
 * It is asked where unwind_walk_run() would return to the caller for that, who looks if it says 0.
 *
 * A walk terminates because each step yields a frame, of which there are at most max. A walk in
 * circles ends sooner: the CFA grows with every frame but those that a signal interrupted.
 *
 * Where code has no call frame information at all (JIT code, assembly) a step goes by the frame
 * pointer; it counts only if it leads to code that is known to be mapped, or from code without table
 * to more of the same kind close by: mprotect() makes code that no list knows. The walk goes on by
 * tables when it leaves it. Nobody vouches for a stack that went through code that no list knows: if
 * that keeps no frame pointer, the caller's own led past the caller. The same holds for code that is known
 * to have no table, unless the walk proves otherwise: is_guessed.
 */
#ifndef STACKTAP_UNWIND_H
#define STACKTAP_UNWIND_H

#include <linux/stacktap.h>
#include <linux/types.h>
#include <stacktap/unwind_memo.h>
#include <stacktap/unwind_table.h>

#ifndef unwind_note_table
#define unwind_note_table(memory, table) ((void)0)
#endif

/* of machines that authenticate none it may be 0 at compile time */
#ifndef unwind_pac_mask
#define unwind_pac_mask(walk) ((walk)->pac_mask)
#endif

/* likewise */
#ifndef unwind_has_link
#define unwind_has_link(walk) ((walk)->machine == UNWIND_MACHINE_AARCH64)
#endif

#ifndef UNWIND_READ_QUICK
#define unwind_read_begin(memory, address) 1
#define unwind_read_quick unwind_read_word
#define unwind_read_end(memory) ((void)0)

static inline int unwind_read_pair(void *memory, __u64 first, __u64 second, __u64 *ret_first,
				   __u64 *ret_second)
{
	return unwind_read_word(memory, first, ret_first) ||
	       unwind_read_word(memory, second, ret_second);
}
#endif

#ifndef unwind_look
#define unwind_look(memory) 0
#endif

/* register @number, which is below reg_count under speculation as well */
#ifndef unwind_register
#define unwind_register(walk, number) ((walk)->regs[number])
#endif

enum {
	UNWIND_MACHINE_X86_64	= 62,	/* EM_X86_64 */
	UNWIND_MACHINE_AARCH64	= 183,	/* EM_AARCH64 */
};

/*
 * Bytes of a frame that only its frame pointer tells of. Nothing says where a stack ends, and a
 * thread may begin with the frame pointer of its creator (musl's on arm64): the smallest stack that
 * threads have by default, 128 KiB, lies between.
 */
#define UNWIND_FRAME	(64ULL << 10)
#define UNWIND_PROVEN	512ULL	/* bytes of a frame that are looked through for frames in it */
#define UNWIND_NEAR	(256ULL << 20)	/* bytes that JIT code of one engine is apart at most */

/* where registers other than pc, sp and fp are known from */
enum unwind_known {
	UNWIND_KNOWN_NOWHERE,
	UNWIND_KNOWN_ARRAY,		/* regs[]: this is the first frame */
	UNWIND_KNOWN_CONTEXT,		/* the context that a signal saved */
};

/* where UNWIND_SAVED_REGISTER of the current frame is */
enum unwind_saved {
	UNWIND_SAVED_NOWHERE,
	UNWIND_SAVED_ARRAY,		/* regs[]: untouched since the first frame */
	UNWIND_SAVED_AT,		/* in memory */
};

struct unwind_walk {
	/* the caller sets these and zeroes the rest; pc is the last frame's when there is no rule */
	__u64 pc, sp, fp;
	const __u64 *regs;		/* of the first frame, by DWARF number; may be NULL */
	__u32 reg_count;
	__u16 machine;			/* UNWIND_MACHINE_* */
	__u64 address_limit;		/* first address that is not user memory, a multiple of 8 */
	__u64 pac_mask;			/* bits of a return address that authenticate it */
	const struct unwind_mapping *mappings;
	__u32 mapping_count;
	__u64 *ips;			/* never read */
	__u32 max;			/* entries of ips[], at least 1 */
	__u16 *exact;			/* indices of ips[] that are no return addresses */
	__u32 max_exact;
	struct unwind_memo *memo;	/* may be NULL */
	__u64 memo_tag;			/* of mappings, see unwind_memo_tag() */
	__u32 pause;			/* return when searches is so many; 0: never */

	/* results, good after each call */
	__u32 count;			/* of ips[] */
	__u32 exact_count;
	__u32 fp_count;			/* steps that went by the frame pointer */
	__u32 searches;			/* steps that were not remembered */
	__u8 is_guessed;		/* fp led through code that may keep none: likewise */
	__u8 is_unlisted;		/* fp led through code that no list knows: frames may be missing */

	/* private */
	__u32 mapping;			/* the last one found */
	__u8 known;			/* enum unwind_known */
	__u8 is_exact;			/* pc was interrupted; it is not a return address */
	__u8 is_fp_lost;		/* fp is not the caller's */
	__u8 is_sp_lost;		/* sp is not the caller's, only below it */
	__u8 saved;			/* enum unwind_saved */
	__u32 chained;			/* count when the last step by the frame pointer was done */
	__u64 context;			/* where a signal saved the stack pointer */
	__u64 saved_at;
};

/* The mapping that holds @address, or NULL. */
static inline const struct unwind_mapping *unwind_walk_find(struct unwind_walk *walk, __u64 address)
{
	const struct unwind_mapping *mapping;
	__u32 first = 0, last = walk->mapping_count;

	if (!last)
		return NULL;
	/* callers are mostly in the same object */
	mapping = &walk->mappings[walk->mapping];
	if (address >= mapping->start && address < mapping->end)
		return mapping;
	while (first < last) {
		__u32 middle = first + (last - first) / 2;

		if (walk->mappings[middle].end <= address)
			first = middle + 1;
		else
			last = middle;
	}
	if (first >= walk->mapping_count)
		return NULL;
	first = unwind_clamp(first, walk->mapping_count);
	mapping = &walk->mappings[first];
	if (address < mapping->start)
		return NULL;
	walk->mapping = first;
	return mapping;
}

static inline int unwind_walk_load(const struct unwind_walk *walk, void *memory, __u64 address,
				   __u64 *ret_value)
{
	if (address % UNWIND_WORD || address > walk->address_limit - UNWIND_WORD)
		return STACKTAP_END_BAD_FRAME;
	return unwind_read_word(memory, address, ret_value) ? STACKTAP_END_UNREADABLE :
							      STACKTAP_END_NONE;
}

/*
 * The kernel saves registers in an order of its own on x86; @number's distance from the stack
 * pointer's slot, in words. On arm64 x0 to x30, sp and pc follow each other.
 */
static inline int unwind_context_slot(__u16 machine, __u32 number)
{
	static const __s8 x86_64[] = { -2, -3, -1, -4, -6, -7, -5, 0, -15, -14, -13, -12, -11, -10,
				       -9, -8, 1 };

	if (machine == UNWIND_MACHINE_AARCH64)
		return (int)number - 31;
	return number < sizeof(x86_64) ? x86_64[unwind_clamp(number, sizeof(x86_64))] : 0;
}

static inline __u64 unwind_walk_slot(const struct unwind_walk *walk, __u32 number)
{
	int slot = unwind_context_slot(walk->machine, number);

	return walk->context + (__u64)(__s64)(UNWIND_WORD * slot);
}

static inline int unwind_walk_array(const struct unwind_walk *walk, __u32 number,
				    __u64 *ret_value)
{
	if (number >= walk->reg_count)
		return STACKTAP_END_NO_RULE;
	*ret_value = unwind_register(walk, unwind_clamp(number, walk->reg_count));
	return STACKTAP_END_NONE;
}

/* A register that functions save, in a frame of which nothing else is known. */
static inline int unwind_walk_saved(const struct unwind_walk *walk, void *memory,
				    __u64 *ret_value)
{
	switch (walk->saved) {
	case UNWIND_SAVED_ARRAY:
		return unwind_walk_array(walk, UNWIND_SAVED_REGISTER, ret_value);
	case UNWIND_SAVED_AT:
		return unwind_walk_load(walk, memory, walk->saved_at, ret_value);
	}
	return STACKTAP_END_NO_RULE;
}

static inline int unwind_walk_base(const struct unwind_walk *walk, void *memory, __u8 how,
				   __u64 cfa, __u64 *ret_value)
{
	__u32 base = how & UNWIND_BASE_MASK;

	switch (base) {
	case UNWIND_BASE_SP:
		*ret_value = walk->sp;
		return STACKTAP_END_NONE;
	case UNWIND_BASE_FP:
		*ret_value = walk->fp;
		return walk->is_fp_lost ? STACKTAP_END_NO_RULE : STACKTAP_END_NONE;
	case UNWIND_BASE_CFA:
		*ret_value = cfa;
		return STACKTAP_END_NONE;
	}
	switch (walk->known) {
	case UNWIND_KNOWN_ARRAY:
		return unwind_walk_array(walk, base, ret_value);
	case UNWIND_KNOWN_CONTEXT:
		return unwind_walk_load(walk, memory, unwind_walk_slot(walk, base), ret_value);
	}
	if (base != UNWIND_SAVED_REGISTER)
		return STACKTAP_END_NO_RULE;
	return unwind_walk_saved(walk, memory, ret_value);
}

/* VALUE or LOAD. */
static inline int unwind_walk_value(const struct unwind_walk *walk, void *memory, __u8 how,
				    __s32 offset, __u64 cfa, __u64 *ret_value)
{
	int end = unwind_walk_base(walk, memory, how, cfa, ret_value);

	if (end != STACKTAP_END_NONE)
		return end;
	*ret_value += (__u64)(__s64)offset;
	if ((how & UNWIND_HOW_MASK) != UNWIND_LOAD)
		return STACKTAP_END_NONE;
	return unwind_walk_load(walk, memory, *ret_value, ret_value);
}

static inline int unwind_walk_cfa(const struct unwind_walk *walk, void *memory, __u64 address,
				  const struct unwind_rule *rule, __u64 *ret_cfa)
{
	__u8 extra = rule->extra & UNWIND_EXTRA_MASK;
	int end = unwind_walk_value(walk, memory, rule->cfa, rule->cfa_offset, 0, ret_cfa);

	if (end != STACKTAP_END_NONE)
		return end;
	if ((rule->cfa & UNWIND_HOW_MASK) == UNWIND_LOAD)
		*ret_cfa += (__u64)extra * UNWIND_WORD;
	else if ((rule->cfa & UNWIND_HOW_MASK) == UNWIND_PLT &&
		 address % UNWIND_PLT_ENTRY >= extra)
		*ret_cfa += UNWIND_WORD;
	return STACKTAP_END_NONE;
}

/* From here on @pc runs, called from (or interrupted by) what was walked so far. */
static inline int unwind_walk_enter(struct unwind_walk *walk, __u64 pc, __u64 sp, __u64 fp)
{
	walk->pc = pc & ~walk->pac_mask;
	walk->sp = sp;
	walk->fp = fp;
	if (!walk->pc)
		return STACKTAP_END_COMPLETE;
	return walk->pc < walk->address_limit ? STACKTAP_END_NONE : STACKTAP_END_BAD_FRAME;
}

/*
 * arm64 code that nothing describes was interrupted. A leaf of that kind has its caller in the link
 * register alone, and the frame pointer is its caller's. One that keeps a frame has the same address
 * there as in its frame (@ra), or, after a call, one of its own, which nothing describes either.
 */
static inline int unwind_walk_link(struct unwind_walk *walk, void *memory, __u64 ra,
				   __u64 *ret_link)
{
	const struct unwind_mapping *mapping;
	const struct unwind_rule *rule;

	if (walk->machine != UNWIND_MACHINE_AARCH64 || !walk->is_exact ||
	    unwind_walk_base(walk, memory, UNWIND_LINK_REGISTER, 0, ret_link))
		return 0;
	*ret_link &= ~walk->pac_mask;
	if (!*ret_link || *ret_link == (ra & ~walk->pac_mask))
		return 0;
	mapping = unwind_walk_find(walk, *ret_link - 1);
	if (!mapping || !mapping->table)
		return 0;
	rule = unwind_table_find(mapping->table, *ret_link - 1 - mapping->bias);
	return rule && rule->cfa != UNWIND_UNCOVERED;
}

/*
 * Does the instruction before @address call? More than calls look like one on x86, whose instructions
 * have any length. What cannot be read counts as @otherwise.
 */
static inline int unwind_walk_calls(const struct unwind_walk *walk, void *memory, __u64 address,
				    int otherwise)
{
	__u64 at, bytes, more, code;
	__u32 shift, i;

	if (walk->machine == UNWIND_MACHINE_AARCH64) {
		at = address - 4;
		if (at % 4 || unwind_walk_load(walk, memory, at & ~7ULL, &bytes))
			return at % 4 ? 0 : otherwise;
		code = (bytes >> (at & 4) * 8) & 0xffffffff;
		/* bl, blr, blraa and its like */
		return code >> 26 == 0x25 || (code & 0xfffffc1f) == 0xd63f0000 ||
		       (code & 0xfefff800) == 0xd63f0800;
	}
	at = address - UNWIND_WORD;
	shift = at % UNWIND_WORD * 8;
	if (unwind_walk_load(walk, memory, at & ~7ULL, &bytes))
		return otherwise;
	if (shift) {
		if (unwind_walk_load(walk, memory, (at & ~7ULL) + UNWIND_WORD, &more))
			return otherwise;
		bytes = bytes >> shift | more << (64 - shift);
	}
	/* call to a distance; call by a register or memory, of two to seven bytes */
	if ((bytes >> 24 & 0xff) == 0xe8)
		return 1;
	for (i = 1; i < 7; i++)
		if ((bytes >> 8 * i & 0x38ff) == 0x10ff)
			return 1;
	return 0;
}

/* May @value be the return address of a frame? */
static inline int unwind_walk_returns(struct unwind_walk *walk, void *memory, __u64 value)
{
	value &= ~walk->pac_mask;
	if (value - UNWIND_WORD >= walk->address_limit - UNWIND_WORD ||
	    (walk->mapping_count && !unwind_walk_find(walk, value - 1)))
		return 0;
	return unwind_walk_calls(walk, memory, value, 1);
}

/*
 * Is the next frame the one that @ra says? Code that keeps no frame pointer leaves the one of some
 * caller, and its own return address is on the stack, below that caller's record; or, on arm64, in
 * the link register of a leaf.
 */
static inline int unwind_walk_proves(struct unwind_walk *walk, void *memory, __u64 ra)
{
	__u64 at, word, link;

	ra &= ~walk->pac_mask;
	if (walk->sp % UNWIND_WORD || walk->fp > walk->sp + UNWIND_PROVEN ||
	    !unwind_walk_calls(walk, memory, ra, 0))
		return 0;
	if (walk->machine == UNWIND_MACHINE_AARCH64 && walk->is_exact) {
		if (unwind_walk_base(walk, memory, UNWIND_LINK_REGISTER, 0, &link))
			return 0;
		if ((link & ~walk->pac_mask) != ra && unwind_walk_returns(walk, memory, link))
			return 0;
	}
	for (at = walk->sp; at < walk->fp; at += UNWIND_WORD)
		if (unwind_walk_load(walk, memory, at, &word) ||
		    unwind_walk_returns(walk, memory, word))
			return 0;
	return 1;
}

/*
 * A frame pointer of 0 is where a chain of them ends. It has to be a chain: code that keeps none has
 * any number there. Nor does code count that no list knows.
 */
static inline int unwind_walk_chain_end(struct unwind_walk *walk,
					const struct unwind_mapping *mapping)
{
	int is_chain = walk->fp_count && walk->chained + 1 == walk->count;

	walk->is_guessed |= !mapping || !mapping->table;
	return is_chain && (mapping || !walk->mapping_count) ? STACKTAP_END_COMPLETE :
							       STACKTAP_END_NO_RULE;
}

/* One step by the frame pointer, out of @mapping, which has no rule here. */
static inline int unwind_walk_fp(struct unwind_walk *walk, void *memory,
				 const struct unwind_mapping *mapping)
{
	const int has_table = mapping && mapping->table;
	__u64 fp, ra, link, below, from = walk->pc;
	int end, is_link;

	if (walk->is_fp_lost)
		return STACKTAP_END_NO_RULE;
	if (!walk->fp)
		return unwind_walk_chain_end(walk, mapping);
	/* Go on arm64 has its record right below the stack pointer, where signals do not write */
	below = walk->machine == UNWIND_MACHINE_AARCH64 && walk->is_exact ? UNWIND_WORD : 0;
	/* wraps if it is further down */
	if (walk->fp + below - walk->sp > UNWIND_FRAME)
		return STACKTAP_END_NO_RULE;
	end = unwind_walk_load(walk, memory, walk->fp + UNWIND_WORD, &ra);
	if (end == STACKTAP_END_NONE)
		end = unwind_walk_load(walk, memory, walk->fp, &fp);
	/* what is not a frame pointer mostly is no address either */
	if (end != STACKTAP_END_NONE)
		return end == STACKTAP_END_BAD_FRAME ? STACKTAP_END_NO_RULE : end;
	is_link = unwind_walk_link(walk, memory, ra, &link);
	if (!is_link && !ra && !fp)
		return unwind_walk_chain_end(walk, mapping);
	if (!is_link && !ra)
		return STACKTAP_END_NO_RULE;
	if (!is_link && !walk->is_guessed)
		walk->is_guessed = !unwind_walk_proves(walk, memory, ra);
	if (is_link)
		end = unwind_walk_enter(walk, link, walk->sp, walk->fp);
	else
		end = unwind_walk_enter(walk, ra, walk->fp + 2 * UNWIND_WORD, fp);
	/* arm64 keeps the record at the lower end of the frame, x86 at its upper end */
	walk->is_sp_lost = walk->machine == UNWIND_MACHINE_AARCH64;
	if (end == STACKTAP_END_NONE && walk->mapping_count &&
	    !unwind_walk_find(walk, walk->pc - 1) &&
	    (has_table || walk->pc - from + UNWIND_NEAR > 2 * UNWIND_NEAR))
		end = STACKTAP_END_NO_RULE;
	if (end == STACKTAP_END_BAD_FRAME)
		end = STACKTAP_END_NO_RULE;
	/* back to the frame that it ends with */
	if (end == STACKTAP_END_NO_RULE)
		walk->pc = from;
	walk->known = UNWIND_KNOWN_NOWHERE;
	walk->saved = UNWIND_SAVED_NOWHERE;
	walk->is_exact = 0;
	walk->chained = walk->count;
	walk->is_unlisted |= !mapping;
	walk->fp_count++;
	return end;
}

/*
 * sp where it is lost, in code that @rule describes: a function that saves fp and the return
 * address side by side has fp point there, and the rule tells how far that is from the CFA.
 */
static inline int unwind_walk_find_sp(struct unwind_walk *walk, const struct unwind_rule *rule)
{
	__u64 sp;

	/* nothing else in such a frame needs it */
	if (rule->cfa == (UNWIND_VALUE | UNWIND_BASE_FP)) {
		walk->is_sp_lost = 0;
		return STACKTAP_END_NONE;
	}
	if (walk->is_fp_lost || rule->cfa != (UNWIND_VALUE | UNWIND_BASE_SP) ||
	    rule->fp != (UNWIND_LOAD | UNWIND_BASE_CFA) ||
	    rule->ra != (UNWIND_LOAD | UNWIND_BASE_CFA) ||
	    rule->ra_offset - UNWIND_WORD != rule->fp_offset)
		return STACKTAP_END_NO_RULE;
	sp = walk->fp - (__u64)(__s64)rule->fp_offset - (__u64)(__s64)rule->cfa_offset;
	if (sp < walk->sp)
		return STACKTAP_END_NO_RULE;
	walk->sp = sp;
	walk->is_sp_lost = 0;
	return STACKTAP_END_NONE;
}

/* Where the caller has the saved register; @saved is NULL if the callee does not tell. */
static inline void unwind_walk_save(struct unwind_walk *walk, const __s32 *saved, __u64 cfa)
{
	if (!saved || *saved == UNWIND_SAVED_LOST) {
		walk->saved = UNWIND_SAVED_NOWHERE;
	} else if (*saved != UNWIND_SAVED_SAME) {
		walk->saved = UNWIND_SAVED_AT;
		walk->saved_at = cfa + (__u64)(__s64)*saved;
	}
}

/* One step by @rule, which holds for the ELF virtual address @address. */
static inline int unwind_walk_rule(struct unwind_walk *walk, void *memory, __u64 address,
				   const struct unwind_rule *rule, const __s32 *saved)
{
	__u64 cfa, ra, fp = walk->fp, context = 0;
	int is_signal = rule->extra & UNWIND_EXTRA_SIGNAL;
	int end = unwind_walk_cfa(walk, memory, address, rule, &cfa);

	if (end != STACKTAP_END_NONE)
		return end;
	/* code that was interrupted may have nothing on the stack: its caller has the same CFA */
	if (cfa % UNWIND_WORD || cfa >= walk->address_limit ||
	    (!is_signal && (walk->is_exact ? cfa < walk->sp : cfa <= walk->sp)))
		return STACKTAP_END_BAD_FRAME;
	end = unwind_walk_value(walk, memory, rule->ra, rule->ra_offset, cfa, &ra);
	if (end != STACKTAP_END_NONE)
		return end;
	if ((rule->fp & UNWIND_HOW_MASK) != UNWIND_SPECIAL) {
		end = unwind_walk_value(walk, memory, rule->fp, rule->fp_offset, cfa, &fp);
		if (end != STACKTAP_END_NONE)
			return end;
		walk->is_fp_lost = 0;
	} else if (rule->fp == UNWIND_FP_UNDEFINED) {
		walk->is_fp_lost = 1;
	}
	if (is_signal && (rule->cfa & UNWIND_HOW_MASK) == UNWIND_LOAD) {
		/* it worked for the CFA, so it does again; the slot was readable */
		unwind_walk_base(walk, memory, rule->cfa, 0, &context);
		walk->context = context + (__u64)(__s64)rule->cfa_offset;
		walk->known = UNWIND_KNOWN_CONTEXT;
		walk->saved = UNWIND_SAVED_AT;
		walk->saved_at = unwind_walk_slot(walk, UNWIND_SAVED_REGISTER);
	} else {
		walk->known = UNWIND_KNOWN_NOWHERE;
		unwind_walk_save(walk, saved, cfa);
	}
	walk->is_exact = is_signal != 0;
	return unwind_walk_enter(walk, ra, cfa, fp);
}

/* What unwind_walk_rule() comes to with a plain rule, and a frame pointer that is not lost. */
static inline int unwind_walk_plain(struct unwind_walk *walk, void *memory,
				    const struct unwind_rule *rule, const __s32 *saved)
{
	__u64 base = rule->cfa == (UNWIND_VALUE | UNWIND_BASE_SP) ? walk->sp : walk->fp;
	__u64 cfa = base + (__u64)(__s64)rule->cfa_offset, ra, fp = walk->fp;
	int end;

	if (cfa % UNWIND_WORD || cfa >= walk->address_limit || cfa < walk->sp + !walk->is_exact)
		return STACKTAP_END_BAD_FRAME;
	end = unwind_walk_load(walk, memory, cfa + (__u64)(__s64)rule->ra_offset, &ra);
	if (end != STACKTAP_END_NONE)
		return end;
	if (rule->fp != UNWIND_FP_SAME) {
		end = unwind_walk_load(walk, memory, cfa + (__u64)(__s64)rule->fp_offset, &fp);
		if (end != STACKTAP_END_NONE)
			return end;
	}
	if (saved || walk->saved != UNWIND_SAVED_NOWHERE)
		unwind_walk_save(walk, saved, cfa);
	walk->known = UNWIND_KNOWN_NOWHERE;
	walk->is_exact = 0;
	return unwind_walk_enter(walk, ra, cfa, fp);
}

static inline int unwind_walk_step(struct unwind_walk *walk, void *memory)
{
	/* a call may be the last instruction of its function; the next one is another's then */
	__u64 address = walk->pc - !walk->is_exact;
	const struct unwind_mapping *mapping = unwind_walk_find(walk, address);
	const struct unwind_rule *rule = NULL;
	const __s32 *saved = NULL;
	int end;

	if (mapping && mapping->table) {
		unwind_note_table(memory, mapping->table);
		rule = unwind_table_find(mapping->table, address - mapping->bias);
	}
	if (rule && mapping->table->saved)
		saved = &mapping->table->saved[rule - mapping->table->rules];
	if (rule && walk->memo && !saved && address < walk->address_limit - 1)
		unwind_memo_learn(walk->memo, walk->memo_tag, address, rule, walk->mapping,
				  unwind_has_link(walk));
	if (rule && unwind_rule_is_plain(rule) && !(walk->is_fp_lost | walk->is_sp_lost))
		return unwind_walk_plain(walk, memory, rule, saved);
	if (!rule || rule->cfa == UNWIND_UNCOVERED)
		return unwind_walk_fp(walk, memory, mapping);
	switch (rule->cfa) {
	case UNWIND_NO_RULE:
		return STACKTAP_END_NO_RULE;
	case UNWIND_END:
		return STACKTAP_END_COMPLETE;
	}
	if (walk->is_sp_lost) {
		end = unwind_walk_find_sp(walk, rule);
		if (end != STACKTAP_END_NONE)
			return end;
	}
	return unwind_walk_rule(walk, memory, address - mapping->bias, rule, saved);
}

/* Is @entry of this list, and of an earlier time only? */
static __always_inline int unwind_walk_renew(const struct unwind_walk *walk, void *memory,
					     struct unwind_memo_entry *entry)
{
	__u64 mark = entry->tag & UNWIND_MEMO_UNUSUAL;

	if ((entry->tag ^ mark ^ walk->memo_tag) >> UNWIND_MEMO_CLOCK_BITS)
		return 0;
	if (entry->tag == (walk->memo_tag | mark))
		return 1;
	entry->tag = walk->memo_tag | mark;
	(void)memory;
	unwind_note_table(memory, walk->mappings[unwind_clamp(entry->mapping,
							      walk->mapping_count)].table);
	return 1;
}

/*
 * unwind_hide(): a value that the compiler does not know any more, so that it keeps nothing in a register
 * that only rare paths ask for again. unwind_apart: a function that has all registers for its loop.
 */
#ifdef __KERNEL__
#define unwind_hide(var) OPTIMIZER_HIDE_VAR(var)
#define unwind_apart noinline
#else
#define unwind_hide(var) ((void)(var))
#define unwind_apart
#endif

/* What a walk of remembered frames has in registers; walk->fp is written as it changes. */
struct unwind_recall {
	struct unwind_memo *memo;
	__u64 tag, pac_mask, limit;
	__u32 spread;
	__u64 next;		/* the key of a return address is so much more */
	__u64 key;		/* of the address whose rule is next */
	__u64 sp;
};

static __always_inline void unwind_recall_enter(struct unwind_recall *at, __u64 *ip, __u64 ra,
						__u64 cfa)
{
	*ip = ra;
	at->key = ra + at->next;
	at->sp = cfa;
}

/*
 * A usual frame, if one is remembered here: most of what a walk costs. The return address needs no look
 * of its own: one that is none of the user's has no entry, which ends the walk, so that only the last
 * can be such.
 */
static __always_inline int unwind_recall_usual(struct unwind_walk *walk, void *memory,
					       struct unwind_recall *at, __u64 *ip)
{
	const struct unwind_memo_entry *entry = unwind_memo_entry(at->memo, at->key, at->spread);
	const int has_link = unwind_has_link(walk);
	__u64 cfa, from, ra, fp;
	int is_other;

	if (has_link) {
		/* one load and one jump for both, where x86 compares with memory */
		unwind_hide(entry);
		is_other = entry->key != at->key;
		is_other |= entry->tag != at->tag;
		if (is_other)
			return 0;
	} else if (entry->key != at->key || entry->tag != at->tag) {
		return 0;
	}
	cfa = at->sp + (__u64)(__s64)entry->cfa_offset;
	if (cfa >= (has_link ? at->limit : walk->address_limit))
		return 0;
	from = cfa + (has_link ? (__u64)(__s64)entry->ra_offset : -(__u64)UNWIND_WORD);
	if (has_link && entry->fp_offset) {
		if (unwind_read_pair(memory, from, cfa + (__u64)(__s64)entry->fp_offset, &ra, &fp))
			return 0;
		walk->fp = fp;
	} else if (unwind_read_quick(memory, from, &ra)) {
		return 0;
	} else if (!has_link && entry->fp_offset) {
		unwind_hide(entry);
		if (unwind_read_quick(memory, cfa + (__u64)(__s64)entry->fp_offset, &fp))
			return 0;
		walk->fp = fp;
	}
	unwind_recall_enter(at, ip, ra & ~at->pac_mask, cfa);
	return 1;
}

/*
 * Any frame that is remembered, or the end of the stack. What is not as it should be in any way is left as it
 * is for unwind_walk_step(), which looks again and says what is wrong. Returns whether there was a frame.
 */
static __always_inline int unwind_recall_any(struct unwind_walk *walk, void *memory,
					     struct unwind_recall *at, __u64 *ip, int *end)
{
	__u64 cfa, ra, fp = walk->fp;
	struct unwind_memo_entry *entry;

	unwind_hide(at->key);
	entry = unwind_memo_entry(at->memo, at->key, at->spread);
	if (entry->key != at->key || !unwind_walk_renew(walk, memory, entry))
		return 0;
	cfa = at->sp + (__u64)(__s64)entry->cfa_offset;
	if (cfa % UNWIND_WORD) {
		if (entry->cfa_offset == UNWIND_MEMO_END) {
			*end = STACKTAP_END_COMPLETE;
			return 0;
		}
		if (unwind_has_link(walk) &&
		    entry->cfa_offset % UNWIND_WORD == UNWIND_MEMO_BY_LINK) {
			cfa -= UNWIND_MEMO_BY_LINK;
			if (ip != walk->ips + walk->count || walk->known != UNWIND_KNOWN_ARRAY ||
			    unwind_walk_array(walk, UNWIND_LINK_REGISTER, &ra))
				return 0;
			goto enter;
		}
		/* a leaf's on a machine without that register */
		if (!(entry->cfa_offset & UNWIND_MEMO_BY_FP))
			return 0;
		cfa += fp - at->sp - UNWIND_MEMO_BY_FP;
		if (cfa % UNWIND_WORD || cfa <= at->sp)
			return 0;
	}
	if (cfa >= at->limit ||
	    unwind_read_quick(memory, cfa + (__u64)(__s64)entry->ra_offset, &ra) ||
	    (entry->fp_offset &&
	     unwind_read_quick(memory, cfa + (__u64)(__s64)entry->fp_offset, &fp)))
		return 0;
enter:
	ra &= ~at->pac_mask;
	/* 0 wraps */
	if (cfa >= at->limit || ra - 1 >= at->limit - 1)
		return 0;
	walk->fp = fp;
	unwind_recall_enter(at, ip, ra, cfa);
	return 1;
}

/*
 * As many steps as the memo has rules for, up to @until frames, or more of them if unwind_look() says so,
 * which moves @until. Returns how the stack ended, or STACKTAP_END_NONE.
 */
static unwind_apart int unwind_walk_recall(struct unwind_walk *walk, void *memory, __u32 *until)
{
	__u64 *ip = walk->ips + walk->count;
	__u64 *look = walk->ips + (*until < walk->max ? *until : walk->max);
	struct unwind_recall at = {
		.memo = walk->memo,
		.tag = walk->memo_tag,
		.next = unwind_memo_key(walk->memo_tag, -1ULL),
		.pac_mask = unwind_pac_mask(walk),
		.limit = walk->address_limit,
		.spread = UNWIND_MEMO_SPREAD,
		.key = unwind_memo_key(walk->memo_tag, walk->pc - !walk->is_exact),
		.sp = walk->sp,
	};
	int end = STACKTAP_END_NONE;
	__u32 more, room;

	/*
	 * sp stays aligned and below the limit, so that what an entry adds to it is not below it, and no
	 * offset from there leads below 0.
	 */
	if (ip >= look || at.sp % UNWIND_WORD || at.sp < UNWIND_MEMO_REACH || at.sp >= at.limit ||
	    walk->is_fp_lost | walk->is_sp_lost || !unwind_read_begin(memory, at.sp))
		return STACKTAP_END_NONE;
	/* an instruction with each frame of x86 has it, arm64 makes it from two */
	if (unwind_has_link(walk))
		unwind_hide(at.spread);
	for (;;) {
		/* four at a time: what counts them costs a quarter */
		while (look - ip >= 4) {
			if (!unwind_recall_usual(walk, memory, &at, ip))
				goto unusual;
			if (!unwind_recall_usual(walk, memory, &at, ip + 1))
				goto unusual_1;
			if (!unwind_recall_usual(walk, memory, &at, ip + 2))
				goto unusual_2;
			if (!unwind_recall_usual(walk, memory, &at, ip + 3))
				goto unusual_3;
			ip += 4;
		}
		for (; ip < look; ip++)
			if (!unwind_recall_usual(walk, memory, &at, ip))
				goto unusual;
		room = walk->max - (__u32)(ip - walk->ips);
		more = room ? unwind_look(memory) : 0;
		if (!more)
			break;
		look += more < room ? more : room;
		*until = (__u32)(look - walk->ips);
		continue;

unusual_3:
		ip++;
unusual_2:
		ip++;
unusual_1:
		ip++;
unusual:
		if (!unwind_recall_any(walk, memory, &at, ip, &end))
			break;
		ip++;
	}
	unwind_read_end(memory);
	if (ip == walk->ips + walk->count)
		return end;
	walk->pc = at.key - at.next;
	walk->sp = at.sp;
	walk->count = (__u32)(ip - walk->ips);
	walk->known = UNWIND_KNOWN_NOWHERE;
	walk->saved = UNWIND_SAVED_NOWHERE;
	walk->is_exact = 0;
	/* 0 wraps */
	if (walk->pc - 1 < at.limit - 1)
		return end;
	/* no frame, see unwind_walk_enter() */
	walk->count--;
	return walk->pc ? STACKTAP_END_BAD_FRAME : STACKTAP_END_COMPLETE;
}

/* Begin: the first frame is where the task was interrupted. */
static inline void unwind_walk_begin(struct unwind_walk *walk)
{
	walk->known = walk->regs ? UNWIND_KNOWN_ARRAY : UNWIND_KNOWN_NOWHERE;
	walk->saved = walk->regs ? UNWIND_SAVED_ARRAY : UNWIND_SAVED_NOWHERE;
	walk->is_exact = 1;
	walk->ips[0] = walk->pc;
	walk->count = 1;
}

/*
 * Walk on until there are @until frames or the stack ends: enum stacktap_end, STACKTAP_END_NONE
 * when there is more to walk. Between two calls the caller may look at the clock; steps that search
 * cost most, so it also returns when there were as many as walk->pause says.
 */
static inline int unwind_walk_run(struct unwind_walk *walk, void *memory, __u32 until)
{
	do {
		int end = STACKTAP_END_NONE;

		if (walk->memo && walk->count < until) {
			end = unwind_walk_recall(walk, memory, &until);
			if (end != STACKTAP_END_NONE || walk->count >= until)
				return end;
		}
		walk->searches++;
		end = unwind_walk_step(walk, memory);
		if (end != STACKTAP_END_NONE)
			return end;
		if (walk->count >= walk->max)
			return STACKTAP_END_DEPTH;
		if (walk->is_exact) {
			if (walk->exact_count >= walk->max_exact)
				return STACKTAP_END_DEPTH;
			walk->exact[walk->exact_count++] = walk->count;
		}
		walk->ips[walk->count++] = walk->pc;
	} while (walk->count < until && walk->searches != walk->pause);
	return STACKTAP_END_NONE;
}

#endif /* STACKTAP_UNWIND_H */
