// SPDX-License-Identifier: Apache-2.0
#include "export/unpack.h"

/* In front of each block, to know its size when it is freed. */
union block {
	size_t size;
	_Alignas(16) char align[16];
};

static void *block_alloc(void *ctx, size_t size)
{
	struct unpacked *unpacked = ctx;
	union block *block;

	if (size > unpacked->left || unpacked->left - size < sizeof(*block)) {
		unpacked->is_exhausted = true;
		return NULL;
	}
	block = malloc(sizeof(*block) + size);
	if (!block)
		return NULL;
	block->size = sizeof(*block) + size;
	unpacked->left -= block->size;
	return block + 1;
}

static void block_free(void *ctx, void *data)
{
	struct unpacked *unpacked = ctx;
	union block *block = data;

	if (!data)
		return;
	block--;
	unpacked->left += block->size;
	free(block);
}

bool unpack(struct unpacked *unpacked, const ProtobufCMessageDescriptor *descriptor,
	    const uint8_t *data, size_t size, size_t max_bytes)
{
	*unpacked = (struct unpacked){
		.allocator = { .alloc = block_alloc, .free = block_free,
			       .allocator_data = unpacked },
		.left = max_bytes,
	};
	unpacked->message = protobuf_c_message_unpack(descriptor, &unpacked->allocator, size, data);
	return unpacked->message;
}

void unpack_free(struct unpacked *unpacked)
{
	if (unpacked->message)
		protobuf_c_message_free_unpacked(unpacked->message, &unpacked->allocator);
	unpacked->message = NULL;
}
