/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers by which hosts that do the same at the same time fall out of step. */
#ifndef STACKTAP_BASE_DRAW_H
#define STACKTAP_BASE_DRAW_H

#include "base/macro.h"

/* Fills @size bytes; fewer than that: there is no randomness to be had yet. */
typedef ssize_t (*draw_source)(void *bytes, size_t size);

/* Below @limit, each as likely. Without randomness it is made of the clock and the process' number. */
uint32_t draw_from(draw_source source, uint32_t limit);
uint32_t draw_below(uint32_t limit);	/* by the kernel's */

#endif /* STACKTAP_BASE_DRAW_H */
