/* SPDX-License-Identifier: Apache-2.0 */
/* Starting a helper, with the rights of who does it. */
#ifndef STACKTAP_HELPER_SPAWN_H
#define STACKTAP_HELPER_SPAWN_H

#include <sys/types.h>

#include "helper/protocol.h"

/* @socket is its end of the pair. Does not wait for it to be ready. */
int helper_spawn(enum helper_kind kind, int socket, pid_t *ret_pid);

#endif /* STACKTAP_HELPER_SPAWN_H */
