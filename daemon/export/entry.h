/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The entries of which a dictionary has most, and Resources, as bytes: what protobuf-c makes of the same messages, without its walk
 * over descriptors. No number in them is negative.
 */
#ifndef STACKTAP_EXPORT_ENTRY_H
#define STACKTAP_EXPORT_ENTRY_H

#include "base/macro.h"
#include "export/otlp.h"

enum {
	ENTRY_INDEX_BYTES = 5,		/* of an index, at most */
	ENTRY_LINES = 64,		/* inlined frames in one Location, at most */
	ENTRY_ATTRIBUTES = 8,
	ENTRY_LOCATION_MAX = 32 + ENTRY_LINES * 32 + ENTRY_ATTRIBUTES * ENTRY_INDEX_BYTES,
	ENTRY_FUNCTION_MAX = 32,
	ENTRY_TIME_BYTES = 8,
};

/* Room for an attribute whose value has a text of @length bytes, or none. */
static inline size_t entry_attribute_room(size_t length)
{
	return length + 48;
}


/* Room for a Stack of @count Locations. */
static inline size_t entry_stack_room(size_t count)
{
	return (count + 2) * ENTRY_INDEX_BYTES;
}

/* Write it to @at, which has room; the size. */
size_t entry_stack(const OtlpStack *stack, uint8_t *at);
size_t entry_location(const OtlpLocation *location, uint8_t at[static ENTRY_LOCATION_MAX]);
size_t entry_function(const OtlpFunction *function, uint8_t at[static ENTRY_FUNCTION_MAX]);
size_t entry_sample(const OtlpSample *sample, uint8_t *at);
size_t entry_sample_size(const OtlpSample *sample);	/* of what that writes, and all the room that it needs */
/* Its value is a text, a number that may be negative, or true or false. */
size_t entry_attribute(const OtlpAttribute *attribute, uint8_t *at);
/* Values as an attribute's. */
size_t entry_resource(const OtlpResource *resource, uint8_t *at);
size_t entry_resource_size(const OtlpResource *resource);	/* as entry_sample_size() */

#endif /* STACKTAP_EXPORT_ENTRY_H */
