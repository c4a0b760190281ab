/* SPDX-License-Identifier: Apache-2.0 */
/* Which instructions and functions were stepped through. */
#ifndef LIVE_COVERAGE_H
#define LIVE_COVERAGE_H

#include <elfutils/libdwfl.h>
#include <stdbool.h>
#include <stdint.h>

/* True if @pc was not seen before. @ret_has_cfi: libdwfl finds call frame information for it. */
bool coverage_add(Dwfl *dwfl, uint64_t pc, bool *ret_has_cfi);
/* No call frame information at @pc, or with the return address above the CFA, where none can be? */
bool coverage_is_wrong(Dwfl *dwfl, uint64_t pc);
/* Distinct instructions by function as a JSON object; PLT entries are a function named "PLT". */
void coverage_print(void);

#endif /* LIVE_COVERAGE_H */
