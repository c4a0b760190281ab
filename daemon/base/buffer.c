// SPDX-License-Identifier: Apache-2.0
#include "base/buffer.h"

#include <string.h>

#define WIRE_LEN 2u
#define KEEP_BYTES ((size_t)128 << 10)

uint8_t *buffer_reserve(struct buffer *buffer, size_t size)
{
	size_t capacity = buffer->capacity;
	uint8_t *data;

	/* none yet: NULL would say that there is no memory */
	if (buffer->data && size <= buffer->capacity - buffer->size)
		return buffer->data + buffer->size;
	if (size > SIZE_MAX / 4 - buffer->size)
		return NULL;
	capacity = max_of(capacity + capacity / 2, (size_t)1024);
	capacity = max_of(capacity, buffer->size + size);
	if (!pool_charge(buffer->pool, capacity - buffer->capacity))
		return NULL;
	data = realloc(buffer->data, capacity);
	if (!data) {
		pool_uncharge(buffer->pool, capacity - buffer->capacity);
		return NULL;
	}
	buffer->data = data;
	buffer->capacity = capacity;
	return data + buffer->size;
}

bool buffer_fit(struct buffer *buffer, size_t capacity)
{
	const size_t before = buffer->capacity;
	uint8_t *data;

	capacity = max_of(capacity, buffer->size);
	if (capacity == before || !capacity)
		return capacity == before;
	if (capacity > before && !pool_charge(buffer->pool, capacity - before))
		return false;
	data = realloc(buffer->data, capacity);
	if (data) {
		buffer->data = data;
		buffer->capacity = capacity;
	}
	/* what was charged for nothing, or is given back */
	pool_uncharge(buffer->pool, max_of(before, capacity) - buffer->capacity);
	return data;
}

int buffer_append(struct buffer *buffer, const void *data, size_t size)
{
	uint8_t *at;

	/* one that has no memory yet needs none for it */
	if (!size)
		return 0;
	at = buffer_reserve(buffer, size);
	if (!at)
		return -ENOBUFS;
	memcpy(at, data, size);
	buffer->size += size;
	return 0;
}

static size_t put_varint(uint8_t *at, uint64_t value)
{
	size_t size = 0;

	for (; value >= 0x80; value >>= 7)
		at[size++] = (uint8_t)value | 0x80;
	at[size++] = (uint8_t)value;
	return size;
}

int buffer_field(struct buffer *buffer, unsigned int number, size_t size)
{
	uint8_t header[BUFFER_FIELD_MAX];
	size_t length = put_varint(header, number << 3 | WIRE_LEN);

	length += put_varint(header + length, size);
	return buffer_append(buffer, header, length);
}

size_t buffer_field_size(size_t size)
{
	uint8_t length[BUFFER_FIELD_MAX];

	return 1 + put_varint(length, size) + size;
}

void buffer_clear(struct buffer *buffer)
{
	if (buffer->capacity > KEEP_BYTES)
		buffer_free(buffer);
	buffer->size = 0;
}

void buffer_free(struct buffer *buffer)
{
	free(buffer->data);
	pool_uncharge(buffer->pool, buffer->capacity);
	buffer_init(buffer, buffer->pool);
}
