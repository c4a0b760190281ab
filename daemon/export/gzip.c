// SPDX-License-Identifier: Apache-2.0
#include "export/gzip.h"

#include <limits.h>
#include <zlib.h>

#define GZIP_LEVEL 4		/* above it a few percent cost half the time again, and more */
#define GZIP_WINDOW (15 + 16)	/* 32 KiB, gzip header */
#define GZIP_MEMORY 8
#define GZIP_STEP ((size_t)65536)
#define GZIP_STATE ((size_t)268 << 10) /* what zlib documents for these parameters */

int gzip_compress(struct buffer *buffer, const uint8_t *data, size_t size)
{
	z_stream stream = { .next_in = (Bytef *)(uintptr_t)data, .avail_in = (uInt)size };
	size_t room;
	int ret, err = 0;

	if (size > UINT_MAX)
		return -EMSGSIZE;
	if (!pool_charge(buffer->pool, GZIP_STATE))
		return -ENOBUFS;
	if (deflateInit2(&stream, GZIP_LEVEL, Z_DEFLATED, GZIP_WINDOW, GZIP_MEMORY,
			 Z_DEFAULT_STRATEGY) != Z_OK) {
		pool_uncharge(buffer->pool, GZIP_STATE);
		return -ENOMEM;
	}
	do {
		stream.next_out = buffer_reserve(buffer, GZIP_STEP);
		if (!stream.next_out) {
			err = -ENOBUFS;
			break;
		}
		room = min_of(buffer->capacity - buffer->size, (size_t)UINT_MAX);
		stream.avail_out = (uInt)room;
		ret = deflate(&stream, Z_FINISH);
		buffer->size += room - stream.avail_out;
	} while (ret != Z_STREAM_END);
	deflateEnd(&stream);
	pool_uncharge(buffer->pool, GZIP_STATE);
	return err;
}
