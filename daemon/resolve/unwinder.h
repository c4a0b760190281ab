/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walking a user stack after the fact: from the registers and the slice of the stack that a sample
 * carries, with the mappings that its image had then. The walk is the module's own
 * (stacktap/unwind.h), the tables are those that the module is given; those that the stack leads
 * through are made when it gets there.
 *
 * A stack that goes on beyond the slice ends as the slice did, and is not called complete.
 */
#ifndef STACKTAP_RESOLVE_UNWINDER_H
#define STACKTAP_RESOLVE_UNWINDER_H

#include "capture/capture.h"
#include "process/image.h"
#include "resolve/tables.h"

/* by default; most stacks are smaller than the first, and few larger than both */
enum {
	UNWINDER_SLICE_BYTES = 16384,
	UNWINDER_SLICE_MAX_BYTES = 65536,
};

struct unwinder;

struct unwinder_stack {
	const __u64 *ips;		/* leaf first; until the next walk */
	uint32_t count;
	uint16_t exact[STACKTAP_MAX_EXACT_PCS];
	uint32_t exact_count;
	uint8_t end;			/* enum stacktap_end */
};

/* @tables is borrowed. @max_frames: 1 to STACKTAP_MAX_USER_FRAMES. */
int unwinder_new(struct tables *tables, uint32_t max_frames, struct unwinder **ret_unwinder);
void unwinder_free(struct unwinder *unwinder);	/* NULL is fine */

/*
 * Walk the stack of a sample taken at @time in process @tgid. -EINVAL: there are no registers of a
 * machine that is unwound, or no slice; -ENOENT: no mapping is known where it ran; -ENOMEM.
 */
int unwinder_walk(struct unwinder *unwinder, const struct sample_sections *sections,
		  const struct mapping_snapshot *mappings, uint64_t time, uint32_t tgid,
		  struct unwinder_stack *ret_stack);

#endif /* STACKTAP_RESOLVE_UNWINDER_H */
