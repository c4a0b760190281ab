/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Call frame information of an ELF object, compiled into the table that the module walks with.
 *
 * By a parser of our own: libdw answers for one address at a time, takes eight times as long for
 * all rows of libLLVM, and sizes its memory by what the file says.
 *
 * The information is read twice, through a window: to count rows, and to write them. Beside the
 * table only eight bytes for each frame entry are in memory.
 *
 * .eh_frame wins over .debug_frame where both cover code. Frame entries that overlap are cut at the
 * next one's start, which is what a search in .eh_frame_hdr comes down to.
 */
#ifndef STACKTAP_UNWIND_COMPILE_H
#define STACKTAP_UNWIND_COMPILE_H

#include "symbol/elf.h"

struct compile_stats {
	uint64_t eh_bytes, debug_bytes;	/* of call frame information read */
	uint64_t text_bytes;		/* in executable segments */
	uint64_t covered_bytes;		/* of them with a rule or the end of the stack */
	uint64_t no_rule_bytes;		/* with information that rules cannot express */
	uint64_t fdes;
	size_t memory;			/* most that was taken at once, the table included */
	uint64_t ns;			/* that it took */
};

/*
 * The table, to be freed. -ENODATA: no executable code, or nothing known of it;
 * -ENOTSUP: not a machine that is unwound; -ENOMEM: more than @memory_limit bytes would be needed;
 * -EFBIG: beyond what a table may hold; -ETIME: the deadline of @elf; -ESTALE: the file changed.
 */
int compile_elf(const struct elf *elf, size_t memory_limit, void **ret_data, size_t *ret_size,
		struct compile_stats *ret_stats);

#endif /* STACKTAP_UNWIND_COMPILE_H */
