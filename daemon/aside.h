/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples that thread A keeps aside until thread B has unwound their stacks: what was walked before
 * the process' mapping list was in the module. Each has with it all that was true when it was taken:
 * its image's mappings, and what its source counted.
 *
 * Bounded in bytes by POOL_LATE and in time by ASIDE_WAIT_MS. What finds no room, or waits too long,
 * keeps the stack that the module walked by frame pointers.
 *
 * Thread A puts, takes back and releases. A sample in B's hands can expire, too: what both of them
 * read then does not change any more.
 */
#ifndef STACKTAP_ASIDE_H
#define STACKTAP_ASIDE_H

#include "profile/window.h"
#include "resolve/late.h"

/* Much more than an idle thread B needs; names of a large window may take it seconds. */
enum { ASIDE_WAIT_MS = 10000 };

struct aside;
struct aside_sample;

struct aside_stats {
	uint64_t taken, refused;	/* kept aside; not, for want of room */
	uint64_t unwound, complete;	/* unwound; of these, to the outermost frame */
	uint64_t expired, failed;
	uint64_t waiting;
};

int aside_new(struct aside **ret_aside);
/* Thread B is gone. What is left is lost: see aside_wait(). */
void aside_free(struct aside *aside);		/* NULL is fine */

/* Thread A */

/*
 * Keep a copy of a sample. @profile is what holds for its source now. -ENOBUFS: no room, -ENOMEM.
 */
int aside_put(struct aside *aside, const struct sample_input *input,
	      const struct sample_sections *sections, const struct profile_config *profile,
	      uint64_t now);
/*
 * Take back the one that was put last, as thread B cannot be told of it: it counts as refused. False:
 * B has come to it all the same.
 */
bool aside_take_back(struct aside *aside);
/*
 * One that is ready, or has waited too long; what is to be aggregated, marks and end included. NULL:
 * none (yet). It lives until aside_release().
 */
struct aside_sample *aside_take(struct aside *aside, uint64_t now, struct sample_input *ret_input);
void aside_release(struct aside *aside, struct aside_sample *sample);
/* Is one of a time up to @time still waiting? */
bool aside_waits(const struct aside *aside, uint64_t time);
/* Wait until one is ready, or @timeout_ms. */
void aside_wait(struct aside *aside, int timeout_ms);
void aside_stats(const struct aside *aside, struct aside_stats *ret_stats);

/* Thread B */

/* The next one to be unwound, or NULL: those of which B was told may have expired. */
struct aside_sample *aside_next(struct aside *aside);
/* Its files are those of the snapshot. */
struct image *aside_image(const struct aside_sample *sample);
const struct mapping_snapshot *aside_mappings(const struct aside_sample *sample);
/* Walk it, which gives it back. @late NULL: it stays as it is. */
void aside_unwind(struct aside *aside, struct aside_sample *sample, struct late *late);

#endif /* STACKTAP_ASIDE_H */
