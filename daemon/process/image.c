// SPDX-License-Identifier: Apache-2.0
#include "process/image.h"

#include <string.h>

#include "process/files.h"
#include "process/namespace.h"

enum {
	IMAGE_MIN_MAPPINGS = 8,
	IMAGE_MAX_MAPPINGS = 16384,	/* a process cannot have the pool to itself */
};

struct image *image_new(struct hash_table *files, uint32_t tgid, uint64_t since, const char *comm)
{
	struct image *image;

	if (!pool_charge(POOL_PROCESSES, sizeof(*image)))
		return NULL;
	image = calloc(1, sizeof(*image));
	if (!image) {
		pool_uncharge(POOL_PROCESSES, sizeof(*image));
		return NULL;
	}
	atomic_init(&image->refs, 1);
	atomic_init(&image->details, NULL);
	atomic_init(&image->context, NULL);
	atomic_init(&image->resource, NULL);
	image->files = files;
	image->tgid = tgid;
	image->since = since;
	if (comm)
		snprintf(image->comm, sizeof(image->comm), "%.15s", comm);
	return image;
}

struct image *image_ref(struct image *image)
{
	atomic_fetch_add_explicit(&image->refs, 1, memory_order_relaxed);
	return image;
}

#define DETAILS_TEXTS(details)                                                                     \
	{                                                                                          \
		(details)->executable_path, (details)->executable_name, (details)->command_line,   \
			(details)->container_id, (details)->container_name, (details)->pod_uid,    \
			(details)->pod_qos, (details)->unit, (details)->cgroup,                    \
			(details)->service_name, (details)->attributes                             \
	}

void image_details_free(struct image_details *details)
{
	if (!details)
		return;

	char *const texts[] = DETAILS_TEXTS(details);

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		free(texts[i]);
	free(details);
}

static size_t details_bytes(const struct image_details *details)
{
	const char *const texts[] = DETAILS_TEXTS(details);
	size_t bytes = sizeof(*details);

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		bytes += texts[i] ? strlen(texts[i]) + 1 : 0;
	return bytes;
}

void image_set_details(struct image *image, struct image_details *details)
{
	/* it then goes by the name that the kernel has for it */
	if (!pool_charge(POOL_PROCESSES, details_bytes(details))) {
		image_details_free(details);
		return;
	}
	atomic_store_explicit(&image->details, details, memory_order_release);
}

static size_t context_bytes(const struct image_context *context)
{
	return sizeof(*context) + (context->service_name ? strlen(context->service_name) + 1 : 0) +
	       (context->attributes ? strlen(context->attributes) + 1 : 0);
}

static void context_free(struct image_context *context)
{
	free(context->service_name);
	free(context->attributes);
	free(context);
}

int image_set_context(struct image *image, struct image_context *context)
{
	struct image_context *older = atomic_load_explicit(&image->context, memory_order_relaxed);
	size_t count = 0;

	for (const struct image_context *known = older; known; known = known->older)
		count++;
	if (count >= IMAGE_CONTEXTS_MAX || !pool_charge(POOL_PROCESSES, context_bytes(context))) {
		context_free(context);
		return -ENOBUFS;
	}
	context->older = older;
	atomic_store_explicit(&image->context, context, memory_order_release);
	return 0;
}

static void drop_contexts(struct image *image)
{
	struct image_context *context = atomic_load_explicit(&image->context, memory_order_relaxed), *older;

	for (; context; context = older) {
		older = context->older;
		pool_uncharge(POOL_PROCESSES, context_bytes(context));
		context_free(context);
	}
}

static size_t resource_bytes(const struct image_resource *resource)
{
	return sizeof(*resource) + resource->size;
}

void image_keep_resource(struct image *image, struct image_resource *resource)
{
	struct image_resource *older = atomic_load_explicit(&image->resource, memory_order_acquire);
	const struct pool *pool = pool_get(POOL_PROCESSES);
	size_t count = 0;

	for (const struct image_resource *known = older; known; known = known->older)
		count++;
	if (count >= IMAGE_RESOURCES_MAX || pool->used + resource_bytes(resource) > pool->limit / 2 ||
	    !pool_charge(POOL_PROCESSES, resource_bytes(resource))) {
		free(resource);
		return;
	}
	do {
		resource->older = older;
	} while (!atomic_compare_exchange_weak_explicit(&image->resource, &older, resource, memory_order_acq_rel,
							memory_order_acquire));
}

