// SPDX-License-Identifier: Apache-2.0
/* What /proc says, merged into the process table. */
#include <string.h>

#include "process/lists.h"
#include "process/scan.h"
#include "process/table.h"

/* Is the snapshot of another program than the one we believe to run? */
static bool image_is_other(const struct image *image, const struct process_snapshot *snapshot)
{
	uint64_t start = image->start_time;

	if (start && start != snapshot->start_time &&
	    start - snapshot->start_time >= TICK_NS)
		return true;
	/* an exec may be among what the side band lost; a sample's name is only that of a thread */
	return image->is_doubtful && (image->since || image->scanned) &&
	       strncmp(image->comm, snapshot->comm, sizeof(image->comm)) != 0;
}

static const struct mapping *find_same(const struct mapping *mappings, size_t count,
				       const struct process_snapshot_mapping *wanted,
				       enum object_kind kind)
{
	const struct mapping *mapping = mapping_find(mappings, count, wanted->start);

	if (mapping && mapping->start == wanted->start && mapping->end == wanted->end &&
	    mapping->file->kind == kind && mapping->file->inode == wanted->inode &&
	    (kind != OBJECT_FILE || mapping->file_offset == wanted->file_offset))
		return mapping;
	return NULL;
}

/* The old list, taken out of the image while the new one is built. */
struct old_list {
	struct mapping *mappings;
	size_t count, capacity;
};

static void old_list_done(struct image *image, struct old_list *old)
{
	for (size_t i = 0; i < old->count; i++) {
		if (image->files)
			files_unuse(image->files, old->mappings[i].file);
		mapped_file_unref(old->mappings[i].file);
	}
	pool_uncharge(POOL_PROCESSES, old->capacity * sizeof(*old->mappings));
	free(old->mappings);
}

static int merge_snapshot_mapping(struct process_table *table, const struct process *process,
				  struct image *image, const struct old_list *old,
				  const struct process_snapshot *snapshot,
				  const struct process_snapshot_mapping *mapping)
{
	const struct file_key key = {
		.major = mapping->major,
		.minor = mapping->minor,
		.inode = mapping->inode,
		.path = mapping->path,
	};
	const struct mapping *same = find_same(old->mappings, old->count, mapping,
					       files_kind(&key));
	const struct extent extent = {
		.start = mapping->start,
		.end = mapping->end,
		.file_offset = mapping->file_offset,
		.since = old->count ? snapshot->time : 0,
	};
	bool replaced;

	/* what is known already keeps its file, and so its Locations */
	if (same)
		return image_map(image, same->start, same->end, same->file_offset, same->since,
				 same->file, &replaced);
	return process_map(table, process, image, &extent, &key, &replaced);
}

/* Events newer than the snapshot, again in order of time. */
static int merge_newer(struct image *image, const struct old_list *old, uint64_t time)
{
	for (;;) {
		const struct mapping *next = NULL;
		bool replaced;
		int r;

		for (size_t i = 0; i < old->count; i++) {
			const struct mapping *mapping = &old->mappings[i];

			if (mapping->since > time && (!next || mapping->since < next->since))
				next = mapping;
		}
		if (!next)
			return 0;
		time = next->since;
		for (size_t i = 0; i < old->count; i++) {
			const struct mapping *mapping = &old->mappings[i];

			if (mapping->since != time)
				continue;
			r = image_map(image, mapping->start, mapping->end, mapping->file_offset,
				      mapping->since, mapping->file, &replaced);
			if (r < 0)
				return r;
		}
	}
}

static bool same_lists(const struct image *image, const struct old_list *old)
{
	if (image->mapping_count != old->count)
		return false;
	for (size_t i = 0; i < old->count; i++)
		if (image->mappings[i].start != old->mappings[i].start ||
		    image->mappings[i].end != old->mappings[i].end ||
		    image->mappings[i].file != old->mappings[i].file)
			return false;
	return true;
}

static void merge_mappings(struct process_table *table, struct process *process,
			   struct image *image, const struct process_snapshot *snapshot)
{
	struct old_list old = {
		.mappings = image->mappings,
		.count = image->mapping_count,
		.capacity = image->mapping_capacity,
	};
	uint64_t generation = image->generation;
	bool is_same;
	int r = 0;

	/* libraries are at the upper end, which is missing: what events told is worth more */
	if (snapshot->is_cut && image->mapping_count) {
		image->scanned = snapshot->time;
		return;
	}
	image->mappings = NULL;
	image->mapping_count = 0;
	image->mapping_capacity = 0;
	for (size_t i = 0; i < snapshot->mapping_count && !r; i++)
		r = merge_snapshot_mapping(table, process, image, &old, snapshot,
					   &snapshot->mappings[i]);
	if (!r)
		r = merge_newer(image, &old, snapshot->time);
	image->scanned = snapshot->time;
	is_same = same_lists(image, &old);
	if (!is_same)
		image->changed = max_of(image->changed, snapshot->time);
	if (r < 0) {
		image_doubt(image, snapshot->time);
	} else if (image->is_doubtful && image->doubted < snapshot->time) {
		image->is_doubtful = false;
		image->doubted = 0;
		/* older samples stay marked: nobody knows what held for them */
		image->replaced = max_of(image->replaced, snapshot->time);
	} else if (is_same) {
		image->generation = generation;
	} else if (old.count) {
		image->replaced = max_of(image->replaced, snapshot->time);
	}
	old_list_done(image, &old);
	if (!image->is_listed || image->listed != image->generation)
		process_want_list(table, process, snapshot->time);
}

void process_table_merge(struct process_table *table, const struct process_snapshot *snapshot)
{
	struct process *process = process_get(table, snapshot->tgid);
	struct image *image;

	if (!process)
		return;
	image = process->images[0];
	/* events have already told what came after it */
	if (image && (image->since > snapshot->time || image->ended > snapshot->time))
		return;
	if (!image || image->ended || image_is_other(image, snapshot)) {
		bool is_first = !image;

		image = process_push_image(table, process, 0, snapshot->time, snapshot->comm);
		if (!image)
			return;
		/* it took the place of something at a time that nobody saw */
		if (!is_first)
			image_doubt(image, 0);
	}
	if (!image->start_time)
		image->start_time = snapshot->start_time;
	if (!process->parent_tgid)
		process->parent_tgid = snapshot->parent_tgid;
	/* its fork may be among what the side band lost */
	if (table->follows && !process->is_followed)
		process->is_followed = process_table_follows(table, snapshot->parent_tgid);
	merge_mappings(table, process, image, snapshot);
}

void process_table_unread(struct process_table *table, uint32_t tgid, uint64_t time)
{
	struct process *process = process_find(table, tgid);

	if (process && process->images[0])
		process->images[0]->unread = time;
}

void process_table_gone(struct process_table *table, uint32_t tgid, uint64_t time)
{
	struct process *process = process_find(table, tgid);
	struct image *image = process ? process->images[0] : NULL;

	if (!image || image->ended || image->since > time)
		return;
	process_end(table, process, image, time);
}

void process_table_scanned_all(struct process_table *table, uint64_t began)
{
	for (uint32_t i = 0; i < table->processes.count; i++) {
		struct process *process = process_at(table, i);
		struct image *image = process->images[0];

		if (image && !image->ended && image->since < began &&
		    image->scanned < began && image->unread < began)
			process_end(table, process, image, began);
	}
}
