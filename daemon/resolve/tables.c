// SPDX-License-Identifier: Apache-2.0
#include "resolve/tables.h"

#include <inttypes.h>
#include <string.h>
#include <sys/queue.h>

#include "base/clock.h"
#include "base/fair.h"
#include "base/hash.h"
#include "base/hash_table.h"
#include "base/log.h"
#include "base/pool.h"
#include "base/utf8.h"
#include "resolve/compiled.h"

#include <stacktap/unwind_table.h>

#define CREDIT_NS (30 * NSEC_PER_SEC)		/* for all files, saved up at most */
#define RETRY_NS (5 * NSEC_PER_SEC)		/* after a failure that may pass; doubled each time */
#define RETRY_LISTS_NS (30 * NSEC_PER_SEC)	/* between two times that lists are made for retries */
#define EVICTED_NS (30 * NSEC_PER_SEC)		/* until a table that was dropped may come back */
#define RECENT_NS (10 * NSEC_PER_SEC)		/* tables used so recently are not dropped */

enum {
	CREDIT_PART = 4,		/* of the time may go into compiling, in the long run */
	RETRY_DOUBLINGS = 7,
	ENTRIES_MAX = 16384,
	EVICT_PART = 8,			/* at least this part of what the session holds */
	HELD_MAX = 16384,		/* tables looked at for one that can go */
};

struct entry {
	struct hash_link link;
	TAILQ_ENTRY(entry) used;
	uint64_t dev, inode, size;
	int64_t ctime_ns;
	uint64_t table_id;		/* 0: none */
	uint64_t bytes, rows, loaded;
	uint64_t retry_at;		/* without a table: when to try again, 0: never */
	unsigned int failures;
	bool is_refused;		/* a table, for its size */
	bool is_unpaid;			/* who asked had no credit left; others may */
	TAILQ_ENTRY(entry) kept;
	void *data;			/* the table, NULL: not here */
	size_t size_kept;
	uint64_t walk;			/* the last walk that asked for it */
	uint64_t keep_at;		/* what did not stay here is not compiled for it again before */
	struct unwind_table view;
};

struct tables {
	struct tables_ops ops;
	struct hash_table entries;
	TAILQ_HEAD(used_list, entry) used;	/* least recently asked for first */
	TAILQ_HEAD(kept_list, entry) kept;	/* with bytes here, least recently used first */
	uint64_t walk;				/* counts walks; what this one uses stays */
	struct tables_stats stats;
	struct fair credit;			/* to compile in */
	uint32_t payer;				/* of the questions right now */
	uint64_t retry_at;		/* when the first entry is to be tried again, 0: none is */
	bool has_evicted;
};

int tables_new(const struct tables_ops *ops, struct tables **ret_tables)
{
	struct tables *tables = calloc(1, sizeof(*tables));

	if (!tables)
		return -ENOMEM;
	tables->ops = *ops;
	fair_init(&tables->credit, CREDIT_NS, CREDIT_PART, ops->now());
	hash_table_init(&tables->entries, POOL_TABLES);
	TAILQ_INIT(&tables->used);
	TAILQ_INIT(&tables->kept);
	tables->walk = 1;
	*ret_tables = tables;
	return 0;
}

const struct tables_stats *tables_stats(const struct tables *tables)
{
	return &tables->stats;
}

bool tables_want_lists(struct tables *tables)
{
	bool is_wanted = tables->has_evicted ||
			 (tables->retry_at && tables->ops.now() >= tables->retry_at);

	tables->has_evicted = false;
	if (is_wanted)
		tables->retry_at = 0;
	return is_wanted;
}

static void retry_later(struct tables *tables, struct entry *entry)
{
	uint64_t now = tables->ops.now(), lists = now + RETRY_LISTS_NS;

	entry->retry_at = now + (RETRY_NS << min_of(entry->failures, (unsigned int)RETRY_DOUBLINGS));
	lists = max_of(lists, entry->retry_at);
	tables->retry_at = tables->retry_at ? min_of(tables->retry_at, lists) : lists;
}

/*
 * Files can be made to take long. Who names, closes windows and unwinds what was deferred waits meanwhile, so only
 * part of the time is for this.
 */
static bool has_credit(struct tables *tables)
{
	return fair_may(&tables->credit, tables->payer, tables->ops.now());
}

