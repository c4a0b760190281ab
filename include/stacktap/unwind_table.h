/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * The unwind table of one object: for each address of its code a rule that tells how to find the
 * caller's registers. The daemon compiles it from call frame information, the module and the daemon
 * walk with it.
 *
 * Addresses are the object's own (ELF virtual addresses), so a table serves wherever the object is
 * mapped. Code is counted in units of 1 << shift bytes (the instruction alignment), 256 units are a
 * block, 256 blocks a span. A row is two bytes: the low byte of the unit where it begins, and the
 * number of its rule; it holds up to the next row. Rows of a block are those between its start and
 * the next block's; where a block has no row at or below an address, the row before holds. A span in
 * which no row begins needs no blocks: rows cost, not addresses.
 * Rules are numbered by how often they occur; rows whose rule has no number below UNWIND_ROW_WIDE
 * have their rule in a list beside.
 *
 * An object in which callers have their CFA from one more register than sp and fp (ld.so's lazy
 * binding: rbx) also tells for each rule where that register is saved.
 *
 *	header, rules[], saved[] (s32, or none), spans[], wide_rows[] (u32),
 *	wide_rules[] (u16), blocks[] (u16), rows[] (u16), zero bytes up to a multiple of 8
 *
 * All in host byte order, all sizes follow from the header's counts: nothing in a table is an
 * offset that could point elsewhere. unwind_table_check() is the only way to get a struct
 * unwind_table, and what it has checked is what makes unwind_table_find() safe: the memory must
 * not change in between.
 */
#ifndef STACKTAP_UNWIND_TABLE_H
#define STACKTAP_UNWIND_TABLE_H

#include <linux/errno.h>
#include <linux/types.h>
#ifdef __KERNEL__
#include <linux/build_bug.h>
#include <linux/nospec.h>
#else
#include <assert.h>
#include <stddef.h>
#endif

#define UNWIND_TABLE_MAGIC	0x57557453U
#define UNWIND_TABLE_MAX_BYTES	(64U << 20)
#define UNWIND_SPAN_EMPTY	0xffffffffU	/* for a span's block: no row begins there */

enum {
	UNWIND_TABLE_VERSION	= 2,
	UNWIND_BLOCK_SHIFT	= 8,	/* units in a block, and blocks in a span */
	UNWIND_SPAN_BLOCKS	= 1 << UNWIND_BLOCK_SHIFT,
	UNWIND_BLOCKS_MAX	= 1 << 24,
	UNWIND_RULES_MAX	= 65535,
	UNWIND_SHIFT_MAX	= 2,
	UNWIND_ROW_WIDE		= 255,
	UNWIND_REGISTERS	= 33,	/* DWARF numbers below this may be named */
	UNWIND_OFFSET_MAX	= 1 << 30,
	UNWIND_WORD		= 8,
	UNWIND_LINK_REGISTER	= 30,	/* of arm64 */
	UNWIND_SAVED_REGISTER	= 3,	/* rbx, the only one that saved[] may be about */
	UNWIND_SAVED_SAME	= 0,	/* in saved[]; what is negative is its distance from the CFA */
	UNWIND_SAVED_LOST	= 1,
	UNWIND_PAUSE		= 1 << 14,
};

/*
 * How a value is found: one byte, the upper two bits say how, the lower six from what. VALUE is
 * base + offset, LOAD the word there.
 */
enum unwind_how {
	UNWIND_SPECIAL		= 0 << 6,
	UNWIND_VALUE		= 1 << 6,
	UNWIND_LOAD		= 2 << 6,
	UNWIND_PLT		= 3 << 6,	/* CFA only: base + offset, + 8 late in the entry */
	UNWIND_HOW_MASK		= 3 << 6,
	UNWIND_BASE_MASK	= 0x3f,
};

/* the base of VALUE, LOAD and PLT: a DWARF register number or one of these */
enum unwind_base {
	UNWIND_BASE_SP		= 0x3d,
	UNWIND_BASE_FP		= 0x3e,
	UNWIND_BASE_CFA		= 0x3f,
};

