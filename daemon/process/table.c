// SPDX-License-Identifier: Apache-2.0
#include "process/table.h"

#include <string.h>

#include "base/hash.h"

#define KEEP_ENDED_NS (2 * NSEC_PER_SEC)	/* until the last deferred sample has been processed */
#define SCAN_INTERVAL_NS NSEC_PER_SEC		/* of one process, doubling up to the maximum */
#define SCAN_INTERVAL_MAX_NS (32 * NSEC_PER_SEC)

int process_table_new(const struct process_observer *observer, struct process_table **ret_table)
{
	struct process_table *table = calloc(1, sizeof(*table));

	if (!table)
		return -ENOMEM;
	if (observer)
		table->observer = *observer;
	hash_table_init(&table->processes, POOL_PROCESSES);
	hash_table_init(&table->files, POOL_PROCESSES);
	TAILQ_INIT(&table->reap);
	TAILQ_INIT(&table->lists);
	*ret_table = table;
	return 0;
}

static uint64_t tgid_hash(uint32_t tgid)
{
	return hash_bytes(&tgid, sizeof(tgid));
}

struct process *process_find(const struct process_table *table, uint32_t tgid)
{
	struct index_probe probe = hash_table_first(&table->processes, tgid_hash(tgid));
	struct hash_link *link;

	while ((link = hash_table_next(&table->processes, &probe))) {
		struct process *process = container_of(link, struct process, link);

		if (process->tgid == tgid)
			return process;
	}
	return NULL;
}

void process_drop_image(struct process *process, size_t i)
{
	struct image *image = process->images[i];

	/* other threads may hold it for long; its mappings are of use to nobody but this table */
	image_end(image, image->ended);
	image_drop_mappings(image);
	image_unref(image);
	memmove(&process->images[i], &process->images[i + 1],
		(PROCESS_IMAGES - 1 - i) * sizeof(*process->images));
	process->images[PROCESS_IMAGES - 1] = NULL;
}

void process_forget_list(struct process_table *table, struct process *process)
{
	if (process->list_due)
		TAILQ_REMOVE(&table->lists, process, list);
	process->list_due = 0;
	process->next_miss = 0;
	process->miss_interval = MISS_INTERVAL_NS;
}

static void process_free(struct process_table *table, struct process *process)
{
	while (process->images[0])
		process_drop_image(process, 0);
	if (process->reap_time)
		TAILQ_REMOVE(&table->reap, process, reap);
	process_forget_list(table, process);
	hash_table_remove(&table->processes, &process->link);
	pool_uncharge(POOL_PROCESSES, sizeof(*process));
	free(process);
}

void process_table_free(struct process_table *table)
{
	if (!table)
		return;
	while (table->processes.count)
		process_free(table, process_at(table, table->processes.count - 1));
	hash_table_done(&table->processes);
	hash_table_done(&table->files);
	free(table->list_tgids);
	free(table);
}

void process_reap_later(struct process_table *table, struct process *process, uint64_t time)
{
	if (process->reap_time)
		TAILQ_REMOVE(&table->reap, process, reap);
	process->reap_time = max_of(time, (uint64_t)1);
	TAILQ_INSERT_TAIL(&table->reap, process, reap);
}

/* Drop ended images of the process whose last end is the longest ago, but not of @except. */
static bool process_table_evict(struct process_table *table, const struct process *except)
{
	struct process *process = TAILQ_FIRST(&table->reap);

	if (process && process == except)
		process = TAILQ_NEXT(process, reap);
	if (!process)
		return false;
	for (size_t i = PROCESS_IMAGES; i-- > 0;)
		if (process->images[i] && process->images[i]->ended)
			process_drop_image(process, i);
	if (!process->images[0]) {
		process_free(table, process);
	} else {
		TAILQ_REMOVE(&table->reap, process, reap);
		process->reap_time = 0;
	}
	return true;
}

void process_table_expire(struct process_table *table, uint64_t time)
{
	struct process *process;

	while ((process = TAILQ_FIRST(&table->reap)) &&
	       process->reap_time + KEEP_ENDED_NS < time)
		process_table_evict(table, NULL);
}

