/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table against libdw: at the first, the last and a middle address of every row that either of
 * them has, both are asked for CFA, return address and frame pointer of a machine whose registers
 * and memory hold arbitrary numbers. What differs is wrong, whatever it is called.
 */
#ifndef STACKTAP_TESTS_COMPARE_H
#define STACKTAP_TESTS_COMPARE_H

#include <stacktap/unwind_table.h>

#include "base/macro.h"

struct compare_result {
	uint64_t rows;			/* of libdw's, each looked at thrice */
	uint64_t exact;
	uint64_t no_rule;		/* libdw knows something, the table says that it does not */
	uint64_t wrong;
	uint64_t refused;		/* libdw finds the entry, but does not understand it */
	uint64_t gap_bytes;		/* executable bytes without frame entry */
	uint64_t outside;		/* those of them for which the table has a rule */
};

/*
 * Compare @table with what libdw says of the ELF file @fd, in the address ranges that its
 * executable segments have. @report is called for each difference.
 */
int compare_file(int fd, const struct unwind_table *table,
		 void (*report)(void *ctx, uint64_t address, const char *what), void *ctx,
		 struct compare_result *ret_result);

#endif /* STACKTAP_TESTS_COMPARE_H */
