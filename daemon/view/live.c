// SPDX-License-Identifier: Apache-2.0
#include "view/live.h"

#include <pthread.h>
#include <string.h>

#include "base/hash.h"

struct live_message {
	struct live_message *next;
	uint64_t time;
	size_t size;
	uint8_t data[];
};

struct live_list {
	struct live_message *first, **last;
	size_t bytes;
};

struct live {
	pthread_mutex_t lock;		/* of incoming and cut alone */
	struct live_list incoming, messages;
	size_t max_bytes;		/* of each list */
	const struct selection *selection;	/* NULL: all */
	uint64_t cut;			/* time of the newest message that did not fit */
};

struct build {
	struct live_table *table;
	const struct selection *selection;
	enum live_group group;
	const struct live_subject *subject;	/* its texts are the table's; NULL: rows are of all */
	uint64_t stamp;
};

static void list_init(struct live_list *list)
{
	*list = (struct live_list){ 0 };
	list->last = &list->first;
}

static void list_append(struct live_list *list, struct live_message *message)
{
	message->next = NULL;
	*list->last = message;
	list->last = &message->next;
	list->bytes += message->size;
}

/* The time of what was dropped. */
static uint64_t list_drop(struct live_list *list)
{
	struct live_message *message = list->first;
	uint64_t time = message->time;

	list->first = message->next;
	if (!list->first)
		list->last = &list->first;
	list->bytes -= message->size;
	pool_uncharge(POOL_REPORT, message->size);
	free(message);
	return time;
}

static void list_free(struct live_list *list)
{
	while (list->first)
		list_drop(list);
}

int live_new(size_t max_bytes, const struct selection *selection, struct live **ret_live)
{
	struct live *live = calloc(1, sizeof(*live));

	if (!live)
		return -ENOMEM;
	pthread_mutex_init(&live->lock, NULL);
	list_init(&live->incoming);
	list_init(&live->messages);
	live->max_bytes = max_bytes;
	live->selection = selection;
	*ret_live = live;
	return 0;
}

void live_free(struct live *live)
{
	if (!live)
		return;
	list_free(&live->incoming);
	list_free(&live->messages);
	pthread_mutex_destroy(&live->lock);
	free(live);
}

int live_add(struct live *live, const uint8_t *data, size_t size, uint64_t now)
{
	struct live_message *message;

	if (!pool_charge(POOL_REPORT, size))
		return -E2BIG;
	message = malloc(sizeof(*message) + size);
	if (!message) {
		pool_uncharge(POOL_REPORT, size);
		return -ENOMEM;
	}
	message->time = now;
	message->size = size;
	memcpy(message->data, data, size);
	pthread_mutex_lock(&live->lock);
	list_append(&live->incoming, message);
	while (live->incoming.bytes > live->max_bytes)
		live->cut = list_drop(&live->incoming);
	pthread_mutex_unlock(&live->lock);
	return 0;
}

static uint64_t hash_row(const struct live_row *row)
{
	const uint64_t key[] = { row->id, row->is_kernel, row->side, (uintptr_t)row->owner,
				 (uintptr_t)row->name, (uintptr_t)row->file };

	return hash_bytes(key, sizeof(key));
}

static uint64_t hash_of(const void *ctx, uint32_t position)
{
	return hash_row((const struct live_row *)ctx + position);
}

/* Names are interned: equal ones have one address. */
static int find(struct build *build, const struct live_row *key, struct live_row **ret_row)
{
	struct rows *rows = &build->table->rows;
	uint64_t hash = hash_row(key);
	struct index_probe probe = index_first(&rows->index, hash);
	const struct live_row *row;
	uint32_t i;
	int err;

	while ((i = index_next(&rows->index, &probe)) != INDEX_NONE) {
		row = live_row(build->table, i);
		if (row->id == key->id && row->is_kernel == key->is_kernel &&
		    row->side == key->side && row->owner == key->owner && row->name == key->name && row->file == key->file)
			break;
	}
	if (i == INDEX_NONE) {
		err = rows_add(rows, hash, hash_of, key, sizeof(*key), &i);
		if (err)
			return err;
	}
	*ret_row = (struct live_row *)(void *)rows->data.data + i;
	return 0;
}

static int add(struct build *build, const struct live_row *key, bool is_leaf,
	       const struct view_sample *sample)
{
	struct live_row *row;
	int err = find(build, key, &row);

	if (err)
		return err;
	if (is_leaf) {
		rows_sum(&row->self, sample->weight);
		rows_sum(&row->samples, sample->samples);
	}
	/* recursion counts once */
	if (row->stamp != build->stamp)
		rows_sum(&row->total, sample->weight);
	row->stamp = build->stamp;
	return 0;
}

