// SPDX-License-Identifier: Apache-2.0
#include "symbol/facts.h"

int facts_set_segments(struct object *object, struct object_segment *segments, size_t count)
{
	const struct object_segment *first, *last;
	int r = object_set_segments(object, segments, count);

	if (r < 0)
		return r;
	first = &object->segments[0];
	last = &object->segments[object->segment_count - 1];
	object->address_start = first->vaddr;
	object->address_limit = last->vaddr + last->size;
	object->file_offset = first->offset;
	return 0;
}

int facts_read(const struct elf *elf, struct object *object)
{
	struct object_segment *segments;
	size_t count;
	int r;

	elf_build_id(elf, object->build_id);
	r = elf_segments(elf, &segments, &count);
	if (r == 0)
		r = facts_set_segments(object, segments, count);
	return r;
}