size_t process_table_count(const struct process_table *table)
{
	return table->processes.count;
}

struct process *process_get(struct process_table *table, uint32_t tgid)
{
	struct process *process = process_find(table, tgid);
	int r;

	if (process)
		return process;
	while (!pool_charge(POOL_PROCESSES, sizeof(*process)))
		if (!process_table_evict(table, NULL))
			return NULL;
	process = calloc(1, sizeof(*process));
	if (!process)
		goto uncharge;
	process->tgid = tgid;
	process->scan_interval = SCAN_INTERVAL_NS;
	process_forget_list(table, process);
	do
		r = hash_table_add(&table->processes, &process->link, tgid_hash(tgid));
	while (r == -ENOBUFS && process_table_evict(table, NULL));
	if (r < 0)
		goto free_process;
	return process;

free_process:
	free(process);
uncharge:
	pool_uncharge(POOL_PROCESSES, sizeof(*process));
	return NULL;
}

void process_want_scan(struct process_table *table, struct process *process, uint64_t time)
{
	if (time < process->next_scan || table->wants_all || table->wanted_count == WANTED_MAX)
		return;
	table->wanted[table->wanted_count++] = process->tgid;
	process->next_scan = time + process->scan_interval;
	process->scan_interval =
		min_of(2 * process->scan_interval, (uint64_t)SCAN_INTERVAL_MAX_NS);
}

bool process_table_wants_scan(struct process_table *table, uint32_t *ret_tgid)
{
	if (table->wants_all) {
		table->wants_all = false;
		table->wanted_count = 0;
		*ret_tgid = 0;
		return true;
	}
	if (!table->wanted_count)
		return false;
	*ret_tgid = table->wanted[--table->wanted_count];
	return true;
}

void image_doubt(struct image *image, uint64_t time)
{
	image->is_doubtful = true;
	image->doubted = max_of(image->doubted, time);
}

void process_table_doubt(struct process_table *table, uint64_t time)
{
	for (uint32_t i = 0; i < table->processes.count; i++) {
		struct process *process = process_at(table, i);

		for (size_t k = 0; k < PROCESS_IMAGES && process->images[k]; k++)
			image_doubt(process->images[k], time);
	}
	table->wants_all = true;
}

void process_end(struct process_table *table, struct process *process, struct image *image,
		 uint64_t time)
{
	image_end(image, time);
	process_reap_later(table, process, time);
}

struct image *process_push_image(struct process_table *table, struct process *process,
				 uint64_t since, uint64_t time, const char *comm)
{
	struct image *image;

	while (!(image = image_new(&table->files, process->tgid, since, comm)))
		if (!process_table_evict(table, process))
			return NULL;
	if (process->images[PROCESS_IMAGES - 1])
		process_drop_image(process, PROCESS_IMAGES - 1);
	if (process->images[0]) {
		atomic_store_explicit(&process->images[0]->is_succeeded, true, memory_order_release);
		process_end(table, process, process->images[0], time);
	}
	memmove(&process->images[1], &process->images[0],
		(PROCESS_IMAGES - 1) * sizeof(*process->images));
	process->images[0] = image;
	process->scan_interval = SCAN_INTERVAL_NS;
	process->next_scan = 0;
	process_forget_list(table, process);
	return image;
}

struct image *process_image_at(const struct process *process, uint64_t time)
{
	for (size_t i = 0; i < PROCESS_IMAGES && process->images[i]; i++)
		if (process->images[i]->since <= time)
			return process->images[i];
	return NULL;
}

static void file_announce(struct process_table *table, struct image *image,
			  struct mapped_file *file)
{
	const struct object *object = mapped_file_object(file);
	/* what could not be opened through one image may be reachable through another */
	bool is_gone = object && atomic_load_explicit(&object->state, memory_order_acquire) ==
					 OBJECT_GONE;

	if ((file->is_announced && !is_gone) || file->kind == OBJECT_ANONYMOUS)
		return;
	file->is_announced = !table->observer.file || table->observer.file(table->observer.ctx, image, file);
}

