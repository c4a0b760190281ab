// SPDX-License-Identifier: Apache-2.0
#include "symbol/minidebug.h"

#include <lzma.h>

#include "base/clock.h"

enum {
	DECODER_BYTES = 64 << 20,	/* xz -9 needs that for its dictionary */
	STEP_BYTES = 1 << 20,		/* between two looks at the deadline */
};

static int unpack(const struct elf *elf, lzma_stream *stream, void **ret_data, size_t *ret_size)
{
	_cleanup_free_ uint8_t *data = NULL;
	lzma_ret result = LZMA_OK;
	size_t size = 0;

	while (result != LZMA_STREAM_END) {
		uint8_t *grown = NULL;

		if (size == MINIDEBUG_BYTES_MAX)
			return -EFBIG;
		if (elf->deadline && clock_monotonic() > elf->deadline)
			return -ETIME;
		grown = realloc(data, size + STEP_BYTES);
		if (!grown)
			return -ENOMEM;
		data = grown;
		stream->next_out = data + size;
		stream->avail_out = STEP_BYTES;
		result = lzma_code(stream, LZMA_FINISH);
		if (result != LZMA_OK && result != LZMA_STREAM_END)
			return result == LZMA_MEM_ERROR ? -ENOMEM :
			       result == LZMA_MEMLIMIT_ERROR ? -EFBIG : -EBADMSG;
		/* no more of it comes, and it is not at its end */
		if (result == LZMA_OK && stream->avail_out)
			return -EBADMSG;
		size += STEP_BYTES - stream->avail_out;
	}
	*ret_data = steal_ptr(data);
	*ret_size = size;
	return 0;
}

int minidebug_read(const struct elf *elf, void **ret_data, size_t *ret_size)
{
	const Elf64_Shdr *section = elf_find_section(elf, SHT_PROGBITS, ".gnu_debugdata");
	_cleanup_free_ uint8_t *packed = NULL;
	lzma_stream stream = LZMA_STREAM_INIT;
	int r;

	if (!section || !section->sh_size)
		return -ENODATA;
	if (section->sh_size > MINIDEBUG_PACKED_MAX)
		return -EFBIG;
	packed = malloc(section->sh_size);
	if (!packed)
		return -ENOMEM;
	r = elf_read(elf, section->sh_offset, packed, section->sh_size);
	if (r < 0)
		return r;
	if (lzma_stream_decoder(&stream, DECODER_BYTES, 0) != LZMA_OK)
		return -ENOMEM;
	stream.next_in = packed;
	stream.avail_in = section->sh_size;
	r = unpack(elf, &stream, ret_data, ret_size);
	lzma_end(&stream);
	return r;
}
