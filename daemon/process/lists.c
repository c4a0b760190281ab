// SPDX-License-Identifier: Apache-2.0
#include "process/lists.h"

#include <string.h>

#include "process/table.h"
#include "process/mark.h"

#define DELAY_NS (LISTS_DELAY_MS * NSEC_PER_MSEC)
#define DELAY_MAX_NS (10 * DELAY_NS)
#define FIRST_MAX_NS NSEC_PER_SEC	/* without any list unwinding is deferred */
#define MISS_INTERVAL_MAX_NS (32 * NSEC_PER_SEC)
#define OWN_DELAY_NS (10 * NSEC_PER_SEC)

struct mapping_list *mapping_list_new(struct image *image, uint64_t generation)
{
	struct mapping_list *list =
		malloc(sizeof(*list) + image->mapping_count * sizeof(list->mappings[0]));

	if (!list)
		return NULL;
	*list = (struct mapping_list){
		.image = image_ref(image),
		.tgid = image->tgid,
		.start_time = image->start_time,
		.exec_id = image->exec_id,
		.is_bound = image->exec_id_known,
		.generation = max_of(generation, image->changed),
		.count = image->mapping_count,
	};
	for (size_t i = 0; i < list->count; i++) {
		list->mappings[i] = image->mappings[i];
		mapped_file_ref(list->mappings[i].file);
		list->generation = max_of(list->generation, list->mappings[i].since);
	}
	return list;
}

size_t mapping_list_bytes(const struct mapping_list *list)
{
	return sizeof(*list) + list->count * sizeof(list->mappings[0]);
}

void mapping_list_free(struct mapping_list *list)
{
	if (!list)
		return;
	for (size_t i = 0; i < list->count; i++)
		mapped_file_unref(list->mappings[i].file);
	image_unref(list->image);
	free(list);
}

/* All that the kernel maps for a program that is to be linked: itself and the linker. */
static bool is_unlinked(const struct image *image)
{
	const struct mapped_file *last = NULL;
	size_t files = 0;

	for (size_t i = 0; i < image->mapping_count; i++) {
		const struct mapped_file *file = image->mappings[i].file;

		if (file->kind != OBJECT_FILE || file == last)
			continue;
		last = file;
		files++;
	}
	return files == 2;
}

/*
 * How long to wait for more changes: as long as a new program has taken so far, since its libraries
 * come as slowly as the host is.
 */
static uint64_t pause_of(const struct image *image, uint64_t time)
{
	if (image->is_listed || image->is_fork || image->since > time || !image->since)
		return DELAY_NS;
	return is_unlinked(image) ? FIRST_MAX_NS : max_of(DELAY_NS, time - image->since);
}

static void want(struct process_table *table, struct process *process, uint64_t time,
		 uint64_t pause)
{
	const struct image *image = process->images[0];

	if (!table->send_list)
		return;
	/* once more after a pause, but not for ever */
	if (process->list_due)
		TAILQ_REMOVE(&table->lists, process, list);
	else
		process->list_last =
			time + (image && image->is_listed ? DELAY_MAX_NS : FIRST_MAX_NS);
	process->list_due = min_of(time + pause, process->list_last);
	TAILQ_INSERT_TAIL(&table->lists, process, list);
}

void process_want_list(struct process_table *table, struct process *process, uint64_t time)
{
	want(table, process, time, DELAY_NS);
}

void process_gather_list(struct process_table *table, struct process *process, uint64_t time)
{
	want(table, process, time, pause_of(process->images[0], time));
}

void process_miss_list(struct process_table *table, struct process *process, uint64_t time)
{
	if (time < process->next_miss || process->list_due || !process->images[0] ||
	    (process->tgid == table->own_tgid && time < table->own_from))
		return;
	process->next_miss = time + process->miss_interval;
	process->miss_interval =
		min_of(2 * process->miss_interval, (uint64_t)MISS_INTERVAL_MAX_NS);
	process->is_missed = true;
	process->images[0]->is_listed = false;
	process_want_list(table, process, time);
}

