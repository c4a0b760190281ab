/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file that somebody else puts in place: has it changed since it was read? It has once two looks in a row see the
 * same: who writes it in place has come to an end by then.
 */
#ifndef STACKTAP_SERVICE_WATCH_H
#define STACKTAP_SERVICE_WATCH_H

#include <time.h>

#include "base/macro.h"

struct watch_state {
	uint64_t dev, inode, size;
	struct timespec mtime, ctime;
};

struct watch {
	struct watch_state known, seen;
};

/* Before it is read: this is what is known of it. */
void watch_note(struct watch *watch, const char *path);
/* Once for each change; a file that is not there has not changed. */
bool watch_look(struct watch *watch, const char *path);

#endif /* STACKTAP_SERVICE_WATCH_H */
