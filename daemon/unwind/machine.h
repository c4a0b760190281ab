/* SPDX-License-Identifier: Apache-2.0 */
/* The registers of an architecture that unwinding is about, by their DWARF numbers. */
#ifndef STACKTAP_UNWIND_MACHINE_H
#define STACKTAP_UNWIND_MACHINE_H

#include <elf.h>
#include <stacktap/unwind_table.h>

#include "base/macro.h"

struct machine {
	uint16_t elf;		/* EM_* */
	uint8_t shift;		/* instructions are multiples of 1 << shift bytes */
	uint8_t sp, fp, ra;	/* ra: the column of the return address */
	uint8_t saved;		/* the register that saved[] of a table may be about, or 0 */
	bool has_link;		/* a call leaves the return address in register ra */
};

/* NULL: not an architecture that is unwound. */
static inline const struct machine *machine_find(uint16_t elf)
{
	static const struct machine machines[] = {
		{ .elf = EM_X86_64, .shift = 0, .sp = 7, .fp = 6, .ra = 16,
		  .saved = UNWIND_SAVED_REGISTER },
		{ .elf = EM_AARCH64, .shift = 2, .sp = 31, .fp = 29, .ra = 30, .has_link = true },
	};

	for (size_t i = 0; i < ARRAY_SIZE(machines); i++)
		if (machines[i].elf == elf)
			return &machines[i];
	return NULL;
}

/* The base of a rule for register @number; false: it has no name there. */
static inline bool machine_base(const struct machine *machine, uint64_t number, uint8_t *ret_base)
{
	if (number == machine->sp)
		*ret_base = UNWIND_BASE_SP;
	else if (number == machine->fp)
		*ret_base = UNWIND_BASE_FP;
	else if (number < UNWIND_REGISTERS)
		*ret_base = (uint8_t)number;
	else
		return false;
	return true;
}

#endif /* STACKTAP_UNWIND_MACHINE_H */