/* UNWIND_SPECIAL for the CFA: the whole rule, everything else is zero */
enum unwind_special {
	UNWIND_UNCOVERED,	/* no call frame information covers this code */
	UNWIND_NO_RULE,		/* it does, but says what rules cannot express */
	UNWIND_END,		/* the outermost frame */
};

/* UNWIND_SPECIAL for the frame pointer */
enum unwind_fp {
	UNWIND_FP_SAME,
	UNWIND_FP_UNDEFINED,
};

enum {
	UNWIND_EXTRA_SIGNAL	= 0x80,	/* the caller was interrupted, it did not call */
	UNWIND_EXTRA_MASK	= 0x7f,
	UNWIND_PLT_ENTRY	= 16,	/* bytes of an entry: EXTRA is below it */
};

struct unwind_rule {
	__u8 cfa;
	__u8 ra;
	__u8 fp;
	/*
	 * Bit 7: a signal frame. The lower bits for LOAD of the CFA: words to add to what was
	 * loaded; for PLT: from this byte of an entry on the CFA is a word higher.
	 */
	__u8 extra;
	__s32 cfa_offset;
	__s32 ra_offset;
	__s32 fp_offset;
};

/* 256 blocks of code, the last one fewer. */
struct unwind_span {
	__u32 row;		/* the first that begins here or later */
	__u32 block;		/* its first in blocks[], behind those of spans before, or EMPTY */
};

struct unwind_table_header {
	__u32 magic;
	__u16 version;
	__u16 machine;		/* EM_X86_64 or EM_AARCH64 */
	__u64 checksum;		/* of all that follows */
	__u64 start;		/* address of the first block */
	__u32 blocks;
	__u32 rows;
	__u32 wides;
	__u32 rules;
	__u8 shift;
	__u8 saved;		/* UNWIND_SAVED_REGISTER: there is saved[]; 0 */
	__u8 zero[2];
	__u32 indexed;		/* blocks that have an entry in blocks[] */
};

/* the layout of version 2: another one takes another UNWIND_TABLE_VERSION */
static_assert(UNWIND_TABLE_VERSION == 2 && sizeof(struct unwind_span) == 8 &&
	      sizeof(struct unwind_rule) == 16 &&
	      offsetof(struct unwind_rule, ra) == 1 && offsetof(struct unwind_rule, fp) == 2 &&
	      offsetof(struct unwind_rule, cfa_offset) == 4 &&
	      offsetof(struct unwind_rule, ra_offset) == 8 &&
	      sizeof(struct unwind_table_header) == 48 &&
	      offsetof(struct unwind_table_header, checksum) == 8 &&
	      offsetof(struct unwind_table_header, start) == 16 &&
	      offsetof(struct unwind_table_header, blocks) == 24 &&
	      offsetof(struct unwind_table_header, rows) == 28 &&
	      offsetof(struct unwind_table_header, wides) == 32 &&
	      offsetof(struct unwind_table_header, rules) == 36 &&
	      offsetof(struct unwind_table_header, shift) == 40 &&
	      offsetof(struct unwind_table_header, indexed) == 44, "tables have another layout");

/* A checked table. */
struct unwind_table {
	__u64 start;
	__u64 bytes;		/* of code, from start */
	const struct unwind_rule *rules;
	const __s32 *saved;	/* beside rules, or NULL */
	const struct unwind_span *spans;
	const __u32 *wide_rows;	/* ascending */
	const __u16 *wide_rules;
	const __u16 *blocks;	/* rows before the block, in its span; of spans that have rows */
	const __u16 *rows;	/* low byte of the unit | rule << 8 */
	__u32 block_count;	/* of code */
	__u32 index_count;	/* of blocks[], which are fewer */
	__u32 row_count;
	__u32 wide_count;
	__u32 rule_count;
	__u16 machine;
	__u8 shift;
};

/* One executable range of the address space; an array of them is sorted and without overlap. */
struct unwind_mapping {
	__u64 start;
	__u64 end;			/* exclusive */
	__u64 bias;			/* run-time address minus ELF virtual address */
	const struct unwind_table *table; /* NULL: by frame pointers */
};

/* A speculated bounds check must not let @index reach beyond @count. */
static inline __u32 unwind_clamp(__u32 index, __u32 count)
{
#ifdef __KERNEL__
	return array_index_nospec(index, count);
#else
	return index < count ? index : 0;
#endif
}

