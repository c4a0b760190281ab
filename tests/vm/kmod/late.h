/* SPDX-License-Identifier: Apache-2.0 */
/* The walk of the module once more, from the registers and the slice that a sample carries. */
#ifndef KMODTEST_LATE_H
#define KMODTEST_LATE_H

#include <stdint.h>

#include "client.h"

/*
 * By the hand-written table, as tables_set_frameless() loads it: how many of @ips there are. How the
 * walk ended in @ret_end: UNREADABLE also where the slice was too short.
 */
unsigned int late_walk(const struct sample_view *view, uint64_t *ips, unsigned int max,
		       unsigned int *ret_end);

#endif /* KMODTEST_LATE_H */
