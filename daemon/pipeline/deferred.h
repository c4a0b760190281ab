/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Deferred unwinding: samples that thread A keeps until thread B has unwound their stacks: what was walked before
 * the process' mapping list was in the module. Each has with it all that was true when it was taken:
 * its image's mappings, and what its source counted.
 *
 * Bounded in bytes by POOL_DEFERRED and in time by DEFERRED_WAIT_MS. What finds no room, or waits too long,
 * keeps the stack that the module walked by frame pointers.
 *
 * Thread A puts, takes back and releases. A sample in B's hands can expire, too: what both of them
 * read then does not change any more.
 */
#ifndef STACKTAP_PIPELINE_DEFERRED_H
#define STACKTAP_PIPELINE_DEFERRED_H

#include "profile/window.h"
#include "resolve/unwinder.h"

/* Much more than an idle thread B needs; names of a large window may take it seconds. */
enum { DEFERRED_WAIT_MS = 10000 };

struct deferred;
struct deferred_sample;

struct deferred_stats {
	uint64_t taken, refused;	/* kept deferred; not, for want of room */
	uint64_t unwound, complete;	/* unwound; of these, to the outermost frame */
	uint64_t expired, failed;
	uint64_t waiting;
};

int deferred_new(struct deferred **ret_aside);
/* Thread B is gone. What is left is lost: see deferred_wait(). */
void deferred_free(struct deferred *deferred);		/* NULL is fine */

/* Thread A */

/*
 * Keep a copy of a sample. @profile is what holds for its source now. -ENOBUFS: no room, -ENOMEM.
 */
int deferred_put(struct deferred *deferred, const struct sample_input *input,
	      const struct sample_sections *sections, const struct profile_config *profile,
	      uint64_t now);
/*
 * Take back the one that was put last, as thread B cannot be told of it: it counts as refused. False:
 * B has come to it all the same.
 */
bool deferred_take_back(struct deferred *deferred);
/*
 * One that is ready, or has waited too long; what is to be aggregated, marks and end included. NULL:
 * none (yet). It lives until deferred_release().
 */
struct deferred_sample *deferred_take(struct deferred *deferred, uint64_t now,
				       struct sample_input *ret_input);
void deferred_release(struct deferred *deferred, struct deferred_sample *sample);
/* Is one of a time up to @time still waiting? */
bool deferred_waits(const struct deferred *deferred, uint64_t time);
/* Wait until one is ready, or @timeout_ms. */
void deferred_wait(struct deferred *deferred, int timeout_ms);
void deferred_stats(const struct deferred *deferred, struct deferred_stats *ret_stats);

/* Thread B */

/* The next one to be unwound, or NULL: those of which B was told may have expired. */
struct deferred_sample *deferred_next(struct deferred *deferred);
/* Its files are those of the snapshot. */
struct image *deferred_image(const struct deferred_sample *sample);
const struct mapping_snapshot *deferred_mappings(const struct deferred_sample *sample);
/* Walk it, which gives it back. @unwinder NULL: it stays as it is. */
void deferred_unwind(struct deferred *deferred, struct deferred_sample *sample,
		     struct unwinder *unwinder);

#endif /* STACKTAP_PIPELINE_DEFERRED_H */
