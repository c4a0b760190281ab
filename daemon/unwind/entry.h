/* SPDX-License-Identifier: Apache-2.0 */
/* Entries of call frame information, common ones and frame entries, and the rows that their programs make. */
#ifndef STACKTAP_UNWIND_ENTRY_H
#define STACKTAP_UNWIND_ENTRY_H

#include "base/macro.h"

enum {
	CFI_CIE_PROGRAM_MAX = 256,	/* bytes that each of its frame entries begins with */
	CFI_STATES_MAX = 32,		/* remembered by one program */
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

/* A frame entry. */
struct cfi_fde {
	uint64_t start, end;		/* code it is for, not empty */
	/* these are good until the next call with this section */
	const struct cfi_cie *cie;
	const uint8_t *program;
	size_t program_bytes;
};

#endif /* STACKTAP_UNWIND_ENTRY_H */
