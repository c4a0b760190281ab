/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules of Go's functions: .gopclntab says of each instruction how far the stack pointer is from where it was at the
 * function's entry (pcsp). Functions that leave the stack that they are on have none: see unwind/go_stack.h.
 *
 * The file is hostile: reads are bounded, and time is in proportion to the code that is covered.
 */
#ifndef STACKTAP_UNWIND_PCSP_H
#define STACKTAP_UNWIND_PCSP_H

#include "symbol/pclntab.h"
#include "unwind/builder.h"
#include "unwind/go_stack.h"

struct pcsp {
	struct pclntab pclntab;
	struct go_stack stack;
	uint32_t next;			/* function to look at next */
	uint64_t done;			/* end of the last range that was filled */
	uint32_t runs;			/* of values, and functions; wraps */
};

/* The code that functions of @elf's table take up; empty where that is unknown. False: there are no rules. */
bool pcsp_find(struct pcsp *pcsp, const struct elf *elf, uint64_t *ret_start, uint64_t *ret_end);

/*
 * Rows for [@start, @end), which lies within that range and which no frame entry covers; cheap
 * when called with ascending ranges. -errno of reading or of the builder, -ETIME behind the file's deadline.
 */
int pcsp_fill(struct pcsp *pcsp, struct builder *builder, uint64_t start, uint64_t end);

/*
 * Shows @see what is known of each function by its code, in numbers; nothing where the table alone is read. -errno of
 * reading; -ETIME
 */
int pcsp_each(struct pcsp *pcsp, void (*see)(void *ctx, uint64_t number), void *ctx);

#endif /* STACKTAP_UNWIND_PCSP_H */
