/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whose share of the time work for a process is paid from (base/fair.h). A process costs nothing to make, so it is what
 * its owner cannot have more of by forking: the service, the user's slice, the container or the pod that it is in,
 * which only root makes. Cgroups below that may be its own making. Without any it is the user.
 */
#ifndef STACKTAP_RESOLVE_PAYER_H
#define STACKTAP_RESOLVE_PAYER_H

#include "process/image.h"

/* Never 0, which is nobody. */
uint32_t payer_of(const struct image_details *details);

#endif /* STACKTAP_RESOLVE_PAYER_H */
