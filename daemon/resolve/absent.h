/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pages of user stacks that a walk found absent: swapped out, or not read from their file yet. The
 * module cannot wait for them; here they are brought in for the walks to come by reading a byte of
 * each through /proc/PID/mem.
 *
 * Memory can be such that reading it takes for ever (a file of a FUSE server that is
 * the process itself). So an opener reads, which can be left behind; one of its own, so that what hangs there
 * keeps no file from being opened.
 */
#ifndef STACKTAP_RESOLVE_ABSENT_H
#define STACKTAP_RESOLVE_ABSENT_H

#include <stdint.h>

struct absent;

struct absent_stats {
	uint64_t wanted;	/* samples whose stack ended at such a page */
	uint64_t pages;		/* brought in */
	uint64_t failed;	/* the process was gone, or has no such page */
	uint64_t refused;	/* too many at a time, or asked for just before */
};

int absent_new(struct absent **ret_absent);
/* Waits for the opener's answer at most. */
void absent_free(struct absent *absent);

/* Have the page at @address of process @tgid read, and some above it. Never waits, from any thread. */
void absent_want(struct absent *absent, uint32_t tgid, uint64_t address);

void absent_stats(struct absent *absent, struct absent_stats *ret_stats);

#endif /* STACKTAP_RESOLVE_ABSENT_H */
