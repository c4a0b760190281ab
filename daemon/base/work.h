/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which thread is at work since when, so that who serves a watchdog can tell whether all of them make progress. A thread
 * enters, says when it begins with something and when that is done, and leaves. What it has to wait for someone else it
 * says before: a receiver may be given more time than a piece of work.
 */
#ifndef STACKTAP_BASE_WORK_H
#define STACKTAP_BASE_WORK_H

#include <stdatomic.h>

#include "base/macro.h"

enum { WORK_SECONDS = 300 };	/* no piece of work takes that long */

struct work {
	const char *name;		/* a constant */
	_Atomic uint64_t since;		/* CLOCK_MONOTONIC ns; 0: it waits for work */
	_Atomic uint64_t due;		/* when it has hung */
	struct work *next;
};

/* @work is there until it has left. A thread that has not entered may call the others all the same. */
void work_enter(struct work *work, const char *name);
void work_leave(void);

void work_begin(void);
void work_end(void);
/* What it is at waits so long for someone else. */
void work_wait(uint64_t ns);

/* For how long, of any thread's; 0: it waits for work. */
uint64_t work_taken(const struct work *work, uint64_t now);
/* The name of a thread that has hung, or NULL, and for how long it has been at it; @ret_ns may be NULL. */
const char *work_hung(uint64_t now, uint64_t *ret_ns);

#endif /* STACKTAP_BASE_WORK_H */
