// SPDX-License-Identifier: Apache-2.0
#include "symbol/packed.h"

#include <lzma.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/macro.h"

enum {
	STEP_BYTES = 256 << 10,		/* between two looks at the deadline */
	BEGIN_BYTES = 6,
	WINDOW_GZIP = 15 + 16,		/* zlib's largest, of gzip */
};

/* What is between @input and @output. Several may follow each other in one file. */
struct decoder {
	int (*step)(struct decoder *decoder);	/* 1: one ends here; 0: go on; -errno */
	z_stream gzip;
	lzma_stream xz;
	ZSTD_DCtx *zstd;
	uint8_t *input, *output;
	size_t input_at, input_bytes, output_bytes;
};

static int step_gzip(struct decoder *decoder)
{
	z_stream *stream = &decoder->gzip;
	int result;

	stream->next_in = decoder->input + decoder->input_at;
	stream->avail_in = (uInt)(decoder->input_bytes - decoder->input_at);
	stream->next_out = decoder->output + decoder->output_bytes;
	stream->avail_out = (uInt)(STEP_BYTES - decoder->output_bytes);
	result = inflate(stream, Z_NO_FLUSH);
	decoder->input_at = decoder->input_bytes - stream->avail_in;
	decoder->output_bytes = STEP_BYTES - stream->avail_out;
	if (result == Z_STREAM_END)
		return inflateReset(stream) == Z_OK ? 1 : -EBADMSG;
	return result == Z_OK || result == Z_BUF_ERROR ? 0 : result == Z_MEM_ERROR ? -ENOMEM : -EBADMSG;
}

static int begin_xz(lzma_stream *stream)
{
	return lzma_stream_decoder(stream, 1ULL << PACKED_DECODER_LOG, 0) == LZMA_OK ? 0 : -ENOMEM;
}

static int step_xz(struct decoder *decoder)
{
	lzma_stream *stream = &decoder->xz;
	lzma_ret result;

	stream->next_in = decoder->input + decoder->input_at;
	stream->avail_in = decoder->input_bytes - decoder->input_at;
	stream->next_out = decoder->output + decoder->output_bytes;
	stream->avail_out = STEP_BYTES - decoder->output_bytes;
	result = lzma_code(stream, LZMA_RUN);
	decoder->input_at = decoder->input_bytes - stream->avail_in;
	decoder->output_bytes = STEP_BYTES - stream->avail_out;
	switch (result) {
	case LZMA_STREAM_END:
		return begin_xz(stream) ?: 1;
	case LZMA_OK:
	case LZMA_BUF_ERROR:
		return 0;
	case LZMA_MEM_ERROR:
		return -ENOMEM;
	case LZMA_MEMLIMIT_ERROR:
		return -EFBIG;
	default:
		return -EBADMSG;
	}
}

static int step_zstd(struct decoder *decoder)
{
	ZSTD_inBuffer in = { decoder->input, decoder->input_bytes, decoder->input_at };
	ZSTD_outBuffer out = { decoder->output, STEP_BYTES, decoder->output_bytes };
	const size_t result = ZSTD_decompressStream(decoder->zstd, &out, &in);

	decoder->input_at = in.pos;
	decoder->output_bytes = out.pos;
	if (!ZSTD_isError(result))
		return result == 0;
	switch (ZSTD_getErrorCode(result)) {
	case ZSTD_error_memory_allocation:
		return -ENOMEM;
	case ZSTD_error_frameParameter_windowTooLarge:
		return -EFBIG;
	default:
		return -EBADMSG;
	}
}

static int begin(struct decoder *decoder, const uint8_t bytes[static BEGIN_BYTES])
{
	if (!memcmp(bytes, "\x1f\x8b\x08", 3)) {
		decoder->step = step_gzip;
		return inflateInit2(&decoder->gzip, WINDOW_GZIP) == Z_OK ? 0 : -ENOMEM;
	}
	if (!memcmp(bytes, "\xfd" "7zXZ\0", 6)) {
		decoder->step = step_xz;
		return begin_xz(&decoder->xz);
	}
	if (memcmp(bytes, "\x28\xb5\x2f\xfd", 4))
		return -ENODATA;
	decoder->step = step_zstd;
	decoder->zstd = ZSTD_createDCtx();
	if (!decoder->zstd)
		return -ENOMEM;
	return ZSTD_isError(ZSTD_DCtx_setParameter(decoder->zstd, ZSTD_d_windowLogMax, PACKED_DECODER_LOG)) ? -EINVAL : 0;
}

static void end(struct decoder *decoder)
{
	if (decoder->step == step_gzip)
		inflateEnd(&decoder->gzip);
	lzma_end(&decoder->xz);
	ZSTD_freeDCtx(decoder->zstd);
}

static int unpack(struct decoder *decoder, int fd, uint64_t size, uint64_t deadline, int to, uint64_t *ret_size)
{
	uint64_t at = 0, written = 0;
	bool is_between = false;
	int r;

	for (;;) {
		if (deadline && clock_monotonic() > deadline)
			return -ETIME;
		if (decoder->input_at == decoder->input_bytes && at < size) {
			decoder->input_bytes = (size_t)min_of(size - at, (uint64_t)STEP_BYTES);
			decoder->input_at = 0;
			r = file_pread(fd, decoder->input, decoder->input_bytes, at);
			if (r < 0)
				return r == -ENODATA ? -EBADMSG : r;
			at += decoder->input_bytes;
		}
		/* none begins where the file ends */
		if (is_between && decoder->input_at == decoder->input_bytes)
			break;
		decoder->output_bytes = 0;
		r = decoder->step(decoder);
		if (r < 0)
			return r;
		if (decoder->output_bytes > PACKED_BYTES_MAX - written)
			return -EFBIG;
		written += decoder->output_bytes;
		if (!r && !decoder->output_bytes && decoder->input_at == decoder->input_bytes && at == size)
			return -EBADMSG;
		r = file_write(to, decoder->output, decoder->output_bytes) ?: r;
		if (r < 0)
			return r;
		is_between = r;
	}
	*ret_size = written;
	return 0;
}

int packed_unpack(int fd, uint64_t size, uint64_t deadline, int to, uint64_t *ret_size)
{
	struct decoder decoder = { .xz = LZMA_STREAM_INIT };
	_cleanup_free_ uint8_t *buffers = NULL;
	uint8_t bytes[BEGIN_BYTES];
	int r;

	if (size < sizeof(bytes))
		return -ENODATA;
	r = file_pread(fd, bytes, sizeof(bytes), 0);
	if (r < 0)
		return r;
	r = begin(&decoder, bytes);
	if (r == 0) {
		buffers = malloc(2 * STEP_BYTES);
		decoder.input = buffers;
		decoder.output = buffers ? buffers + STEP_BYTES : NULL;
		r = buffers ? unpack(&decoder, fd, size, deadline, to, ret_size) : -ENOMEM;
	}
	end(&decoder);
	return r;
}
