/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whose turn it is on a listener's connections, and since when. A client that sends a byte now and then
 * is never silent, and would keep its connection for ever; here it is shut down once it has had its turn
 * for too long.
 */
#ifndef STACKTAP_WEB_TURNS_H
#define STACKTAP_WEB_TURNS_H

#include <stdatomic.h>

#include "base/macro.h"

struct turns;

/*
 * Of so many connections at most. Has a thread, which sleeps without any and adds to *expired. NULL: no
 * memory.
 */
struct turns *turns_new(unsigned int connections, unsigned int turn_ms, _Atomic uint64_t *expired);
void turns_free(struct turns *turns);	/* NULL is fine */

/* From any thread: the client's turn begins anew, on a connection that may be new; it is ours; it is over. */
void turns_begin(struct turns *turns, int fd);
void turns_pause(struct turns *turns, int fd);
void turns_end(struct turns *turns, int fd);	/* before @fd is closed */

#endif /* STACKTAP_WEB_TURNS_H */
