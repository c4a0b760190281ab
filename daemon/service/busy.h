/* SPDX-License-Identifier: Apache-2.0 */
/* Tells the log when one program keeps the thread that finds names, and when that goes on. */
#ifndef STACKTAP_SERVICE_BUSY_H
#define STACKTAP_SERVICE_BUSY_H

#include "base/macro.h"

enum { BUSY_SECONDS = 30 };	/* with tables to compile, more than ever seen */

struct busy {
	bool has_said;		/* once each time is enough */
};

/* @busy_ns: since when it is with the same program, 0 when it waits for one. */
void busy_tell(struct busy *busy, uint64_t busy_ns);

#endif /* STACKTAP_SERVICE_BUSY_H */
