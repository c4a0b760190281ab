// SPDX-License-Identifier: Apache-2.0
#include "export/unpack.h"

#include <string.h>

#include "export/otlp.h"

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
	if (!block) {
		unpacked->is_exhausted = true;
		return NULL;
	}
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

/* Each is in a block of its own, as long as it was on the wire and its end. */
static void mend_string(char *text)
{
	const union block *block = (const union block *)(void *)text - 1;
	const size_t length = block->size - sizeof(*block) - 1;

	for (size_t at = strlen(text); at < length; at += strlen(text + at))
		text[at] = '\1';
}

bool unpack_profiles(struct unpacked *unpacked, const uint8_t *data, size_t size, size_t max_bytes)
{
	const OtlpDictionary *dictionary;

	if (!unpack(unpacked, OTLP_DATA_DESCRIPTOR, data, size, max_bytes))
		return false;
	dictionary = ((const OtlpProfilesData *)unpacked->message)->dictionary;
	for (size_t i = 0; dictionary && i < dictionary->n_string_table; i++)
		mend_string(dictionary->string_table[i]);
	return true;
}

void unpack_free(struct unpacked *unpacked)
{
	if (unpacked->message)
		protobuf_c_message_free_unpacked(unpacked->message, &unpacked->allocator);
	unpacked->message = NULL;
}
