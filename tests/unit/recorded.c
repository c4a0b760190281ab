// SPDX-License-Identifier: Apache-2.0
#include "recorded.h"

#include <stdlib.h>

#include "export/store_file.h"

int recorded_append(void *file, struct payload *payload)
{
	int err = store_file_append(file, payload->data, payload->size);

	free(payload->data);
	return err;
}

void recorded_file(const char *path, size_t max_bytes)
{
	const struct encode_options options = { .max_bytes = max_bytes, .service_name = "shop" };
	struct aggregator *aggregator;
	struct store_file *file;
	struct window *window;

	assert_int_equal(store_file_create(path, &file), 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(aggregator_new(&aggregator), 0);
		window = synthetic_window(aggregator);
		assert_int_equal(encode_window(&options, window, recorded_append, file), 0);
		window_free(window);
		aggregator_free(aggregator);
	}
	assert_int_equal(store_file_close(file, NULL), 0);
}

void recorded_bytes(const char *path, const void *data, size_t size)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	assert_int_equal(fwrite(data, 1, size, file), size);
	assert_int_equal(fclose(file), 0);
}
