/* SPDX-License-Identifier: Apache-2.0 */
/* Locations of a window that are in memory without a file, each with the runtime that may know what is there. */
#ifndef STACKTAP_RESOLVE_CLAIMED_H
#define STACKTAP_RESOLVE_CLAIMED_H

#include "base/deadline.h"
#include "profile/window.h"
#include "resolve/jit.h"

struct claimed {
	struct location *location;
	struct jit *jit;
};

/*
 * How many there are; *ret_claimed is to be freed. What their runtimes wrote is read until @deadline, borrowed. Each
 * is found once, whatever comes of it; without memory none is.
 */
size_t claimed_find(struct jits *jits, const struct window *window, const struct deadline *deadline,
		    struct claimed **ret_claimed);

#endif /* STACKTAP_RESOLVE_CLAIMED_H */
