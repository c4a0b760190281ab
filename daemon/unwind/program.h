/* SPDX-License-Identifier: Apache-2.0 */
/* Running the instructions of one frame entry. */
#ifndef STACKTAP_UNWIND_PROGRAM_H
#define STACKTAP_UNWIND_PROGRAM_H

#include "base/cursor.h"
#include "unwind/entry.h"
#include "unwind/machine.h"

enum program_end {
	PROGRAM_DONE,
	PROGRAM_MOVED,		/* to `next`; `state` is the row up to there */
	PROGRAM_BAD,		/* an instruction that is broken or not understood */
};

struct program {
	const struct machine *machine;
	const struct cfi_cie *cie;
	struct cursor cursor;
	struct cfi_state state;
	uint64_t address, next;
	unsigned int depth;
	struct cfi_state remembered[CFI_STATES_MAX];
};

/* At the start of @fde. */
void program_begin(struct program *program, const struct machine *machine,
		   const struct cfi_fde *fde);

/* Run up to the next change of the address. */
enum program_end program_step(struct program *program);

/* Run a common entry's instructions: they make its `initial`. */
bool program_initial(const struct machine *machine, struct cfi_cie *cie, const uint8_t *data,
		     size_t size);

#endif /* STACKTAP_UNWIND_PROGRAM_H */
