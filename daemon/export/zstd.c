// SPDX-License-Identifier: Apache-2.0
#include "export/zstd.h"

#include <zstd.h>

#define ZSTD_WINDOW_LOG 19	/* a larger one takes more memory, and finds hardly more in a payload */
#define ZSTD_STATE ((size_t)1280 << 10) /* what libzstd allocates at most for either level */
/*
 * As with gzip the small payloads of most hosts are worth more time: 3 makes them larger than gzip does, 8 takes three times
 * as long for 4 to 9 % less. Its tables would be 3 MiB; those of 2^16 entries lose nothing in so few bytes.
 */
#define ZSTD_LEVEL 3
#define ZSTD_LEVEL_SMALL 8
#define ZSTD_SMALL ((size_t)256 << 10)
#define ZSTD_SMALL_LOG 16

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

static bool set_up(ZSTD_CCtx *context, size_t size)
{
	const bool is_small = size <= ZSTD_SMALL;
	const struct {
		ZSTD_cParameter parameter;
		int value;
	} settings[] = {
		{ ZSTD_c_compressionLevel, is_small ? ZSTD_LEVEL_SMALL : ZSTD_LEVEL },
		{ ZSTD_c_windowLog, ZSTD_WINDOW_LOG },
		/* 0: the level's own */
		{ ZSTD_c_hashLog, is_small ? ZSTD_SMALL_LOG : 0 },
		{ ZSTD_c_chainLog, is_small ? ZSTD_SMALL_LOG : 0 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(settings); i++)
		if (ZSTD_isError(ZSTD_CCtx_setParameter(context, settings[i].parameter, settings[i].value)))
			return false;
	return true;
}

int zstd_compress(struct buffer *buffer, const uint8_t *data, size_t size)
{
	ssize_t written = -ENOMEM;
	ZSTD_CCtx *context;

	if (!pool_charge(buffer->pool, ZSTD_STATE))
		return -ENOBUFS;
	context = ZSTD_createCCtx();
	if (context && set_up(context, size)) {
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
