// SPDX-License-Identifier: Apache-2.0
/* What the side band tells, put into the process table. */
#include <string.h>

#include "process/lists.h"
#include "process/table.h"

/*
 * Is this what is mapped there already? Compilers at run time change protections all the time, which
 * looks like a new mapping each time.
 */
static bool image_has(const struct image *image, const struct extent *extent,
		      const struct file_key *key)
{
	const struct mapping *mapping = image_find_mapping(image, extent->start);
	const struct mapped_file *file;

	if (!mapping || mapping->end < extent->end)
		return false;
	file = mapping->file;
	if (file->kind == OBJECT_FILE &&
	    extent->file_offset - mapping->file_offset != extent->start - mapping->start)
		return false;
	return file->kind == files_kind(key) && file->inode == key->inode &&
	       file->major == key->major && file->minor == key->minor &&
	       file->inode_generation == key->inode_generation && !strcmp(file->path, key->path);
}

void process_table_mmap(struct process_table *table, const struct sideband_mmap *event)
{
	const struct extent extent = {
		.start = event->address,
		.end = event->address + event->length,
		.file_offset = event->file_offset,
		.since = event->time,
	};
	const struct file_key key = {
		.major = event->major,
		.minor = event->minor,
		.inode = event->inode,
		.inode_generation = event->inode_generation,
		.path = event->path,
	};
	struct process *process = process_get(table, event->pid);
	struct image *image;
	bool replaced;

	if (!process)
		return;
	image = process_image_at(process, event->time);
	if (!image && !process->images[0])
		image = process_unknown(table, process, event->time, NULL);
	/* a scan that began later has seen it, and what became of it since */
	if (!image || event->time <= image->scanned || image_has(image, &extent, &key))
		return;
	if (process_map(table, process, image, &extent, &key, &replaced) < 0) {
		image_doubt(image, event->time);
		return;
	}
	if (replaced)
		image->replaced = event->time;
	image->changed = event->time;
	if (image == process->images[0])
		process_gather_list(table, process, event->time);
}

void process_table_comm(struct process_table *table, const struct sideband_task *event)
{
	struct process *process;
	struct image *image;

	if (!event->is_exec)
		return;
	process = process_get(table, event->pid);
	if (!process)
		return;
	image = process_push_image(table, process, event->time, event->time, event->comm);
	if (!image)
		return;
	image->changed = event->time;
	image_announce(table, process, image);
	process_gather_list(table, process, event->time);
}

void process_table_fork(struct process_table *table, const struct sideband_task *event)
{
	struct process *parent, *process;
	struct image *parent_image, *image;
	bool is_followed;

	if (event->pid == event->parent_pid)
		return;	/* a thread */
	process = process_get(table, event->pid);
	if (!process)
		return;
	parent = process_find(table, event->parent_pid);
	parent_image = parent ? process_image_at(parent, event->time) : NULL;
	is_followed = parent && parent->is_followed;
	/* what follows may evict the parent, when its leader has exited before its threads */
	if (parent_image)
		image_ref(parent_image);
	image = process_push_image(table, process, event->time, event->time,
				   parent_image ? parent_image->comm : NULL);
	process->parent_tgid = event->parent_pid;
	process->is_followed = is_followed;
	if (image)
		image->is_fork = true;
	if (image && parent_image) {
		image->is_doubtful = parent_image->is_doubtful;
		image->doubted = parent_image->doubted;
		image_inherit(table, process, image, parent_image);
		image->changed = parent_image->changed;
		/* the list that the kernel gave the child may be older than this */
		image->replaced = parent_image->replaced;
		/* and so does the kernel, with a list that is there */
		image->is_listed = parent_image->is_listed &&
				   parent_image->listed == parent_image->generation;
		image->listed = image->generation;
		if (!image->is_listed)
			process_want_list(table, process, event->time);
	} else if (image) {
		image_doubt(image, event->time);
		process_want_scan(table, process, event->time);
	}
	image_unref(parent_image);
}

void process_table_exit(struct process_table *table, const struct sideband_task *event)
{
	struct process *process;
	struct image *image;

	/*
	 * The leader may go before its threads. Then the image is only marked for reaping, and the
	 * next sample of a thread takes the mark off again.
	 */
	if (event->pid != event->tid)
		return;
	process = process_find(table, event->pid);
	image = process ? process_image_at(process, event->time) : NULL;
	if (!image || image->ended)
		return;
	process_end(table, process, image, event->time);
}
