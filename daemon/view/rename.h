/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A message once more, with the names that its Locations have got since. Strings and Functions are added
 * behind those that are there, Locations get Lines; a Function that nothing refers to any more makes room
 * for a new one, as a dictionary has no entry in vain. All other bytes stay as they are.
 *
 * A Location that has a name keeps it, and gains its file, its line and what was inlined; one that knows
 * its line already stays as it is.
 */
#ifndef STACKTAP_VIEW_RENAME_H
#define STACKTAP_VIEW_RENAME_H

#include "view/census.h"

/* Frames are those of all samples' stacks. */
struct rename_counts {
	uint64_t frames, named_before, named_after;
	uint64_t left;		/* messages that stay as they are: with names they would be too long */
};

/* Appends the message to @output. Errors: as census_add(). */
int rename_message(const struct census *census, const uint8_t *data, size_t size,
		   struct buffer *output, struct rename_counts *counts);

#endif /* STACKTAP_VIEW_RENAME_H */