static inline __u32 unwind_table_spans(__u32 blocks)
{
	return (blocks + (1U << UNWIND_BLOCK_SHIFT) - 1) >> UNWIND_BLOCK_SHIFT;
}

/* Bytes that a table with these counts takes. */
static inline __u64 unwind_table_bytes(const struct unwind_table_header *header)
{
	__u64 rule = sizeof(struct unwind_rule) + (header->saved ? sizeof(__s32) : 0);
	__u64 bytes = sizeof(*header) + header->rules * rule +
		      (__u64)sizeof(struct unwind_span) * unwind_table_spans(header->blocks) +
		      6ULL * header->wides + 2ULL * header->indexed + 2ULL * header->rows;

	return (bytes + 7) & ~7ULL;
}

/*
 * unwind_table_check() calls this every UNWIND_PAUSE words, rows or spans, and for each span that has
 * rows. Who includes this header may define it to let others run.
 */
#ifndef unwind_check_pause
#define unwind_check_pause() ((void)0)
#endif

/* Against rotten storage, not against malice. @size is a multiple of 8, @data is aligned. */
static inline __u64 unwind_table_checksum(const void *data, __u64 size)
{
	/* what was written as fields must not be taken for something else than these words */
	const __u64 __attribute__((__may_alias__)) *words = data;
	__u64 sum = 0xcbf29ce484222325ULL, i;

	for (i = 2; i < size / 8; i++) {
		if (!(i % UNWIND_PAUSE))
			unwind_check_pause();
		sum = (sum ^ words[i]) * 0x9e3779b97f4a7c15ULL;
		sum ^= sum >> 29;
	}
	return sum;
}

/* The arrays behind a header whose counts are known to fit. */
static inline void unwind_table_view(const void *data, struct unwind_table *table)
{
	const struct unwind_table_header *header = data;

	table->start = header->start;
	table->bytes = (__u64)header->blocks << (UNWIND_BLOCK_SHIFT + header->shift);
	table->block_count = header->blocks;
	table->index_count = header->indexed;
	table->row_count = header->rows;
	table->wide_count = header->wides;
	table->rule_count = header->rules;
	table->machine = header->machine;
	table->shift = header->shift;
	table->rules = (const struct unwind_rule *)(header + 1);
	table->saved = NULL;
	table->spans = (const struct unwind_span *)(table->rules + header->rules);
	if (header->saved) {
		table->saved = (const __s32 *)table->spans;
		table->spans = (const struct unwind_span *)(table->saved + header->rules);
	}
	table->wide_rows = (const __u32 *)(table->spans + unwind_table_spans(header->blocks));
	table->wide_rules = (const __u16 *)(table->wide_rows + header->wides);
	table->blocks = table->wide_rules + header->wides;
	table->rows = table->blocks + header->indexed;
}

/* Row number at which @block begins; @block may be one past the last. */
static inline __u32 unwind_table_row(const struct unwind_table *table, __u32 block)
{
	const struct unwind_span *span;
	__u32 index;

	if (block >= table->block_count)
		return table->row_count;
	block = unwind_clamp(block, table->block_count);
	span = &table->spans[block >> UNWIND_BLOCK_SHIFT];
	if (span->block == UNWIND_SPAN_EMPTY)
		return span->row;
	index = span->block + (block & (UNWIND_SPAN_BLOCKS - 1));
	return span->row + table->blocks[unwind_clamp(index, table->index_count)];
}

static inline int unwind_offset_valid(__s32 offset)
{
	return offset >= -UNWIND_OFFSET_MAX && offset <= UNWIND_OFFSET_MAX;
}

static inline int unwind_base_valid(__u8 how, int may_be_cfa)
{
	__u8 base = how & UNWIND_BASE_MASK;

	return base < UNWIND_REGISTERS || base == UNWIND_BASE_SP || base == UNWIND_BASE_FP ||
	       (base == UNWIND_BASE_CFA && may_be_cfa);
}