static void drop_resources(struct image *image)
{
	struct image_resource *resource = atomic_load_explicit(&image->resource, memory_order_relaxed), *older;

	for (; resource; resource = older) {
		older = resource->older;
		pool_uncharge(POOL_PROCESSES, resource_bytes(resource));
		free(resource);
	}
}

void image_unref(struct image *image)
{
	struct image_details *details;

	if (!image || atomic_fetch_sub_explicit(&image->refs, 1, memory_order_acq_rel) != 1)
		return;
	/* the process table has ended it, so no use of files is left */
	image_drop_mappings(image);
	details = atomic_load_explicit(&image->details, memory_order_relaxed);
	if (details)
		pool_uncharge(POOL_PROCESSES, details_bytes(details));
	image_details_free(details);
	drop_contexts(image);
	drop_resources(image);
	mount_namespace_unref(image->mount_namespace);
	pool_uncharge(POOL_PROCESSES, sizeof(*image));
	free(image);
}

void image_end(struct image *image, uint64_t time)
{
	if (!image->ended)
		image->ended = time;
	if (!image->files)
		return;
	for (size_t i = 0; i < image->mapping_count; i++)
		files_unuse(image->files, image->mappings[i].file);
	image->files = NULL;
}

static void image_put_file(struct image *image, struct mapped_file *file)
{
	if (image->files)
		files_unuse(image->files, file);
	mapped_file_unref(file);
}

static struct mapped_file *image_take_file(struct image *image, struct mapped_file *file)
{
	if (image->files)
		files_use(image->files, file);
	return mapped_file_ref(file);
}

void image_drop_mappings(struct image *image)
{
	for (size_t i = 0; i < image->mapping_count; i++)
		image_put_file(image, image->mappings[i].file);
	pool_uncharge(POOL_PROCESSES, image->mapping_capacity * sizeof(*image->mappings));
	free(image->mappings);
	image->mappings = NULL;
	image->mapping_count = 0;
	image->mapping_capacity = 0;
	image->generation++;
	mapping_snapshot_unref(image->snapshot);
	image->snapshot = NULL;
}

static int image_reserve(struct image *image, size_t count)
{
	size_t capacity = max_of(image->mapping_capacity, (size_t)IMAGE_MIN_MAPPINGS), more;
	struct mapping *mappings;

	if (count <= image->mapping_capacity)
		return 0;
	if (count > IMAGE_MAX_MAPPINGS)
		return -E2BIG;
	while (capacity < count)
		capacity *= 2;
	more = (capacity - image->mapping_capacity) * sizeof(*mappings);
	if (!pool_charge(POOL_PROCESSES, more))
		return -ENOBUFS;
	mappings = realloc(image->mappings, capacity * sizeof(*mappings));
	if (!mappings) {
		pool_uncharge(POOL_PROCESSES, more);
		return -ENOMEM;
	}
	image->mappings = mappings;
	image->mapping_capacity = capacity;
	return 0;
}