int process_table_use_lists(struct process_table *table,
			    bool (*send)(void *ctx, struct mapping_list *list), void *ctx,
			    const uint32_t *tgids, size_t count)
{
	if (count) {
		table->list_tgids = malloc(count * sizeof(*tgids));
		if (!table->list_tgids)
			return -ENOMEM;
		memcpy(table->list_tgids, tgids, count * sizeof(*tgids));
	}
	table->list_tgid_count = count;
	table->own_tgid = (uint32_t)getpid();
	table->list_ctx = ctx;
	table->send_list = send;
	return 0;
}

/*
 * We ourselves have more libraries than most, which would hold up everything else; our code has frame
 * pointers. A child that has not executed its program yet is us as well.
 */
static bool is_own(const struct process_table *table, const struct process *process)
{
	return process->tgid == table->own_tgid ||
	       (process->parent_tgid == table->own_tgid && !process->images[0]->since);
}

static bool is_wanted(const struct process_table *table, const struct process *process)
{
	if (table->follows && !process->is_followed)
		return false;
	if (is_own(table, process))
		return process->is_missed;
	for (size_t i = 0; i < table->list_tgid_count; i++)
		if (table->list_tgids[i] == process->tgid)
			return true;
	return !table->list_tgid_count || process->is_missed;
}

/* 0, or -EAGAIN when there is no room for it now. */
static int send_list(struct process_table *table, struct process *process, uint64_t time)
{
	struct image *image = process->images[0];
	struct mapping_list *list;

	if (!image || image->ended || !is_wanted(table, process) ||
	    (image->is_listed && image->listed == image->generation))
		return 0;
	/* a kernel thread, or nothing is known of it yet */
	if (!image->mapping_count && !image->is_listed)
		return 0;
	image_announce(table, process, image);
	list = mapping_list_new(image, time);
	if (!list)
		return -EAGAIN;
	if (!table->send_list(table->list_ctx, list))
		return -EAGAIN;
	image->is_listed = true;
	image->listed = image->generation;
	process->next_miss = max_of(process->next_miss, time + MISS_INTERVAL_NS);
	return 0;
}

bool process_table_send_lists(struct process_table *table, uint64_t time, bool at_once)
{
	struct process *process, *next;

	if (!table->own_from)
		table->own_from = time + OWN_DELAY_NS;
	for (process = TAILQ_FIRST(&table->lists); process; process = next) {
		next = TAILQ_NEXT(process, list);
		if (!at_once && process->list_due > time)
			continue;
		TAILQ_REMOVE(&table->lists, process, list);
		process->list_due = 0;
		if (send_list(table, process, time) < 0) {
			process_want_list(table, process, time);
			break;
		}
	}
	return !TAILQ_EMPTY(&table->lists);
}

uint16_t process_table_check_list(struct process_table *table, const struct image *image,
				  const struct stacktap_sample *sample)
{
	uint64_t time = sample->header.time, generation = sample->generation;
	struct process *process;

	if (!table->send_list || (generation && generation >= image->changed))
		return 0;
	process = process_find(table, image->tgid);
	/* what changed after the sample has asked for a list by itself */
	if (process && process->images[0] == image && image->changed <= time)
		process_miss_list(table, process, time);
	if (!generation)
		return 0;
	/* it names what the program before had mapped, or what others have taken the place of */
	if ((!image->is_fork && image->since > generation) ||
	    (image->replaced > generation && image->replaced <= time))
		return SAMPLE_DOUBTFUL;
	return 0;
}

void process_table_relist(struct process_table *table, uint64_t time)
{
	for (uint32_t i = 0; i < table->processes.count; i++) {
		struct process *process = process_at(table, i);

		if (!process->images[0] || process->images[0]->ended)
			continue;
		process->images[0]->is_listed = false;
		process_want_list(table, process, time);
	}
}
