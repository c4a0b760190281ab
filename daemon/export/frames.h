/* SPDX-License-Identifier: Apache-2.0 */
/* What a payload's dictionary has of the profile model: Stacks, their Locations, Functions and Mappings. */
#ifndef STACKTAP_EXPORT_FRAMES_H
#define STACKTAP_EXPORT_FRAMES_H

#include "export/dictionary.h"
#include "profile/window.h"

/* The index of a Stack. *ret_naming: as it was encoded, which a name that comes later does not change */
int frames_stack(struct dictionary *dictionary, struct stack *stack, enum naming *ret_naming);
/*
 * Add the Locations of all these stacks, some of which may be the same, by Mapping and address: those next to each other
 * are alike then, which compresses. *ret_bytes: what the Stacks, which are not added, take at most.
 */
int frames_order(struct dictionary *dictionary, struct stack *const *stacks, size_t count,
		 size_t *ret_bytes);
/*
 * Add all these Stacks, from the outermost frame on by the order of their Locations: those that share their callers are
 * next to each other.
 */
int frames_order_stacks(struct dictionary *dictionary, struct stack *const *stacks, size_t count);
#endif /* STACKTAP_EXPORT_FRAMES_H */
