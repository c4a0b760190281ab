// SPDX-License-Identifier: Apache-2.0
#include "process/object.h"

#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/pool.h"

static size_t object_bytes(const struct object *object)
{
	return sizeof(*object) + strlen(object->path) + 1 +
	       (object->go_build_id ? strlen(object->go_build_id) + 1 : 0) +
	       object->segment_count * sizeof(*object->segments);
}

struct object *object_new(enum object_kind kind, const char *path)
{
	struct object *object = calloc(1, sizeof(*object));
	char *slash;

	if (!object)
		return NULL;
	object->path = strdup(path);
	if (!object->path) {
		free(object);
		return NULL;
	}
	slash = strrchr(object->path, '/');
	object->name = slash && slash[1] ? slash + 1 : object->path;
	object->kind = kind;
	atomic_init(&object->refs, 1);
	atomic_init(&object->state, OBJECT_NEW);
	if (!pool_charge(POOL_PROCESSES, object_bytes(object))) {
		free(object->path);
		free(object);
		return NULL;
	}
	return object;
}

struct object *object_ref(struct object *object)
{
	atomic_fetch_add_explicit(&object->refs, 1, memory_order_relaxed);
	return object;
}

void object_unref(struct object *object)
{
	if (!object ||
	    atomic_fetch_sub_explicit(&object->refs, 1, memory_order_acq_rel) != 1)
		return;
	pool_uncharge(POOL_PROCESSES, object_bytes(object));
	free(object->segments);
	free(object->go_build_id);
	free(object->path);
	free(object);
}

void object_set_go_build_id(struct object *object, const char *id)
{
	if (!pool_charge(POOL_PROCESSES, strlen(id) + 1))
		return;
	object->go_build_id = strdup(id);
	if (!object->go_build_id)
		pool_uncharge(POOL_PROCESSES, strlen(id) + 1);
}

static int64_t ctime_ns(const struct stat *st)
{
	return (int64_t)st->st_ctim.tv_sec * (int64_t)NSEC_PER_SEC + st->st_ctim.tv_nsec;
}

void object_set_file(struct object *object, const struct stat *st)
{
	object->dev = st->st_dev;
	object->inode = st->st_ino;
	object->ctime_ns = ctime_ns(st);
	object->size = (uint64_t)st->st_size;
}

bool object_is_file(const struct object *object, const struct stat *st)
{
	return object->inode == st->st_ino && object->dev == st->st_dev &&
	       object->ctime_ns == ctime_ns(st) && object->size == (uint64_t)st->st_size;
}

int object_set_segments(struct object *object, struct object_segment *segments, size_t count)
{
	struct object_segment *fitted;
	int r = 0;

	if (count > OBJECT_SEGMENTS_MAX)
		r = -E2BIG;
	else if (!pool_charge(POOL_PROCESSES, count * sizeof(*segments)))
		r = -ENOBUFS;
	if (r < 0) {
		free(segments);
		return r;
	}
	fitted = realloc(segments, count * sizeof(*segments));
	object->segments = fitted ? fitted : segments;
	object->segment_count = count;
	return 0;
}

void object_unrefp(struct object **object)
{
	object_unref(*object);
}

bool object_address(const struct object *object, uint64_t file_offset, uint64_t *ret_address)
{
	for (size_t i = 0; i < object->segment_count; i++) {
		const struct object_segment *segment = &object->segments[i];

		/* one unsigned comparison also refuses offsets below the segment */
		if (file_offset - segment->offset >= segment->size)
			continue;
		*ret_address = segment->vaddr + (file_offset - segment->offset);
		return true;
	}
	return false;
}

static size_t mapped_file_bytes(const struct mapped_file *file)
{
	return sizeof(*file) + strlen(file->path) + 1;
}

struct mapped_file *mapped_file_new(enum object_kind kind, const char *path)
{
	struct mapped_file *file = calloc(1, sizeof(*file));

	if (!file)
		return NULL;
	file->path = strdup(path);
	if (!file->path || !pool_charge(POOL_PROCESSES, mapped_file_bytes(file))) {
		free(file->path);
		free(file);
		return NULL;
	}
	file->kind = kind;
	atomic_init(&file->refs, 1);
	atomic_init(&file->object, NULL);
	return file;
}

struct mapped_file *mapped_file_ref(struct mapped_file *file)
{
	atomic_fetch_add_explicit(&file->refs, 1, memory_order_relaxed);
	return file;
}

void mapped_file_unref(struct mapped_file *file)
{
	if (!file || atomic_fetch_sub_explicit(&file->refs, 1, memory_order_acq_rel) != 1)
		return;
	object_unref(mapped_file_object(file));
	pool_uncharge(POOL_PROCESSES, mapped_file_bytes(file));
	free(file->path);
	free(file);
}
