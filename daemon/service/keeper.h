/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The service manager as keeper of the session's descriptors (systemd's FDSTORE): it has them until they are
 * dropped, or the unit is stopped or fails for good, and hands them to the next daemon of the same unit.
 */
#ifndef STACKTAP_SERVICE_KEEPER_H
#define STACKTAP_SERVICE_KEEPER_H

#include "capture/kept.h"

/* Before there are threads. What was handed over, -1: nothing; of anything else the descriptors are closed. */
void keeper_take(struct kept_fds *ret_fds);
/* Is it a pair, and worth another try? Else it ends. It reads what the last daemon wrote, so without its rights. */
void keeper_check(struct kept_fds *fds);
bool keeper_is_there(void);
/* Any thread. In place of what was kept before. */
void keeper_keep(int session, int ledger);
void keeper_drop(void);
/* The same, and our own descriptors of it are closed: the session ends, as nobody else has it. */
void keeper_forget(struct kept_fds *fds);

#endif /* STACKTAP_SERVICE_KEEPER_H */
