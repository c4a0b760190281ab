// SPDX-License-Identifier: Apache-2.0
#include "process/process.h"

#include <string.h>

#include "process/table.h"
#include "process/mark.h"

#define EXEC_NS (100 * NSEC_PER_MSEC)	/* more than the rest of an exec takes */

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


/* Does a process that started at @start fit what is known of the image? */
static bool image_started_at(const struct image *image, uint64_t start)
{
	if (!image->start_time || image->start_time == start)
		return true;
	return image->start_time % TICK_NS == 0 && start - image->start_time < TICK_NS;
}

static void image_bind(struct image *image, const struct stacktap_sample *sample)
{
	image->start_time = sample->start_time;
	/*
	 * The kernel tells of an exec before it counts it: until then a sample in the kernel
	 * carries the number of the program before. A sample in user mode is past that.
	 */
	if (!(sample->header.flags & STACKTAP_SAMPLE_USER_MODE) &&
	    sample->header.time < image->since + EXEC_NS)
		return;
	image->exec_id = sample->exec_id;
	image->exec_id_known = true;
}

/* Could a sample of unknown identity be of the next older image just as well? */
static bool process_is_ambiguous(const struct process *process, size_t i)
{
	return i + 1 < PROCESS_IMAGES && process->images[i + 1] &&
	       !process->images[i + 1]->exec_id_known;
}

/* By identity if it is known already; else by time, which binds the identity. */
static struct image *process_match(const struct process *process,
				   const struct stacktap_sample *sample, uint16_t *ret_marks)
{
	uint64_t time = sample->header.time;

	for (size_t i = 0; i < PROCESS_IMAGES && process->images[i]; i++) {
		struct image *image = process->images[i];

		if (image->exec_id_known && image->exec_id == sample->exec_id &&
		    image_started_at(image, sample->start_time))
			return image;
	}
	for (size_t i = 0; i < PROCESS_IMAGES && process->images[i]; i++) {
		struct image *image = process->images[i];

		if (image->exec_id_known || image->since > time + TIE_NS ||
		    !image_started_at(image, sample->start_time))
			continue;
		if (i && image->ended && image->ended + TIE_NS < time)
			continue;
		/* this close to its start it may be the older one's: a later sample binds */
		if (time < image->since + TIE_NS && process_is_ambiguous(process, i)) {
			*ret_marks |= SAMPLE_DOUBTFUL;
			return image;
		}
		image_bind(image, sample);
		return image;
	}
	return NULL;
}

/*
 * A sample from before everything that is known of the process. An image without mappings stands
 * for what ran then, so that nothing gets a name by the mappings of its successor.
 */
static struct image *process_past(struct process_table *table, struct process *process,
				  const struct stacktap_sample *sample)
{
	uint64_t time = sample->header.time;
	struct image *image = image_new(NULL, process->tgid, 0, sample->comm);
	size_t i = 1;

	if (!image)
		return NULL;
	image_end(image, max_of(time, (uint64_t)1));
	image_doubt(image, time);
	image_bind(image, sample);
	while (i < PROCESS_IMAGES && process->images[i])
		i++;
	if (i == PROCESS_IMAGES)
		process_drop_image(process, --i);
	process->images[i] = image;
	process_reap_later(table, process, time);
	return image;
}

struct image *process_table_image(struct process_table *table,
				  const struct stacktap_sample *sample, uint16_t *ret_marks)
{
	uint64_t time = sample->header.time;
	struct process *process;
	struct image *image;

	*ret_marks = 0;
	if (!sample->tgid ||
	    sample->header.flags & (STACKTAP_SAMPLE_KERNEL_THREAD | STACKTAP_SAMPLE_IDLE))
		return NULL;
	process = process_get(table, sample->tgid);
	if (!process)
		return NULL;
	image = process_match(process, sample, ret_marks);
	if (!image && process->images[0] && time + TIE_NS < process->images[0]->since) {
		image = process_past(table, process, sample);
	} else if (!image) {
		image = process_unknown(table, process, time, sample->comm);
		if (image)
			image_bind(image, sample);
	}
	if (!image)
		return NULL;
	/* its leader has gone, but not all of its threads */
	if (image == process->images[0] && image->ended && image->ended + TIE_NS < time)
		image->ended = 0;
	if (image->is_doubtful && image == process->images[0])
		process_want_scan(table, process, time);
	if (image->is_doubtful || time + TIE_NS < image->replaced)
		*ret_marks |= SAMPLE_DOUBTFUL;
	image_announce(table, process, image);
	return image;
}

void process_table_suspect(struct process_table *table, struct image *image, uint64_t time)
{
	struct process *process = process_find(table, image->tgid);

	if (process && process->images[0] == image)
		process_want_scan(table, process, time);
}
