/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes that grow at the end, charged to a pool, with protobuf's two elementary writes.
 */
#ifndef STACKTAP_BASE_BUFFER_H
#define STACKTAP_BASE_BUFFER_H

#include "base/macro.h"
#include "base/pool.h"

struct buffer {
	uint8_t *data;
	size_t size, capacity;
	enum pool_id pool;
};

static inline void buffer_init(struct buffer *buffer, enum pool_id pool)
{
	*buffer = (struct buffer){ .pool = pool };
}

/* Where the next @size bytes go; NULL when the pool or memory is used up. */
uint8_t *buffer_reserve(struct buffer *buffer, size_t size) _must_check_;
int buffer_append(struct buffer *buffer, const void *data, size_t size) _must_check_;
/* A protobuf field of wire type LEN: its tag and length, for @size bytes to come. */
int buffer_field(struct buffer *buffer, unsigned int number, size_t size) _must_check_;
/* Bytes of a field: header and content; field numbers below 16. */
size_t buffer_field_size(size_t size);
/* Room for @capacity bytes in all, or for what is there if that is more: grows or gives back. False: as it was. */
bool buffer_fit(struct buffer *buffer, size_t capacity);
/* Forget the bytes, and give memory back that is more than the usual. */
void buffer_clear(struct buffer *buffer);
void buffer_free(struct buffer *buffer);

enum { BUFFER_FIELD_MAX = 15 };	/* bytes that buffer_field() appends at most */

#endif /* STACKTAP_BASE_BUFFER_H */
