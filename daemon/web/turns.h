/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whose turn it is on a listener's connections, and since when. A client that sends a byte now and then
 * is never silent, and would keep its connection for ever; here it is shut down once it has had its turn
 * for too long. Where few connections are left for others, those whose clients have not asked for the longest are
 * shut down sooner.
 */
#ifndef STACKTAP_WEB_TURNS_H
#define STACKTAP_WEB_TURNS_H

#include <stdatomic.h>

#include "base/macro.h"

struct turns;

/*
 * Of so many connections at most, of which the last @spare are not for who has not asked after @patience_ms.
 * Has a thread, which sleeps without any and adds to *expired. NULL: no memory.
 */
struct turns *turns_new(unsigned int connections, unsigned int spare, unsigned int turn_ms, unsigned int patience_ms,
			_Atomic uint64_t *expired);
void turns_free(struct turns *turns);	/* NULL is fine */

/*
 * From any thread: the client's turn begins, to send a request on a new connection; it is ours; the client's begins anew,
 * to read the answer; it is over.
 */
void turns_ask(struct turns *turns, int fd);
void turns_pause(struct turns *turns, int fd);
void turns_read(struct turns *turns, int fd);
void turns_end(struct turns *turns, int fd);	/* before @fd is closed */

#endif /* STACKTAP_WEB_TURNS_H */