/* Else questions are not asked, whatever they are. */
static bool has_time(const struct tables *tables)
{
	return !tables->ops.parser || parser_has_time(tables->ops.parser);
}

void tables_pay(struct tables *tables, uint32_t payer)
{
	tables->payer = payer;
}

static uint64_t hash_of(const struct object *object)
{
	const uint64_t words[] = { object->dev, object->inode, (uint64_t)object->ctime_ns,
				   object->size };

	return hash_words(words, ARRAY_SIZE(words));
}

static struct entry *find(const struct tables *tables, const struct object *object)
{
	struct index_probe probe = hash_table_first(&tables->entries, hash_of(object));
	struct hash_link *link;

	while ((link = hash_table_next(&tables->entries, &probe))) {
		struct entry *entry = container_of(link, struct entry, link);

		if (entry->dev == object->dev && entry->inode == object->inode &&
		    entry->ctime_ns == object->ctime_ns && entry->size == object->size)
			return entry;
	}
	return NULL;
}

/* Another entry may stand for the same bytes: the module keeps those once. */
static bool is_shared(const struct tables *tables, const struct entry *entry)
{
	const struct entry *other;

	TAILQ_FOREACH(other, &tables->used, used)
		if (other != entry && other->table_id == entry->table_id)
			return true;
	return false;
}

/* The entry no longer stands for a table; the module's is its caller's business. */
static void detach(struct tables *tables, struct entry *entry)
{
	if (!entry->table_id)
		return;
	if (!is_shared(tables, entry)) {
		tables->stats.tables--;
		tables->stats.rows -= entry->rows;
		tables->stats.bytes -= entry->bytes;
	}
	entry->table_id = 0;
}

static void unkeep(struct tables *tables, struct entry *entry)
{
	if (!entry->data)
		return;
	TAILQ_REMOVE(&tables->kept, entry, kept);
	tables->stats.kept--;
	tables->stats.kept_bytes -= entry->size_kept;
	pool_uncharge(POOL_TABLES, entry->size_kept);
	free(entry->data);
	entry->data = NULL;
}

static bool is_in_use(const struct tables *tables, const struct entry *entry)
{
	return entry->data && entry->walk == tables->walk;
}

/* Give up kept tables until there is room for @bytes more of them. */
static bool unkeep_until(struct tables *tables, size_t bytes)
{
	struct entry *entry = TAILQ_FIRST(&tables->kept), *next;

	for (; entry && tables->stats.kept_bytes + bytes > tables->ops.keep_bytes; entry = next) {
		next = TAILQ_NEXT(entry, kept);
		if (!is_in_use(tables, entry))
			unkeep(tables, entry);
	}
	return tables->stats.kept_bytes + bytes <= tables->ops.keep_bytes;
}

/* It has a table now, or nobody asks for one any more. */
static void admit(struct tables *tables, struct entry *entry)
{
	tables->stats.refused_files -= entry->is_refused;
	entry->is_refused = false;
	if (!tables->stats.refused_files)
		tables->stats.last_refused[0] = '\0';
}

static void remove_entry(struct tables *tables, struct entry *entry)
{
	admit(tables, entry);
	detach(tables, entry);
	unkeep(tables, entry);
	TAILQ_REMOVE(&tables->used, entry, used);
	hash_table_remove(&tables->entries, &entry->link);
	pool_uncharge(POOL_TABLES, sizeof(*entry));
	free(entry);
}

void tables_free(struct tables *tables)
{
	struct entry *entry;

	if (!tables)
		return;
	while ((entry = TAILQ_FIRST(&tables->used)))
		remove_entry(tables, entry);
	hash_table_done(&tables->entries);
	free(tables);
}

static void drop(struct tables *tables, uint64_t id)
{
	struct stacktap_table_drop request = { .size = sizeof(request), .table_id = id };
	struct entry *entry;
	int r;

	r = tables->ops.request(tables->ops.ctx, STACKTAP_IOC_TABLE_DROP, &request);
	if (r < 0)
		log_debug("table %" PRIu64 " cannot be dropped: %s", id, strerror(-r));
	TAILQ_FOREACH(entry, &tables->used, used) {
		if (entry->table_id != id)
			continue;
		detach(tables, entry);
		entry->retry_at = tables->ops.now() + EVICTED_NS;
	}
	tables->stats.evicted++;
	tables->has_evicted = true;
}

