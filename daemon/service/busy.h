/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tells the log when one program keeps the thread that finds names, and when that goes on; and whether all threads
 * make progress, which is what the service manager's watchdog is told.
 */
#ifndef STACKTAP_SERVICE_BUSY_H
#define STACKTAP_SERVICE_BUSY_H

#include "base/macro.h"

enum { BUSY_SECONDS = 30 };	/* with tables to compile, more than ever seen */

struct busy {
	bool has_said;		/* once each time is enough */
	bool has_told_hung;
};

/* @busy_ns: since when it is with the same program, 0 when it waits for one. */
void busy_tell(struct busy *busy, uint64_t busy_ns);

/* False, and told once: a thread does not come to an end with what it is at. */
bool busy_makes_progress(struct busy *busy, uint64_t now);

#endif /* STACKTAP_SERVICE_BUSY_H */
