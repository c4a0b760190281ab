// SPDX-License-Identifier: Apache-2.0
#include "symbol/vdso.h"

#include <inttypes.h>
#include <string.h>

#include "base/file.h"
#include "symbol/facts.h"
#include "symbol/htlhash.h"

enum { MAPS_BYTES = 4 * 1024 * 1024, VDSO_BYTES = 1024 * 1024 };

int vdso_image(const void **ret_image, size_t *ret_size)
{
	_cleanup_free_ char *maps = NULL;
	uint64_t start, end;
	char *line;
	int r;

	r = file_read(AT_FDCWD, "/proc/self/maps", MAPS_BYTES, &maps, NULL);
	if (r < 0)
		return r;
	line = strstr(maps, "[vdso]");
	if (!line)
		return -ENOENT;
	while (line > maps && line[-1] != '\n')
		line--;
	if (sscanf(line, "%" SCNx64 "-%" SCNx64, &start, &end) != 2 || end <= start ||
	    end - start > VDSO_BYTES)
		return -EINVAL;
	*ret_image = (const void *)(uintptr_t)start;
	*ret_size = end - start;
	return 0;
}

int vdso_read(vdso_ranges_fn *read_ranges, struct object **ret_object, struct symtab **ret_symtab)
{
	_cleanup_(object_unrefp) struct object *object = NULL;
	_cleanup_free_ struct function_range *ranges = NULL;
	size_t count = 0;
	const void *image;
	struct elf elf;
	size_t size;
	int r;

	r = vdso_image(&image, &size);
	if (r < 0)
		return r;
	object = object_new(OBJECT_VDSO, "[vdso]");
	if (!object)
		return -ENOMEM;
	r = elf_open_memory(&elf, image, size);
	if (r < 0)
		return r;
	r = facts_read(&elf, object);
	/* its exports have names also without them */
	if (r == 0 && read_ranges(&elf, &ranges, &count) < 0)
		count = 0;
	if (r == 0)
		r = symtab_read(&elf, ranges, count, NULL, ret_symtab);
	elf_close(&elf);
	if (r < 0)
		return r;
	object->size = size;
	htlhash_memory(image, size, object->htlhash);
	atomic_store_explicit(&object->state, OBJECT_READY, memory_order_release);
	*ret_object = steal_ptr(object);
	return 0;
}
