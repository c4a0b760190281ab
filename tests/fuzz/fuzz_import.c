// SPDX-License-Identifier: Apache-2.0
/*
 * Any bytes as what `convert' takes from others: pprof, packed or not, and what perf script prints. No crash, no hang,
 * all memory back, and what comes out of it is a message that our own reader takes.
 */
#include <stdlib.h>

#include "base/pool.h"
#include "view/import.h"
#include "view/model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int read_script(struct import *import, const uint8_t *data, size_t size)
{
	FILE *file = size ? fmemopen((void *)(uintptr_t)data, size, "r") : NULL;
	int ret;

	if (!file)
		return -ENODATA;
	ret = import_perf_script(import, file);
	fclose(file);
	return ret;
}

static void look_at(const struct import *import)
{
	const struct model_options options = { 0 };
	struct model *model;

	if (model_new(&options, &model))
		abort();
	if (reader_add(model->reader, import->out.data, import->out.size))
		abort();
	model_free(model);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct import import;
	int ret;

	if (!size)
		return 0;
	pool_get(POOL_ENCODE)->limit = (size_t)256 << 20;
	if (import_init(&import))
		abort();
	ret = data[0] & 1 ? read_script(&import, data + 1, size - 1) :
			    import_pprof(&import, data + 1, size - 1);
	if (!ret && !import_finish(&import))
		look_at(&import);
	import_done(&import);
	if (pool_get(POOL_ENCODE)->used || pool_get(POOL_REPORT)->used)
		abort();
	return 0;
}
