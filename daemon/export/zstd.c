// SPDX-License-Identifier: Apache-2.0
#include "export/zstd.h"

#include <zstd.h>

#define ZSTD_LEVEL 3
#define ZSTD_WINDOW_LOG 19	/* a larger one takes more memory, and finds hardly more in a payload */
#define ZSTD_STATE ((size_t)1280 << 10) /* what libzstd allocates for these two */

/* Bytes written behind the buffer's end, 0 when @room is too small for them, or -errno. */
static ssize_t try_room(ZSTD_CCtx *context, struct buffer *buffer, const uint8_t *data, size_t size, size_t room)
{
	uint8_t *to = buffer_reserve(buffer, room);
	size_t written;

	if (!to)
		return -ENOBUFS;
	written = ZSTD_compress2(context, to, room, data, size);
	if (!ZSTD_isError(written))
		return (ssize_t)written;
	return room < ZSTD_compressBound(size) ? 0 : -ENOMEM;
}

int zstd_compress(struct buffer *buffer, const uint8_t *data, size_t size)
{
	ssize_t written = -ENOMEM;
	ZSTD_CCtx *context;

	if (!pool_charge(buffer->pool, ZSTD_STATE))
		return -ENOBUFS;
	context = ZSTD_createCCtx();
	if (context && !ZSTD_isError(ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, ZSTD_LEVEL)) &&
	    !ZSTD_isError(ZSTD_CCtx_setParameter(context, ZSTD_c_windowLog, ZSTD_WINDOW_LOG))) {
		/* as with gzip: profiles shrink to less than half, the bound is larger than them */
		written = try_room(context, buffer, data, size, size / 2 + 64);
		if (!written)
			written = try_room(context, buffer, data, size, ZSTD_compressBound(size));
	}
	ZSTD_freeCCtx(context);
	pool_uncharge(buffer->pool, ZSTD_STATE);
	if (written < 0)
		return (int)written;
	buffer->size += (size_t)written;
	return 0;
}

int zstd_decompress(struct buffer *buffer, const uint8_t *data, size_t size, size_t max_bytes)
{
	uint8_t *to = buffer_reserve(buffer, max_bytes);
	size_t written;

	if (!to)
		return -ENOBUFS;
	written = ZSTD_decompress(to, max_bytes, data, size);
	if (ZSTD_isError(written))
		return -EBADMSG;
	buffer->size += written;
	return 0;
}
