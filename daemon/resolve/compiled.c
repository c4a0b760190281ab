// SPDX-License-Identifier: Apache-2.0
#include "resolve/compiled.h"

#include "symbol/vdso.h"

#include <stacktap/unwind_table.h>

enum { VDSO_MEMORY = 8 << 20 };	/* to compile what has a few pages */

/* The kernel's own bytes, in our memory as in everybody's. */
static int compile_vdso(struct compiled *ret_compiled)
{
	struct compile_stats stats;
	const void *image;
	struct elf elf;
	size_t size;
	void *data;
	int r;

	r = vdso_image(&image, &size) ?: elf_open_memory(&elf, image, size);
	if (r < 0)
		return r;
	r = compile_elf(&elf, VDSO_MEMORY, &data, &ret_compiled->bytes, &stats);
	elf_close(&elf);
	if (!r)
		ret_compiled->data = data;
	return r;
}

/* From the cache if it is there; into it if not. */
static int compile_file(const struct tables_ops *ops, struct object *object, uint32_t tgid,
			struct compiled *ret_compiled)
{
	struct compile_stats stats;
	struct unwind_table table;
	uint8_t key[KEY_BYTES];
	uint16_t machine;
	void *data;
	int fd, r;

	r = ops->open(ops->ctx, object, tgid, &fd);
	/* there was no time to ask for it; a file that takes too long to open is one that is left alone */
	if (r < 0)
		return r == -ETIME ? COMPILED_LATER : r;
	if (ops->cache) {
		r = parser_key(ops->parser, object, fd, key, &machine);
		if (r < 0)
			return r;
		r = cache_get(ops->cache, key, machine, &data, &ret_compiled->bytes);
		ret_compiled->data = r < 0 ? NULL : data;
		if (r != -ENOENT)
			return r;
	}
	r = parser_table(ops->parser, object, ops->cache ? -1 : fd,
			 &ret_compiled->data, &ret_compiled->bytes, &stats);
	if (r < 0)
		return r;
	ret_compiled->is_mapped = true;
	if (ops->cache &&
	    unwind_table_check(ret_compiled->data, ret_compiled->bytes, &table) == 0)
		cache_put(ops->cache, key, ret_compiled->data, ret_compiled->bytes);
	return 0;
}

int compiled_make(const struct tables_ops *ops, struct object *object, uint32_t tgid, struct compiled *ret_compiled)
{
	*ret_compiled = (struct compiled){ 0 };
	if (object->kind == OBJECT_VDSO)
		return compile_vdso(ret_compiled);
	return compile_file(ops, object, tgid, ret_compiled);
}

void compiled_free(struct compiled *compiled)
{
	if (compiled->is_mapped)
		parser_unmap(compiled->data, compiled->bytes);
	else
		free((void *)(uintptr_t)compiled->data);
	compiled->data = NULL;
}