static int add_frames(struct build *build, const struct view_process *process,
		      const struct view_sample *sample, const char *nothing)
{
	int err = 0;

	for (size_t i = 0; i < sample->frame_count && !err; i++) {
		const struct view_frame *frame = sample->frames[i];
		struct live_row key = {
			.is_kernel = frame->kind == FRAME_KIND_KERNEL,
			.owner = nothing, .name = nothing, .file = frame->mapping->file,
		};

		if (build->group == LIVE_FUNCTION) {
			key.id = process->pid;
			key.owner = process->name;
			key.name = frame->name;
		}
		err = add(build, &key, !i, sample);
	}
	return err;
}

static int add_side(struct build *build, enum live_side side, const struct view_sample *sample,
		    size_t i)
{
	const struct view_frame *frame = sample->frames[i];
	const struct live_row key = {
		.side = side, .id = build->subject->id, .owner = build->subject->owner,
		.is_kernel = frame->kind == FRAME_KIND_KERNEL,
		.name = frame->name, .file = frame->mapping->file,
	};

	/* once for a stack, however often the subject recurs: add() */
	return add(build, &key, !i, sample);
}

static int add_calls(struct build *build, const struct view_process *process,
		     const struct view_sample *sample)
{
	const struct live_subject *subject = build->subject;
	int err = 0;

	if (process->pid != subject->id || process->name != subject->owner)
		return 0;
	for (size_t i = 0; i < sample->frame_count && !err; i++) {
		const struct view_frame *frame = sample->frames[i];

		if (frame->name != subject->name || frame->mapping->file != subject->file ||
		    (frame->kind == FRAME_KIND_KERNEL) != subject->is_kernel)
			continue;
		err = add_side(build, LIVE_SUBJECT, sample, i);
		if (!err && i)
			err = add_side(build, LIVE_CALLEE, sample, i - 1);
		if (!err && i + 1 < sample->frame_count)
			err = add_side(build, LIVE_CALLER, sample, i + 1);
	}
	return err;
}

static void add_mode(struct live_table *table, const struct view_profile *profile,
		     const struct view_sample *sample)
{
	/* the idle tasks are called swapper/CPU and belong to no process */
	if (!profile->process.pid && !strncmp(sample->thread, "swapper/", 8))
		rows_sum(&table->idle, sample->weight);
	else if (sample->frames[0]->kind == FRAME_KIND_KERNEL)
		rows_sum(&table->kernel, sample->weight);
	else
		rows_sum(&table->user, sample->weight);
}

static bool has_process(const struct build *build, const struct view_process *process)
{
	return !build->selection ||
	       selection_has_process(build->selection, process->pid, process->name, process->container_id,
				     process->service_name, process->cgroup);
}

static bool is_selected(const struct build *build, const struct view_process *process,
			const struct view_sample *sample)
{
	return !build->selection || (has_process(build, process) &&
				     selection_has_thread(build->selection, sample->tid, sample->thread));
}

static int add_sample(void *ctx, const struct view_profile *profile,
		      const struct view_sample *sample)
{
	struct build *build = ctx;
	const struct view_process *process = &profile->process;
	const char *nothing = texts_intern(&build->table->texts, "");
	struct live_row key = { .owner = nothing, .name = nothing, .file = nothing };

	if (!nothing)
		return -E2BIG;
	if (!is_selected(build, process, sample))
		return 0;
	build->stamp++;
	rows_sum(&build->table->samples, sample->samples);
	rows_sum(&build->table->weight, sample->weight);
	add_mode(build->table, profile, sample);
	if (build->subject)
		return add_calls(build, process, sample);
	switch (build->group) {
	case LIVE_PROCESS:
		key.id = process->pid;
		key.owner = process->name;
		break;
	case LIVE_THREAD:
		key.id = sample->tid;
		key.owner = sample->thread;
		break;
	case LIVE_CONTAINER:
		key.owner = process->container_id;
		break;
	case LIVE_SERVICE:
		key.owner = process->service_name;
		break;
	case LIVE_CGROUP:
		key.owner = process->cgroup;
		break;
	default:
		return add_frames(build, process, sample, nothing);
	}
	return add(build, &key, true, sample);
}

