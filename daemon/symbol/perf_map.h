/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A perf map, /tmp/perf-PID.map: a line for each function that a runtime has compiled, "START SIZE NAME", both numbers
 * hexadecimal, with a 0x before them where JDK 25 writes it. Runtimes append to it, so a later line counts.
 */
#ifndef STACKTAP_SYMBOL_PERF_MAP_H
#define STACKTAP_SYMBOL_PERF_MAP_H

#include "symbol/code.h"

enum { PERF_MAP_LINE_MAX = 64 << 10 };	/* bytes; a longer line is none */

/*
 * Whole lines of [@offset, @size) until @deadline, CLOCK_MONOTONIC ns; what is left is for another time, see
 * ret_read->end. From 0 on, of a large file, those at its end alone if they are as many as are kept. code_table_free() its
 * table. -errno of reading, -ENOMEM.
 */
int perf_map_read(int fd, uint64_t offset, uint64_t size, uint64_t deadline,
		  struct code_read *ret_read);

#endif /* STACKTAP_SYMBOL_PERF_MAP_H */