/* The entry that nobody has asked for the longest; false: all are in use. */
static bool forget_oldest(struct tables *tables)
{
	struct entry *entry = TAILQ_FIRST(&tables->used);

	while (entry && is_in_use(tables, entry))
		entry = TAILQ_NEXT(entry, used);
	if (!entry)
		return false;
	if (entry->table_id)
		drop(tables, entry->table_id);
	remove_entry(tables, entry);
	return true;
}

static struct entry *add(struct tables *tables, const struct object *object)
{
	size_t limit = ENTRIES_MAX;
	struct entry *entry;
	int r;

	/* many at once: all lists are made anew after it */
	if (tables->entries.count >= ENTRIES_MAX)
		limit -= ENTRIES_MAX / EVICT_PART;
	while (tables->entries.count >= limit || !pool_charge(POOL_TABLES, sizeof(*entry)))
		if (!forget_oldest(tables))
			return NULL;
	entry = calloc(1, sizeof(*entry));
	do
		r = entry ? hash_table_add(&tables->entries, &entry->link, hash_of(object)) : -ENOMEM;
	while (r == -ENOBUFS && forget_oldest(tables));
	if (r < 0) {
		free(entry);
		pool_uncharge(POOL_TABLES, sizeof(*entry));
		return NULL;
	}
	entry->dev = object->dev;
	entry->inode = object->inode;
	entry->ctime_ns = object->ctime_ns;
	entry->size = object->size;
	TAILQ_INSERT_TAIL(&tables->used, entry, used);
	return entry;
}

struct held {
	uint64_t id, bytes, hit;
};

struct held_list {
	const struct tables *tables;
	struct held *items;
	size_t count, capacity;
};

static int add_held(void *ctx, uint64_t id, uint64_t bytes, uint64_t hit)
{
	struct held_list *list = ctx;
	const struct entry *entry;
	struct held *items;

	TAILQ_FOREACH(entry, &list->tables->used, used)
		if (entry->table_id == id)
			hit = max_of(hit, entry->loaded);
	if (list->count == HELD_MAX || hit + RECENT_NS > list->tables->ops.now())
		return 0;
	if (list->count == list->capacity) {
		size_t capacity = list->capacity ? 2 * list->capacity : 64;

		items = reallocarray(list->items, capacity, sizeof(*items));
		if (!items)
			return -ENOMEM;
		list->items = items;
		list->capacity = capacity;
	}
	list->items[list->count++] = (struct held){ .id = id, .bytes = bytes, .hit = hit };
	return 0;
}

static int compare_hits(const void *a, const void *b)
{
	const struct held *x = a, *y = b;

	return (x->hit > y->hit) - (x->hit < y->hit);
}

bool tables_evict(struct tables *tables, uint64_t bytes)
{
	struct held_list list = { .tables = tables };
	uint64_t freed = 0;
	int r;

	r = tables->ops.each_table(tables->ops.ctx, add_held, &list);
	if (r < 0)
		log_debug("cannot list the module's tables: %s", strerror(-r));
	if (list.count)
		qsort(list.items, list.count, sizeof(*list.items), compare_hits);
	bytes = max_of(bytes, tables->stats.bytes / EVICT_PART);
	for (size_t i = 0; i < list.count && freed < bytes; i++) {
		drop(tables, list.items[i].id);
		freed += list.items[i].bytes;
	}
	free(list.items);
	return freed > 0;
}

void tables_forget(struct tables *tables, uint64_t id)
{
	struct entry *entry, *next;

	for (entry = TAILQ_FIRST(&tables->used); entry; entry = next) {
		next = TAILQ_NEXT(entry, used);
		if (entry->table_id == id)
			remove_entry(tables, entry);
	}
}

static void let_go(struct compiled *compiled)
{
	if (!compiled->data)
		return;
	pool_uncharge(POOL_TABLES, compiled->bytes);
	compiled_free(compiled);
}

/* For a table on its way to the module kept ones give way: the pool's limit holds for it as well. */
static int charge_passing(struct tables *tables, size_t bytes)
{
	struct entry *entry, *next;

	if (bytes > pool_get(POOL_TABLES)->limit)
		return -EFBIG;
	for (entry = TAILQ_FIRST(&tables->kept); !pool_charge(POOL_TABLES, bytes); entry = next) {
		while (entry && is_in_use(tables, entry))
			entry = TAILQ_NEXT(entry, kept);
		if (!entry)
			return -ENOBUFS;
		next = TAILQ_NEXT(entry, kept);
		unkeep(tables, entry);
	}
	return 0;
}