static int add_profile(void *ctx, const struct view_profile *profile)
{
	const struct build *build = ctx;
	struct live_table *table = build->table;

	table->event = profile->event;
	table->unit = profile->unit;
	if (profile->fallback_errno)
		table->fallback_errno = profile->fallback_errno;
	/* losses belong to no process, and stand in any Profile */
	rows_sum(&table->lost, profile->quality.lost);
	if (has_process(build, &profile->process))
		rows_sum(&table->complete, profile->quality.complete);
	return 0;
}

/* What live_add() brought, to the list that only live_build() knows. */
static void take_incoming(struct live *live, uint64_t from, bool *ret_is_cut)
{
	struct live_list incoming;

	pthread_mutex_lock(&live->lock);
	incoming = live->incoming;
	list_init(&live->incoming);
	pthread_mutex_unlock(&live->lock);
	while (incoming.first) {
		struct live_message *message = incoming.first;

		incoming.first = message->next;
		list_append(&live->messages, message);
	}
	while (live->messages.first && live->messages.first->time < from)
		list_drop(&live->messages);
	pthread_mutex_lock(&live->lock);
	while (live->messages.bytes > live->max_bytes)
		live->cut = list_drop(&live->messages);
	*ret_is_cut = live->cut && live->cut >= from;
	pthread_mutex_unlock(&live->lock);
}

static int compare(uint64_t a, uint64_t b)
{
	return (a < b) - (a > b);
}

static int by_name(const struct live_row *a, const struct live_row *b)
{
	return strcmp(a->owner, b->owner) ?: strcmp(a->name, b->name) ?: strcmp(a->file, b->file) ?:
	       (a->id > b->id) - (a->id < b->id);
}

static int by_self(const void *first, const void *second)
{
	const struct live_row *a = first, *b = second;

	return compare(a->self, b->self) ?: compare(a->total, b->total) ?: by_name(a, b);
}

static int by_total_first(const void *first, const void *second)
{
	const struct live_row *a = first, *b = second;

	return compare(a->total, b->total) ?: compare(a->self, b->self) ?: by_name(a, b);
}

static int by_side(const void *first, const void *second)
{
	const struct live_row *a = first, *b = second;

	return (a->side > b->side) - (a->side < b->side) ?: by_total_first(a, b);
}

static int read_messages(struct live *live, struct reader *reader)
{
	int err = 0;

	for (struct live_message *m = live->messages.first; m && !err; m = m->next)
		err = reader_add(reader, m->data, m->size);
	return err;
}

int live_read(struct live *live, uint64_t from, struct reader *reader)
{
	bool is_cut;

	take_incoming(live, from, &is_cut);
	return read_messages(live, reader);
}

static void table_init(struct live_table *table)
{
	*table = (struct live_table){ 0 };
	texts_init(&table->texts);
	rows_init(&table->rows);
}

static int fill(struct live *live, uint64_t from, struct build *build,
		int (*order)(const void *, const void *))
{
	const struct reader_sink sink = { .ctx = build, .profile = add_profile,
					  .sample = add_sample };
	struct live_table *table = build->table;
	struct reader *reader;
	int err;

	build->selection = live->selection;
	table->has_complete = !live->selection || !live->selection->thread;
	take_incoming(live, from, &table->is_cut);
	err = reader_new(&table->texts, NULL, false, &sink, &reader);
	if (err)
		return err;
	err = read_messages(live, reader);
	table->start = reader_totals(reader)->start;
	table->end = reader_totals(reader)->end;
	reader_free(reader);
	if (!table->event)
		table->start = table->end = 0;
	/* positions are the index' no more: nothing is looked up from here on */
	if (!err && table->rows.count)
		qsort(table->rows.data.data, table->rows.count, sizeof(struct live_row), order);
	return err;
}

int live_build(struct live *live, uint64_t from, enum live_group group, bool by_total,
	       struct live_table *ret_table)
{
	struct build build = { .table = ret_table, .group = group };

	table_init(ret_table);
	return fill(live, from, &build, by_total ? by_total_first : by_self);
}

int live_build_calls(struct live *live, uint64_t from, const struct live_subject *subject,
		     struct live_table *ret_table)
{
	struct live_subject interned = *subject;
	struct build build = { .table = ret_table, .subject = &interned };

	table_init(ret_table);
	interned.owner = texts_intern(&ret_table->texts, subject->owner);
	interned.name = texts_intern(&ret_table->texts, subject->name);
	interned.file = texts_intern(&ret_table->texts, subject->file);
	if (!interned.owner || !interned.name || !interned.file)
		return -E2BIG;
	return fill(live, from, &build, by_side);
}

void live_table_free(struct live_table *table)
{
	rows_free(&table->rows);
	texts_free(&table->texts);
}
