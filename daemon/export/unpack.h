/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unpacking of foreign protobuf messages with a bound on memory: a few bytes on the wire can stand
 * for many in memory. None of our messages is recursive, so the stack is bounded as well.
 */
#ifndef STACKTAP_EXPORT_UNPACK_H
#define STACKTAP_EXPORT_UNPACK_H

#include <protobuf-c/protobuf-c.h>

#include "base/macro.h"

struct unpacked {
	ProtobufCMessage *message;	/* NULL: malformed, or beyond the bound */
	ProtobufCAllocator allocator;
	size_t left;			/* bytes that may still be taken */
	bool is_exhausted;		/* the bound was reached */
};

/* @unpacked must stay where it is until unpack_free(). */
bool unpack(struct unpacked *unpacked, const ProtobufCMessageDescriptor *descriptor,
	    const uint8_t *data, size_t size, size_t max_bytes);
/*
 * The same of profiles. A string of their dictionary that has a NUL inside gets '\1' in its place: else it would
 * be taken for another that ends there.
 */
bool unpack_profiles(struct unpacked *unpacked, const uint8_t *data, size_t size, size_t max_bytes);
void unpack_free(struct unpacked *unpacked);

#endif /* STACKTAP_EXPORT_UNPACK_H */