static inline int unwind_saved_valid(const struct unwind_rule *rule, __s32 saved)
{
	if ((rule->cfa & UNWIND_HOW_MASK) == UNWIND_SPECIAL)
		return saved == UNWIND_SAVED_SAME;
	return saved <= UNWIND_SAVED_LOST && saved >= -UNWIND_OFFSET_MAX;
}

/* One encoding for each meaning: fields without one are zero. */
static inline int unwind_rule_valid(const struct unwind_rule *rule)
{
	__u8 extra = rule->extra & UNWIND_EXTRA_MASK;

	switch (rule->cfa & UNWIND_HOW_MASK) {
	case UNWIND_SPECIAL:
		return rule->cfa <= UNWIND_END && !rule->ra && !rule->fp && !rule->extra &&
		       !rule->cfa_offset && !rule->ra_offset && !rule->fp_offset;
	case UNWIND_VALUE:
		if (extra)
			return 0;
		break;
	case UNWIND_PLT:
		if (!extra || extra >= UNWIND_PLT_ENTRY)
			return 0;
		break;
	}
	if (!unwind_base_valid(rule->cfa, 0) || !unwind_offset_valid(rule->cfa_offset))
		return 0;

	switch (rule->ra & UNWIND_HOW_MASK) {
	case UNWIND_VALUE:
	case UNWIND_LOAD:
		if (!unwind_base_valid(rule->ra, 1) || !unwind_offset_valid(rule->ra_offset))
			return 0;
		break;
	default:
		return 0;
	}

	switch (rule->fp & UNWIND_HOW_MASK) {
	case UNWIND_SPECIAL:
		return rule->fp <= UNWIND_FP_UNDEFINED && !rule->fp_offset;
	case UNWIND_VALUE:
	case UNWIND_LOAD:
		return unwind_base_valid(rule->fp, 1) && unwind_offset_valid(rule->fp_offset);
	}
	return 0;
}

static inline int unwind_table_header_valid(const struct unwind_table_header *header, __u64 size)
{
	unsigned int i;

	if (header->magic != UNWIND_TABLE_MAGIC || header->version != UNWIND_TABLE_VERSION)
		return 0;
	for (i = 0; i < sizeof(header->zero); i++)
		if (header->zero[i])
			return 0;
	if (header->saved && header->saved != UNWIND_SAVED_REGISTER)
		return 0;
	if (header->shift > UNWIND_SHIFT_MAX || header->blocks > UNWIND_BLOCKS_MAX ||
	    header->indexed > header->blocks || header->rules > UNWIND_RULES_MAX ||
	    unwind_table_bytes(header) != size)
		return 0;
	/* blocks begin at multiples of their size, and the last one does not wrap */
	return !(header->start & ((1ULL << (UNWIND_BLOCK_SHIFT + header->shift)) - 1)) &&
	       header->start <= (~0ULL >> 1);
}

/* Each span's blocks lie behind those of the ones before, and no row number wraps. */
static inline int unwind_spans_valid(const struct unwind_table *table)
{
	__u32 i, left, count = unwind_table_spans(table->block_count), used = 0;

	for (i = 0; i < count; i++) {
		const struct unwind_span *span = &table->spans[i];

		if (span->row > table->row_count)
			return 0;
		if (span->block == UNWIND_SPAN_EMPTY)
			continue;
		left = table->block_count - (i << UNWIND_BLOCK_SHIFT);
		if (left > UNWIND_SPAN_BLOCKS)
			left = UNWIND_SPAN_BLOCKS;
		if (span->block != used || left > table->index_count - used)
			return 0;
		used += left;
	}
	return used == table->index_count;
}

/* Rows of the span that begins with @block ascend; spans are valid. */
static inline int unwind_rows_valid(const struct unwind_table *table, __u32 block)
{
	const struct unwind_span *span = &table->spans[block >> UNWIND_BLOCK_SHIFT];
	__u32 row, next, end = block + UNWIND_SPAN_BLOCKS;

	if (end > table->block_count)
		end = table->block_count;
	/* without blocks there is nothing to look at: the time is in proportion to the size */
	if (span->block == UNWIND_SPAN_EMPTY)
		return unwind_table_row(table, end) == span->row;
	for (; block < end; block++) {
		row = unwind_table_row(table, block);
		next = unwind_table_row(table, block + 1);
		if (row > next || next > table->row_count)
			return 0;
		for (; row + 1 < next; row++)
			if ((table->rows[row] & 0xff) >= (table->rows[row + 1] & 0xff))
				return 0;
	}
	return 1;
}