/* Index of the first mapping that ends behind @address. */
static size_t lower_bound(const struct mapping *mappings, size_t count, uint64_t address)
{
	size_t low = 0, high = count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (mappings[middle].end > address)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

static void image_cut_start(struct mapping *mapping, uint64_t start)
{
	mapping->file_offset += start - mapping->start;
	mapping->start = start;
}

int image_map(struct image *image, uint64_t start, uint64_t end, uint64_t file_offset,
	      uint64_t since, struct mapped_file *file, bool *ret_replaced)
{
	size_t first, last;
	int r;

	if (start >= end)
		return -EINVAL;
	/* a split and the new one: two more at most */
	r = image_reserve(image, image->mapping_count + 2);
	if (r < 0)
		return r;
	image_take_file(image, file);

	first = lower_bound(image->mappings, image->mapping_count, start);
	last = first;
	while (last < image->mapping_count && image->mappings[last].start < end)
		last++;
	*ret_replaced = last > first;

	if (last == first + 1 && image->mappings[first].start < start &&
	    image->mappings[first].end > end) {
		struct mapping *around = &image->mappings[first];

		memmove(around + 1, around, (image->mapping_count - first) * sizeof(*around));
		image->mapping_count++;
		image_take_file(image, around->file);
		around->end = start;
		image_cut_start(around + 1, end);
		last = ++first;
	} else {
		if (last > first && image->mappings[first].start < start)
			image->mappings[first++].end = start;
		if (last > first && image->mappings[last - 1].end > end)
			image_cut_start(&image->mappings[--last], end);
	}
	for (size_t i = first; i < last; i++)
		image_put_file(image, image->mappings[i].file);
	memmove(&image->mappings[first + 1], &image->mappings[last],
		(image->mapping_count - last) * sizeof(*image->mappings));
	image->mapping_count += 1 - (last - first);
	image->mappings[first] = (struct mapping){
		.start = start,
		.end = end,
		.file_offset = file_offset,
		.since = since,
		.file = file,
	};
	image->generation++;
	return 0;
}

const struct mapping *mapping_find(const struct mapping *mappings, size_t count, uint64_t address)
{
	size_t i = lower_bound(mappings, count, address);

	if (i == count || mappings[i].start > address)
		return NULL;
	return &mappings[i];
}

const struct mapping *image_find_mapping(const struct image *image, uint64_t address)
{
	return mapping_find(image->mappings, image->mapping_count, address);
}

/*
 * By the executable segment that holds most of the mapping: its ends are rounded to pages, so a small
 * part of a neighbour may be in it as well.
 */
bool mapping_bias(const struct mapping *mapping, const struct object *object, uint64_t *ret_bias)
{
	uint64_t first = mapping->file_offset, last = first + (mapping->end - mapping->start);
	uint64_t most = 0;

	for (size_t i = 0; i < object->segment_count; i++) {
		const struct object_segment *segment = &object->segments[i];
		uint64_t start = max_of(first, segment->offset);
		uint64_t end = min_of(last, segment->offset + segment->size);

		if (end <= start || end - start <= most)
			continue;
		most = end - start;
		*ret_bias = mapping->start - first + segment->offset - segment->vaddr;
	}
	return most > 0;
}

static size_t snapshot_bytes(size_t count)
{
	return sizeof(struct mapping_snapshot) + count * sizeof(struct mapping);
}

void mapping_snapshot_unref(struct mapping_snapshot *snapshot)
{
	if (!snapshot ||
	    atomic_fetch_sub_explicit(&snapshot->refs, 1, memory_order_acq_rel) != 1)
		return;
	for (size_t i = 0; i < snapshot->count; i++)
		mapped_file_unref(snapshot->mappings[i].file);
	pool_uncharge(POOL_PROCESSES, snapshot_bytes(snapshot->count));
	free(snapshot);
}

static struct mapping_snapshot *snapshot_new(const struct image *image)
{
	size_t count = image->mapping_count;
	struct mapping_snapshot *snapshot;

	if (!pool_charge(POOL_PROCESSES, snapshot_bytes(count)))
		return NULL;
	snapshot = malloc(snapshot_bytes(count));
	if (!snapshot) {
		pool_uncharge(POOL_PROCESSES, snapshot_bytes(count));
		return NULL;
	}
	atomic_init(&snapshot->refs, 1);
	snapshot->generation = image->generation;
	snapshot->count = count;
	for (size_t i = 0; i < count; i++) {
		snapshot->mappings[i] = image->mappings[i];
		mapped_file_ref(snapshot->mappings[i].file);
	}
	return snapshot;
}

struct mapping_snapshot *image_snapshot(struct image *image)
{
	if (!image->snapshot || image->snapshot->generation != image->generation) {
		mapping_snapshot_unref(image->snapshot);
		image->snapshot = snapshot_new(image);
	}
	if (image->snapshot)
		atomic_fetch_add_explicit(&image->snapshot->refs, 1, memory_order_relaxed);
	return image->snapshot;
}

void image_trim_snapshot(struct image *image)
{
	/* only this thread takes references, so that the last one stays the last */
	if (!image->snapshot ||
	    atomic_load_explicit(&image->snapshot->refs, memory_order_relaxed) > 1)
		return;
	mapping_snapshot_unref(image->snapshot);
	image->snapshot = NULL;
}
