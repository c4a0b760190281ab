/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Instructions that write the stack pointer, by their encodings: x86's of 64 bits with a prefix for that, and `leave' where the
 * function returns behind it, and arm64's.
 * What pushes and pops on x86 is left out: assemblers keep account of these.
 */
#ifndef STACKTAP_UNWIND_SP_WRITE_H
#define STACKTAP_UNWIND_SP_WRITE_H

#include "unwind/machine.h"

enum { SP_WRITE_BYTES = 8 };	/* that are looked at */

/*
 * Is there one at @bytes, which on x86 need not be where an instruction begins? How long it is, or 0 where it is none
 * that adds or subtracts a number.
 */
bool sp_write_at(const struct machine *machine, const uint8_t bytes[static SP_WRITE_BYTES], uint32_t *ret_size);

/* Is the link register stored there at the lower end of a frame, as Go's assembler does it? arm64 */
bool sp_write_saves_link(const uint8_t bytes[static SP_WRITE_BYTES]);

#endif /* STACKTAP_UNWIND_SP_WRITE_H */
