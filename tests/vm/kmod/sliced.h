/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes whose registers are all known, each another number, and whose stack pointer points to
 * known bytes.
 */
#ifndef KMODTEST_SLICED_H
#define KMODTEST_SLICED_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "client.h"

enum sliced_where {
	SLICED_WIDE,		/* more bytes than any slice */
	SLICED_ODD,		/* the same, by a stack pointer that is not aligned */
	SLICED_THREAD,		/* the same, with a thread pointer above it */
	SLICED_WALLED,		/* the third page is not readable */
	SLICED_ABSENT,		/* the third page was never touched */
	SLICED_BASE,		/* some way below where the stack began */
	SLICED_NOWHERE,		/* nothing is readable */
	SLICED_KERNEL,		/* in the kernel's addresses */
	SLICED_WHERES
};

struct sliced {
	pid_t pid;
	uint64_t sp;
	uint64_t address;		/* where a slice has to begin */
	const uint8_t *content;		/* what it has to hold */
	uint32_t bytes;			/* how much of it, */
	unsigned int end;		/* and why no more: enum stacktap_end */
};

/*
 * A process that spins so; @slice_bytes and @most are what the session asks for. To be ended by
 * load_kill().
 */
int sliced_fork(enum sliced_where where, uint32_t slice_bytes, uint32_t most,
		struct sliced *ret_sliced);
const char *sliced_name(enum sliced_where where);

/*
 * Read all of the main thread's stack. A fork's pages need not be there before they are used, nor be
 * readable on arm64 without a fault, and a slice is taken without any.
 */
void sliced_touch_stack(void);

/* Does it spin there already? */
bool sliced_is_spinning(const struct sample_view *view);
/* What is wrong with the registers or the slice, or NULL. One that was cut for time is right, too. */
const char *sliced_fault(const struct sliced *sliced, const struct sample_view *view);

#endif /* KMODTEST_SLICED_H */
