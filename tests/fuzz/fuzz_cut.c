// SPDX-License-Identifier: Apache-2.0
/*
 * Any bytes as cuts of a journal whose checksums are right, each behind its length in 16 bits: what they are taken for
 * is encoded, and no memory of it stays.
 */
#include <stdlib.h>

#include "base/pool.h"
#include "export/cut_reader.h"
#include "export/encode.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int drop(void *ctx, struct payload *payload)
{
	*(uint64_t *)ctx += payload->samples;
	free(payload->data);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cut_reader *reader;
	const struct window *window;
	uint64_t samples = 0, want = 0;
	size_t length;
	int err = 0;

	if (cut_reader_new(&reader))
		abort();
	while (!err && size >= 2) {
		length = min_of((size_t)(data[0] | data[1] << 8), size - 2);
		err = cut_reader_add(reader, data + 2, length);
		data += 2 + length;
		size -= 2 + length;
	}
	window = cut_reader_window(reader);
	for (size_t i = 0; window && i < window->sample_count; i++)
		want += window->samples[i].count;
	/* what there is no memory for is not handed out, nor what is left out of a process that is downsampled */
	if (window && !encode_window(cut_reader_options(reader), window, drop, &samples) && samples > want)
		abort();
	cut_reader_free(reader);
	for (int id = 0; id < POOL_COUNT; id++)
		if (pool_get((enum pool_id)id)->used)
			abort();
	return 0;
}
