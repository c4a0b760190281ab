/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Call frame information: the entries of .eh_frame and .debug_frame, and running their programs.
 *
 * Of the registers only the return address, the frame pointer and the stack pointer matter, and on
 * x86 one more, by which ld.so finds its frame.
 * All input is hostile: time is proportional to its size, since what a common entry can cost each
 * of its frame entries is limited.
 */
#ifndef STACKTAP_UNWIND_CFI_H
#define STACKTAP_UNWIND_CFI_H

#include "symbol/elf.h"
#include "unwind/entry.h"
#include "unwind/machine.h"

enum {
	CFI_CIES = 64,			/* remembered at once */
	CFI_WINDOW = 64 * 1024,		/* bytes in memory at once, and the largest entry */
	CFI_ALIGN_MAX = 1 << 16,
};

/* Part of a section. */
struct cfi_window {
	size_t offset, size;
	uint8_t bytes[CFI_WINDOW];
};

struct cfi_section {
	const struct elf *elf;
	uint64_t offset;		/* in the file */
	const uint8_t *data;		/* all of it, when it was compressed */
	size_t size;
	uint64_t address;		/* in the object */
	bool is_debug;			/* .debug_frame */
	bool is_open;			/* size is not known, a terminator ends it */
	int error;			/* of reading; what came since is not complete */
	const struct machine *machine;
	struct cfi_cie cies[CFI_CIES];
	struct cfi_window window, cie_window;
};

/*
 * The frame entry at or behind *@offset, which then is behind it; its own place is in *@ret_at.
 * False at the end. Entries that are broken or empty are passed over.
 */
bool cfi_next(struct cfi_section *section, size_t *offset, size_t *ret_at, struct cfi_fde *ret_fde);

/*
 * Run @fde's program: @row is called with each row, in ascending order of address, from fde->start
 * on. @state is NULL where the program has something that is not understood; that is the last row.
 * Stops with what @row returns if that is not 0.
 */
int cfi_run(const struct cfi_section *section, const struct cfi_fde *fde,
	    int (*row)(void *ctx, const struct cfi_fde *fde, uint64_t address,
		       const struct cfi_state *state),
	    void *ctx);

#endif /* STACKTAP_UNWIND_CFI_H */