static uint64_t starved_ns(const struct tables *tables)
{
	return tables->ops.parser ? parser_starved_ns(tables->ops.parser) : 0;
}

static int compile(struct tables *tables, struct object *object, uint32_t tgid,
		   struct compiled *ret_compiled)
{
	const uint64_t began = tables->ops.now(), starved = starved_ns(tables);
	struct unwind_table table;
	uint64_t now;
	int r;

	r = compiled_make(&tables->ops, object, tgid, ret_compiled);
	now = tables->ops.now();
	tables->stats.compile_ns += now - began;
	fair_spend(&tables->credit, tables->payer, began, now, starved_ns(tables) - starved);
	if (r)
		return r;
	r = charge_passing(tables, ret_compiled->bytes);
	if (r < 0) {
		compiled_free(ret_compiled);
		return r;
	}
	r = unwind_table_check(ret_compiled->data, ret_compiled->bytes, &table);
	if (r < 0) {
		let_go(ret_compiled);
		return r;
	}
	ret_compiled->rows = table.row_count;
	return 0;
}

/* The end of a compilation: its bytes stay here, or go. */
static void keep(struct tables *tables, struct entry *entry, struct compiled *compiled)
{
	const size_t bytes = compiled->bytes;
	void *data = NULL;

	if (!entry->data && bytes <= tables->ops.keep_bytes && unkeep_until(tables, bytes) &&
	    pool_charge(POOL_TABLES, bytes)) {
		data = malloc(bytes);
		if (data)
			memcpy(data, compiled->data, bytes);
		if (data && unwind_table_check(data, bytes, &entry->view) == 0) {
			entry->data = data;
			entry->size_kept = bytes;
			TAILQ_INSERT_TAIL(&tables->kept, entry, kept);
			tables->stats.kept++;
			tables->stats.kept_bytes += bytes;
		} else {
			free(data);
			pool_uncharge(POOL_TABLES, bytes);
		}
	}
	let_go(compiled);
}

static int load(struct tables *tables, struct entry *entry, const struct compiled *compiled)
{
	struct stacktap_table_load request = {
		.size = sizeof(request),
		.data = (uintptr_t)compiled->data,
		.data_bytes = compiled->bytes,
	};
	int r;

	r = tables->ops.request(tables->ops.ctx, STACKTAP_IOC_TABLE_LOAD, &request);
	if (r < 0)
		return r;
	if (!request.table_id)
		return -EPROTO;
	entry->table_id = request.table_id;
	entry->bytes = compiled->bytes;
	entry->rows = compiled->rows;
	entry->loaded = tables->ops.now();
	admit(tables, entry);
	if (!is_shared(tables, entry)) {
		tables->stats.tables++;
		tables->stats.rows += entry->rows;
		tables->stats.bytes += entry->bytes;
	}
	return 0;
}

static bool is_full(int error)
{
	return error == -ENOSPC || error == -EDQUOT || error == -ENOMEM;
}

/* Not of the file's own making. */
static bool may_pass(int error)
{
	static const int errors[] = { ENOENT, ESTALE, ESRCH, EMFILE, ENFILE, ENOMEM, ENOBUFS, ETIME, EIO, EINTR,
				      EDQUOT, EAGAIN, EPIPE, ETIMEDOUT };

	for (size_t i = 0; i < ARRAY_SIZE(errors); i++)
		if (error == -errors[i])
			return true;
	return false;
}

/* A path is whatever somebody calls a file, and this ends up on terminals. */
static void describe(char text[static 256], const struct object *object, const char *reason)
{
	char path[160];

	utf8_copy(path, sizeof(path), object->path);
	snprintf(text, 256, "%s: %s", path, reason);
}

static void refuse(struct tables *tables, struct entry *entry, const struct object *object,
		   const char *reason)
{
	tables->stats.refused_files += !entry->is_refused;
	entry->is_refused = true;
	describe(tables->stats.last_refused, object, reason);
}

