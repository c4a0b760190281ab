/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The OpenTelemetry process context (OTEP 4719): a mapping in which an SDK publishes the Resource of its
 * process. Where it is, and its header, which says where the payload is; the opener copies that, and does not
 * look into it.
 */
#ifndef STACKTAP_PROCESS_CONTEXT_H
#define STACKTAP_PROCESS_CONTEXT_H

#include <stdio.h>

#include "base/macro.h"

enum { CONTEXT_MAX_BYTES = 64 << 10 };	/* of a payload */

struct context {
	uint64_t address;	/* of the header in its process, 0: unknown */
	uint64_t published;	/* CLOCK_BOOTTIME ns, another one for each content */
	uint32_t size;
	uint8_t *payload;	/* owned, NULL: it is the one that is known */
};

/*
 * The context of the process whose /proc/PID/mem and /proc/PID/maps these are. @known: what was read before,
 * with an address and a time, or zeros. -ENODATA: there is none. -EAGAIN: it is being changed. -EBADMSG: it is
 * none that can be read, by its version, its size or where it says that the payload is.
 */
int context_read(int memory, FILE *maps, const struct context *known, struct context *ret_context);

#endif /* STACKTAP_PROCESS_CONTEXT_H */
