// SPDX-License-Identifier: Apache-2.0
/* Which image a sample is of. */
#include "process/mark.h"
#include "process/table.h"

#define EXEC_NS (100 * NSEC_PER_MSEC)	/* more than the rest of an exec takes */

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

static struct image *process_by_identity(const struct process *process, const struct stacktap_sample *sample)
{
	for (size_t i = 0; i < PROCESS_IMAGES && process->images[i]; i++) {
		struct image *image = process->images[i];

		if (image->exec_id_known && image->exec_id == sample->exec_id &&
		    image_started_at(image, sample->start_time))
			return image;
	}
	return NULL;
}

/* By identity if it is known already; else by time, which binds the identity. */
static struct image *process_match(const struct process *process,
				   const struct stacktap_sample *sample, uint16_t *ret_marks)
{
	struct image *known = process_by_identity(process, sample);
	uint64_t time = sample->header.time;

	if (known)
		return known;
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
 * A sample from before everything that is known of the process, or of what nothing proves to be known. An image
 * without mappings stands for what ran then, so that nothing gets a name by the mappings of its successor.
 */
static struct image *process_past(struct process_table *table, struct process *process,
				  const struct stacktap_sample *sample)
{
	uint64_t time = sample->header.time;
	struct image *image = image_new(NULL, process->tgid, 0, sample->comm);
	size_t i = process->images[0] ? 1 : 0;

	if (!image)
		return NULL;
	atomic_store_explicit(&image->is_succeeded, true, memory_order_release);
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
	process = sample_has_process(sample) ? process_get(table, sample->tgid) : NULL;
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

struct image *process_table_image_unseen(struct process_table *table, const struct stacktap_sample *sample,
					 uint16_t *ret_marks)
{
	struct process *process;
	struct image *image;

	*ret_marks = 0;
	process = sample_has_process(sample) ? process_get(table, sample->tgid) : NULL;
	if (!process)
		return NULL;
	image = process_by_identity(process, sample);
	if (!image)
		image = process_past(table, process, sample);
	if (image)
		*ret_marks |= SAMPLE_DOUBTFUL;
	return image;
}

void process_table_suspect(struct process_table *table, struct image *image, uint64_t time)
{
	struct process *process = process_find(table, image->tgid);

	if (process && process->images[0] == image)
		process_want_scan(table, process, time);
}