/*
 * Is the table at @data sound in every byte? 0 and a view of it, or -EINVAL. Takes time in
 * proportion to @size and reads nothing outside. @data is aligned to 8.
 */
static inline int unwind_table_check(const void *data, __u64 size, struct unwind_table *ret_table)
{
	const struct unwind_table_header *header = data;
	const __u8 *bytes = data;
	struct unwind_table table;
	__u32 i, row, wide = 0;
	__u64 used;

	if (size < sizeof(*header) || size > UNWIND_TABLE_MAX_BYTES || size % 8 ||
	    !unwind_table_header_valid(header, size) ||
	    header->checksum != unwind_table_checksum(data, size))
		return -EINVAL;
	unwind_table_view(data, &table);

	for (used = (const __u8 *)(table.rows + table.row_count) - bytes; used < size; used++)
		if (bytes[used])
			return -EINVAL;
	for (i = 0; i < table.rule_count; i++)
		if (!unwind_rule_valid(&table.rules[i]) ||
		    (table.saved && !unwind_saved_valid(&table.rules[i], table.saved[i])))
			return -EINVAL;

	if (!unwind_spans_valid(&table) ||
	    (table.row_count && (!table.block_count || unwind_table_row(&table, 0))))
		return -EINVAL;
	for (i = 0; i < unwind_table_spans(table.block_count); i++) {
		/* it may have 65,536 rows */
		if (table.spans[i].block != UNWIND_SPAN_EMPTY || !(i % UNWIND_PAUSE))
			unwind_check_pause();
		if (!unwind_rows_valid(&table, i << UNWIND_BLOCK_SHIFT))
			return -EINVAL;
	}

	for (row = 0; row < table.row_count; row++) {
		__u32 rule = table.rows[row] >> 8;

		if (!(row % UNWIND_PAUSE))
			unwind_check_pause();
		if (rule == UNWIND_ROW_WIDE) {
			if (wide >= table.wide_count || table.wide_rows[wide] != row)
				return -EINVAL;
			rule = table.wide_rules[wide++];
		}
		if (rule >= table.rule_count)
			return -EINVAL;
	}
	if (wide != table.wide_count)
		return -EINVAL;
	*ret_table = table;
	return 0;
}

/* The number of the rule of @row, where the row has no room for it. */
static inline __u32 unwind_table_wide(const struct unwind_table *table, __u32 row)
{
	__u32 first = 0, last = table->wide_count;

	while (first < last) {
		__u32 middle = first + (last - first) / 2;

		if (table->wide_rows[middle] < row)
			first = middle + 1;
		else
			last = middle;
	}
	return table->wide_rules[unwind_clamp(first, table->wide_count)];
}

static inline const struct unwind_rule *unwind_table_rule(const struct unwind_table *table,
							  __u32 row)
{
	__u32 rule = table->rows[row] >> 8;

	if (rule == UNWIND_ROW_WIDE)
		rule = unwind_table_wide(table, row);
	return &table->rules[unwind_clamp(rule, table->rule_count)];
}

/* The rule for the ELF virtual address @address, or NULL where the table says nothing. */
static inline const struct unwind_rule *unwind_table_find(const struct unwind_table *table,
							  __u64 address)
{
	__u64 offset = address - table->start;
	__u32 block, low, first, last;

	if (offset >= table->bytes)
		return NULL;
	offset >>= table->shift;
	low = offset & 0xff;
	block = offset >> UNWIND_BLOCK_SHIFT;
	first = unwind_table_row(table, block);
	last = unwind_table_row(table, block + 1);
	/* at most eight times: a checked block has at most 256 rows */
	while (first < last) {
		__u32 middle = first + (last - first) / 2;

		if ((table->rows[middle] & 0xff) <= low)
			first = middle + 1;
		else
			last = middle;
	}
	return first ? unwind_table_rule(table, first - 1) : NULL;
}

#endif /* STACKTAP_UNWIND_TABLE_H */
