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
#include "unwind/machine.h"

enum {
	CFI_CIES = 64,			/* remembered at once */
	CFI_WINDOW = 64 * 1024,		/* bytes in memory at once, and the largest entry */
	CFI_CIE_PROGRAM_MAX = 256,	/* bytes that each of its frame entries begins with */
	CFI_STATES_MAX = 32,		/* remembered by one program */
	CFI_ALIGN_MAX = 1 << 16,
};

enum cfi_kind {
	CFI_UNSET,
	CFI_UNDEFINED,
	CFI_SAME,
	CFI_OFFSET,		/* saved at CFA + number */
	CFI_VAL_OFFSET,		/* is CFA + number */
	CFI_REGISTER,		/* is in register number */
	CFI_EXPRESSION,		/* saved where the expression says */
	CFI_VAL_EXPRESSION,	/* is what the expression says */
};

struct cfi_value {
	enum cfi_kind kind;
	uint32_t size;			/* of the expression */
	int64_t number;
	const uint8_t *expression;
};

enum { CFI_RA, CFI_FP, CFI_SP, CFI_SAVED, CFI_VALUES };

/* One row of the table that CFI describes. */
struct cfi_state {
	/* CFI_UNSET, CFI_OFFSET (from cfa_register), CFI_EXPRESSION, which keeps the last number */
	struct cfi_value cfa;
	uint64_t cfa_register;
	struct cfi_value values[CFI_VALUES];
};

struct cfi_cie {
	size_t offset;			/* in its section, plus 1; 0: none */
	bool is_good, has_length, is_signal;
	bool is_opaque;			/* frame entries can be found, but not understood */
	uint8_t encoding;		/* of addresses */
	uint64_t code_align;
	int64_t data_align;
	struct cfi_state initial;
	uint8_t program[CFI_CIE_PROGRAM_MAX]; /* `initial` may point here */
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

/* A frame entry. */
struct cfi_fde {
	uint64_t start, end;		/* code it is for, not empty */
	/* these are good until the next call with this section */
	const struct cfi_cie *cie;
	const uint8_t *program;
	size_t program_bytes;
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