static void see_failed(struct tables *tables, struct entry *entry, const struct object *object, int error)
{
	const char *reason = error == -ENODATA ? "no unwind information" :
			     error == -ETIME ? "compiling took too long" :
			     error == -EFBIG ? "the table is too large" :
			     error == -ENOMEM ? "compiling took too much memory" :
			     error == -EAGAIN ? "the parser or the opener cannot be started, or this host is so busy that it has no CPU" :
			     error == -ENOBUFS ? "no room for the table, see pool tables" : strerror(-error);

	log_debug("%s: no unwind table: %s", object->path, strerror(-error));
	tables->stats.failed++;
	describe(tables->stats.last_failed, object, reason);
	if (error == -ETIME || error == -EFBIG || error == -ENOMEM || error == -ENOBUFS)
		refuse(tables, entry, object, reason);
}

static void see_refused(struct tables *tables, struct entry *entry, const struct object *object,
			size_t bytes, int error)
{
	char reason[80];

	log_debug("%s: table of %zu bytes refused: %s", object->path, bytes, strerror(-error));
	tables->stats.refused++;
	snprintf(reason, sizeof(reason), "the module has no room for its %zu bytes", bytes);
	refuse(tables, entry, object, reason);
}

static void make(struct tables *tables, struct object *object, uint32_t tgid, struct entry *entry)
{
	struct compiled compiled = { 0 };
	int r;

	entry->retry_at = 0;
	entry->is_unpaid = !has_credit(tables);
	r = entry->is_unpaid ? COMPILED_LATER : compile(tables, object, tgid, &compiled);
	/* nobody has time for it just now: that says nothing of the file */
	entry->is_unpaid |= r == COMPILED_LATER || (r == -ETIME && !has_time(tables));
	if (entry->is_unpaid) {
		tables->stats.deferred++;
		retry_later(tables, entry);
		return;
	}
	if (r < 0) {
		see_failed(tables, entry, object, r);
		/* a file that is out of reach now may be in another process' */
		if (may_pass(r)) {
			retry_later(tables, entry);
			entry->failures++;
		}
		return;
	}
	entry->failures = 0;
	tables->stats.compiled++;
	r = load(tables, entry, &compiled);
	/* this entry has no table yet, so it stays whatever goes */
	if (is_full(r) && r != -ENOMEM && tables_evict(tables, compiled.bytes))
		r = load(tables, entry, &compiled);
	if (r < 0) {
		see_refused(tables, entry, object, compiled.bytes, r);
		if (is_full(r))
			retry_later(tables, entry);
	}
	keep(tables, entry, &compiled);
}

/* NULL: the object is not known to be an ELF file, or there is no room for it here. */
static struct entry *get(struct tables *tables, struct object *object, uint32_t tgid)
{
	struct entry *entry;

	if (atomic_load_explicit(&object->state, memory_order_acquire) != OBJECT_READY)
		return NULL;
	entry = find(tables, object);
	if (entry) {
		TAILQ_REMOVE(&tables->used, entry, used);
		TAILQ_INSERT_TAIL(&tables->used, entry, used);
		if (entry->table_id || !entry->retry_at ||
		    (tables->ops.now() < entry->retry_at &&
		     !(entry->is_unpaid && has_credit(tables))))
			return entry;
	} else {
		entry = add(tables, object);
		if (!entry)
			return NULL;
	}
	make(tables, object, tgid, entry);
	return entry;
}

uint64_t tables_get(struct tables *tables, struct object *object, uint32_t tgid)
{
	const struct entry *entry = get(tables, object, tgid);

	return entry ? entry->table_id : 0;
}

const struct unwind_table *tables_view(struct tables *tables, struct object *object, uint32_t tgid)
{
	struct compiled compiled = { 0 };
	struct entry *entry = get(tables, object, tgid);

	if (!entry)
		return NULL;
	/* the module has it, we do not any more */
	if (!entry->data && entry->table_id && tables->ops.now() >= entry->keep_at &&
	    has_credit(tables) && entry->bytes <= tables->ops.keep_bytes) {
		entry->keep_at = tables->ops.now() + RETRY_NS;
		if (compile(tables, object, tgid, &compiled) == 0)
			keep(tables, entry, &compiled);
	}
	if (!entry->data)
		return NULL;
	TAILQ_REMOVE(&tables->kept, entry, kept);
	TAILQ_INSERT_TAIL(&tables->kept, entry, kept);
	entry->walk = tables->walk;
	return &entry->view;
}

void tables_walk_done(struct tables *tables)
{
	tables->walk++;
}
