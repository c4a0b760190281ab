/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions without frame pointer, in assembly, and the unwind table that a careful hand writes for
 * them. frameless_outer() calls frameless_inner(), which burns; both spoil the frame pointer first.
 */
#ifndef KMODTEST_FRAMELESS_H
#define KMODTEST_FRAMELESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Burn for @ms of wall time in frameless_inner() under frameless_outer() under a C function. */
void frameless_burn(unsigned int ms);

/* Are these the inner frames of frameless_burn(), up to where C begins, and then its caller? */
bool frameless_is_whole(const uint64_t *ips, unsigned int nr);
/* In frameless_inner() or frameless_outer()? */
bool frameless_is_leaf(uint64_t ip);

/* Have SIGALRM handled by frameless_handler(), which calls frameless_inner(). */
int frameless_interrupt(unsigned int every_ms);
/* Is ips[exact] what such a signal interrupted? */
bool frameless_is_interrupted(const uint64_t *ips, unsigned int nr, unsigned int exact);

/* The bytes of the table, good until the next call. */
const void *frameless_table(size_t *ret_size);
/* What the table is about, as addresses in this process. */
void frameless_range(uint64_t *ret_start, uint64_t *ret_end);
/* Executable ranges of this program: its own code. */
void frameless_text(uint64_t *ret_start, uint64_t *ret_end);

/*
 * A valid table of @blocks full blocks that begins with block number @first: 514 bytes a block. To
 * be freed.
 */
void *frameless_filler(uint32_t first, uint32_t blocks, size_t *ret_size);
void frameless_checksum(void *table, size_t size);

#endif /* KMODTEST_FRAMELESS_H */