int process_table_follow(struct process_table *table, uint32_t tgid)
{
	struct process *process = process_get(table, tgid);

	if (!process)
		return -ENOMEM;
	process->is_followed = true;
	table->follows = true;
	return 0;
}

bool process_table_follows(const struct process_table *table, uint32_t tgid)
{
	const struct process *process;

	if (!table->follows)
		return true;
	process = process_find(table, tgid);
	return process && process->is_followed;
}

void image_announce(struct process_table *table, const struct process *process,
		    struct image *image)
{
	const struct process *parent;
	struct image *parent_image;

	/* asked for each sample: nothing is looked up where nothing is to be said */
	if (image->is_announced || (table->follows && !process->is_followed))
		return;
	parent = process_find(table, process->parent_tgid);
	parent_image = parent && parent != process ? parent->images[0] : NULL;
	image->is_announced = true;
	/* a child may be gone before anybody looks: what its parent is made of helps then */
	if (parent_image && !parent_image->is_announced && !parent_image->ended) {
		parent_image->is_announced = true;
		if (table->observer.image)
			table->observer.image(table->observer.ctx, parent_image, NULL);
	}
	if (table->observer.image)
		table->observer.image(table->observer.ctx, image, parent_image);
	for (size_t i = 0; i < image->mapping_count; i++)
		file_announce(table, image, image->mappings[i].file);
}

static struct mapped_file *image_file(struct process_table *table, const struct process *process,
				      const struct image *image, const struct file_key *key)
{
	struct mapped_file *file;

	if (files_kind(key) == OBJECT_ANONYMOUS) {
		for (size_t i = 0; i < image->mapping_count; i++) {
			file = image->mappings[i].file;
			if (file->kind == OBJECT_ANONYMOUS && !strcmp(file->path, key->path))
				return mapped_file_ref(file);
		}
	}
	while (!(file = files_get(&table->files, key)))
		if (!process_table_evict(table, process))
			return NULL;
	return file;
}

int process_map(struct process_table *table, const struct process *process,
		struct image *image, const struct extent *extent,
		const struct file_key *key, bool *ret_replaced)
{
	struct mapped_file *file = image_file(table, process, image, key);
	uint64_t offset = extent->file_offset;
	int r;

	if (!file)
		return -ENOMEM;
	if (file->kind == OBJECT_ANONYMOUS)
		offset = extent->start;
	else if (file->kind == OBJECT_VDSO)
		offset = 0;
	do
		r = image_map(image, extent->start, extent->end, offset, extent->since, file,
			      ret_replaced);
	while (r == -ENOBUFS && process_table_evict(table, process));
	if (!r && image->is_announced)
		file_announce(table, image, file);
	mapped_file_unref(file);
	return r;
}

struct image *process_unknown(struct process_table *table, struct process *process,
			      uint64_t time, const char *comm)
{
	struct image *image = process_push_image(table, process, 0, time, comm);

	if (!image)
		return NULL;
	image_doubt(image, time);
	process_want_scan(table, process, time);
	return image;
}

void image_inherit(struct process_table *table, const struct process *process,
		   struct image *child, const struct image *parent)
{
	if (!parent->mapping_count)
		image_doubt(child, child->since);
	for (size_t i = 0; i < parent->mapping_count; i++) {
		/* a copy: room for the child may be made by evicting the parent's mappings */
		const struct mapping from = parent->mappings[i];
		struct mapped_file *file = mapped_file_ref(from.file);
		bool replaced;
		int r;

		/* the same addresses will hold other code in the child */
		if (file->kind == OBJECT_ANONYMOUS) {
			const struct file_key key = { .path = file->path };
			struct mapped_file *own = image_file(table, process, child, &key);

			mapped_file_unref(file);
			file = own;
		}
		r = file ? image_map(child, from.start, from.end, from.file_offset, from.since,
				     file, &replaced) :
			   -ENOMEM;
		mapped_file_unref(file);
		if (r < 0) {
			image_doubt(child, child->since);
			return;
		}
	}
}
