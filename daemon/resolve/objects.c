// SPDX-License-Identifier: Apache-2.0
#include "resolve/objects.h"

#include <string.h>
#include <sys/sysmacros.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "resolve/fetched.h"
#include "symbol/vdso.h"

enum {
	RETIRED_MAX = 1024,	/* objects of files that were found after all */
	SAVED_BYTES = 4 * 1024 * 1024, /* a file this small is read before it becomes unreachable */
};

/* object->symbols points here */
struct entry {
	struct hash_link link;
	struct object *object;		/* owned, as long as the entry lives */
	struct mount_namespace *space;	/* owned: where it was found; NULL: anywhere */
	int fd;				/* -1: closed */
	uint64_t fd_used;
	struct symtab *symtab;		/* NULL: not read, or evicted */
	uint64_t used;
	int error;			/* why there is no symtab: not tried again */
	uint64_t seek_debug_at;		/* CLOCK_MONOTONIC ns; UINT64_MAX: never again */
	struct object *debug;		/* owned: its debug file, or NULL */
	struct symtab *mini;		/* of its MiniDebugInfo; NULL: not read, or evicted */
	int mini_error;			/* not tried again */
};

struct objects {
	struct mount_namespace_table *spaces;
	struct names *names;
	struct opener *opener;
	struct parser *parser;
	struct fetched *fetched;	/* NULL: no server is asked */
	struct hash_table table;	/* entries by identity */
	struct entry **entries;
	size_t count, capacity, fd_count;
	struct entry *vdso;
	const struct entry *busy;	/* its tables are looked at, and its debug file's */
	/*
	 * Thread A may look at the state of a file's object at any time, so one that was replaced
	 * is kept.
	 */
	struct object *retired[RETIRED_MAX];
	size_t retired_count;
	struct objects_stats stats;
};

static bool make_room(void *ctx, size_t bytes)
{
	return objects_make_room(ctx, bytes);
}

static bool is_busy(const struct objects *objects, const struct entry *entry)
{
	return objects->busy && (entry == objects->busy || entry->object == objects->busy->debug);
}

static uint64_t hash_identity(const struct stat *st)
{
	const uint64_t words[] = { st->st_dev, st->st_ino, (uint64_t)st->st_ctim.tv_sec,
				   (uint64_t)st->st_ctim.tv_nsec, (uint64_t)st->st_size };

	return hash_words(words, ARRAY_SIZE(words));
}

static struct entry *find(struct objects *objects, const struct stat *st)
{
	struct hash_link *link = hash_table_first(&objects->table, hash_identity(st));

	for (; link; link = hash_table_next(link)) {
		struct entry *entry = container_of(link, struct entry, link);

		if (object_is_file(entry->object, st))
			return entry;
	}
	return NULL;
}

static void close_fd(struct objects *objects, struct entry *entry)
{
	if (entry->fd < 0)
		return;
	close(entry->fd);
	entry->fd = -1;
	objects->fd_count--;
}

static void drop_symtab(struct entry *entry)
{
	symtab_free(entry->symtab);
	symtab_free(entry->mini);
	entry->symtab = entry->mini = NULL;
}

static void free_entry(struct objects *objects, struct entry *entry)
{
	close_fd(objects, entry);
	drop_symtab(entry);
	mount_namespace_unref(entry->space);
	if (objects->busy == entry)
		objects->busy = NULL;
	object_unref(entry->debug);
	entry->object->symbols = NULL;
	object_unref(entry->object);
	pool_uncharge(POOL_SYMBOLS, sizeof(*entry));
	free(entry);
}

static int read_symtab(struct objects *objects, struct entry *entry)
{
	const struct symtab_reclaim reclaim = { .make_room = make_room, .ctx = objects };
	int r = parser_symtab(objects->parser, entry->object, entry->fd, &reclaim, &entry->symtab);

	entry->error = objects_may_pass(r) ? 0 : r;
	if (r < 0)
		log_debug("%s: no symbols: %s", entry->object->path, strerror(-r));
	return r;
}

/*
 * A deleted file cannot be opened again by its path when its symbols are asked for. A small one's
 * are read now, as their names then are kept as well.
 */
static void save_and_close(struct objects *objects, struct entry *entry)
{
	if (!entry->symtab && !entry->error && entry->object->size <= SAVED_BYTES &&
	    atomic_load_explicit(&entry->object->state, memory_order_relaxed) == OBJECT_READY &&
	    opener_is_deleted(objects->opener, entry->object->dev, entry->fd))
		read_symtab(objects, entry);
	close_fd(objects, entry);
}

static void close_oldest_fd(struct objects *objects)
{
	struct entry *oldest = NULL;

	for (size_t i = 0; i < objects->count; i++) {
		struct entry *entry = objects->entries[i];

		if (entry->fd >= 0 && (!oldest || entry->fd_used < oldest->fd_used))
			oldest = entry;
	}
	if (oldest)
		save_and_close(objects, oldest);
}

static void keep_fd(struct objects *objects, struct entry *entry, int *fd)
{
	close_fd(objects, entry);
	if (objects->fd_count >= OBJECTS_FDS_MAX)
		close_oldest_fd(objects);
	entry->fd = steal_fd(fd);
	entry->fd_used = clock_monotonic();
	objects->fd_count++;
}

/* Only the cache holds it, and nobody can get a reference but through the cache. */
static bool is_unused(const struct entry *entry)
{
	return atomic_load_explicit(&entry->object->refs, memory_order_acquire) == 1;
}

static void forget_unused(struct objects *objects, uint64_t idle_ns)
{
	uint64_t now = clock_monotonic();

	for (size_t i = 0; i < objects->count;) {
		struct entry *entry = objects->entries[i];

		if (entry == objects->vdso || !is_unused(entry) || now - entry->used < idle_ns) {
			i++;
			continue;
		}
		hash_table_remove(&objects->table, &entry->link);
		objects->entries[i] = objects->entries[--objects->count];
		free_entry(objects, entry);
		objects->stats.evicted++;
	}
}

static int reserve(struct objects *objects)
{
	size_t capacity = objects->capacity ? objects->capacity * 2 : 64;
	struct entry **entries;

	if (objects->count == OBJECTS_MAX)
		forget_unused(objects, 0);
	if (objects->count == OBJECTS_MAX)
		return -ENOBUFS;
	if (objects->count < objects->capacity)
		return 0;
	if (!pool_charge(POOL_SYMBOLS, (capacity - objects->capacity) * sizeof(*entries)))
		return -ENOBUFS;
	entries = realloc(objects->entries, capacity * sizeof(*entries));
	if (!entries) {
		pool_uncharge(POOL_SYMBOLS, (capacity - objects->capacity) * sizeof(*entries));
		return -ENOMEM;
	}
	objects->entries = entries;
	objects->capacity = capacity;
	return 0;
}

/* An entry for an object, whose reference it takes over on success. */
static int add_entry(struct objects *objects, struct object *object, uint64_t hash,
		     struct entry **ret_entry)
{
	struct entry *entry;
	int r;

	r = reserve(objects);
	if (r < 0)
		return r;
	if (!pool_charge(POOL_SYMBOLS, sizeof(*entry)))
		return -ENOBUFS;
	entry = calloc(1, sizeof(*entry));
	r = entry ? hash_table_add(&objects->table, &entry->link, hash) : -ENOMEM;
	if (r < 0) {
		pool_uncharge(POOL_SYMBOLS, sizeof(*entry));
		free(entry);
		return r;
	}
	entry->object = object;
	entry->fd = -1;
	entry->used = clock_monotonic();
	object->symbols = entry;
	objects->entries[objects->count++] = entry;
	*ret_entry = entry;
	return 0;
}

static struct object *new_object(struct objects *objects, enum object_kind kind, const char *path)
{
	struct object *object = object_new(kind, path);

	if (!object) {
		forget_unused(objects, 0);
		object = object_new(kind, path);
	}
	return object;
}

static int add_file(struct objects *objects, const char *path, int fd, const struct stat *st,
		    bool is_debug, struct entry **ret_entry)
{
	struct object *object = new_object(objects, OBJECT_FILE, path);
	int r;

	if (!object)
		return -ENOMEM;
	object_set_file(object, st);
	r = parser_facts(objects->parser, object, fd);
	if (r < 0 && !objects_may_pass(r)) {
		log_debug("%s: not read: %s", path, strerror(-r));
		atomic_store_explicit(&object->state, OBJECT_NOT_ELF, memory_order_release);
		r = 0;
	}
	if (r == 0)
		r = add_entry(objects, object, hash_identity(st), ret_entry);
	if (r < 0) {
		object_unref(object);
		return r;
	}
	if (is_debug) {
		objects->stats.debug_files++;
		return 0;
	}
	objects->stats.objects++;
	objects->stats.not_elf +=
		atomic_load_explicit(&object->state, memory_order_relaxed) == OBJECT_NOT_ELF;
	return 0;
}

/* The file's object is written once, but for one that was gone and is found after all. */
static void publish(struct objects *objects, struct mapped_file *file, struct object *object)
{
	struct object *old = mapped_file_object(file);

	if (old)
		objects->retired[objects->retired_count++] = old;
	atomic_store_explicit(&file->object, object_ref(object), memory_order_release);
}

static void see_gone(struct objects *objects, struct mapped_file *file, int error)
{
	struct object *object;

	if (mapped_file_object(file))
		return;
	object = new_object(objects, file->kind, file->path);
	if (!object)
		return;
	log_debug("%s: cannot be opened: %s", file->path, strerror(-error));
	object->error = error;
	atomic_store_explicit(&object->state, OBJECT_GONE, memory_order_release);
	publish(objects, file, object);
	object_unref(object);
	objects->stats.gone++;
}

static void see_vdso(struct objects *objects, struct mapped_file *file)
{
	struct object *object;
	struct symtab *symtab;
	int r;

	if (mapped_file_object(file))
		return;
	if (!objects->vdso) {
		r = vdso_read(&object, &symtab);
		if (r < 0) {
			see_gone(objects, file, r);
			return;
		}
		r = add_entry(objects, object, 0, &objects->vdso);
		if (r < 0) {
			symtab_free(symtab);
			object_unref(object);
			return;
		}
		objects->vdso->symtab = symtab;
	}
	publish(objects, file, objects->vdso->object);
}

void objects_see(struct objects *objects, const struct image *image, struct mapped_file *file)
{
	const struct opener_wanted wanted = {
		.major = file->major,
		.minor = file->minor,
		.inode = file->inode,
		.path = file->path,
	};
	const struct object *known = mapped_file_object(file);
	_cleanup_close_ int fd = -1;
	struct entry *entry;
	struct stat st;
	int r;

	if (known && (atomic_load_explicit(&known->state, memory_order_relaxed) != OBJECT_GONE ||
		      objects->retired_count == RETIRED_MAX))
		return;
	if (file->kind == OBJECT_VDSO) {
		see_vdso(objects, file);
		return;
	}
	if (file->kind != OBJECT_FILE)
		return;
	r = opener_open(objects->opener, objects->spaces, image->mount_namespace, image->tgid, &wanted, &fd,
			&st);
	/* there is no opener right now: nothing is known of the file */
	if (r == -EAGAIN || r == -EPIPE)
		return;
	if (r < 0) {
		see_gone(objects, file, r);
		return;
	}
	entry = find(objects, &st);
	if (!entry && add_file(objects, file->path, fd, &st, false, &entry) < 0)
		return;
	entry->used = clock_monotonic();
	/* the newest place is the likeliest to last */
	if (image->mount_namespace && entry->space != image->mount_namespace) {
		mount_namespace_unref(entry->space);
		entry->space = mount_namespace_ref(image->mount_namespace);
	}
	if (entry->fd < 0)
		keep_fd(objects, entry, &fd);
	entry->fd_used = entry->used;
	publish(objects, file, entry->object);
}

/* Links come and go and change the ctime; the content is the same if its ends are. */
static int check_content(struct objects *objects, const struct object *object, int fd,
			 const struct stat *st)
{
	if (object_is_file(object, st))
		return 0;
	if (object->inode != st->st_ino || object->dev != st->st_dev ||
	    object->size != (uint64_t)st->st_size)
		return -ESTALE;
	return parser_is_same(objects->parser, object, fd);
}

static int reopen(struct objects *objects, struct entry *entry, uint32_t tgid)
{
	/* the device is what stat() said, so it is compared in check_content() */
	const struct opener_wanted wanted = {
		.inode = entry->object->inode,
		.path = entry->object->path,
	};
	_cleanup_close_ int fd = -1;
	struct stat st;
	int r;

	r = opener_open(objects->opener, objects->spaces, entry->space, tgid, &wanted, &fd, &st);
	if (r < 0)
		return r;
	r = check_content(objects, entry->object, fd, &st);
	if (r < 0)
		return r;
	keep_fd(objects, entry, &fd);
	return 0;
}

/* Its symtab, and its descriptor if names are read from that. */
static int have_symtab(struct objects *objects, struct entry *entry, uint32_t tgid)
{
	int r;

	if (entry->error)
		return entry->error;
	entry->used = entry->fd_used = clock_monotonic();
	if (entry->fd < 0 && !(entry->symtab && (entry->symtab->names || !entry->symtab->count))) {
		r = reopen(objects, entry, tgid);
		/* PLT entries have their names at hand, and so has a table that was read before */
		if (r < 0 && !entry->symtab)
			return r;
	}
	if (!entry->symtab) {
		r = read_symtab(objects, entry);
		if (r < 0)
			return r;
	}
	entry->fd_used = entry->used;
	return 0;
}

/* @fd if its build-id is the object's. -ENOENT: it is none. */
static int take_debug(struct objects *objects, const struct object *object,
		      struct mount_namespace *space, const char *path, int *fd, const struct stat *st,
		      struct entry **ret_entry)
{
	struct entry *entry = find(objects, st);
	int r = entry ? 0 : add_file(objects, path, *fd, st, true, &entry);

	if (!entry)
		return r;
	if (entry->object == object || strcmp(entry->object->build_id, object->build_id))
		return -ENOENT;
	/* it needs none itself, and two that have each other would never be forgotten */
	entry->seek_debug_at = UINT64_MAX;
	if (!entry->space && !space->is_guess)
		entry->space = mount_namespace_ref(space);
	keep_fd(objects, entry, fd);
	*ret_entry = entry;
	return 0;
}

/* A file by that name below @space's root. -ENOENT: there is none. */
static int open_debug(struct objects *objects, const struct object *object,
		      struct mount_namespace *space, struct entry **ret_entry)
{
	_cleanup_close_ int fd = -1;
	struct stat st;
	char path[128];
	int r;

	snprintf(path, sizeof(path), "/usr/lib/debug/.build-id/%.2s/%s.debug", object->build_id,
		 object->build_id + 2);
	r = opener_open_path(objects->opener, objects->spaces, space, path, &fd, &st);
	return r < 0 ? r : take_debug(objects, object, space, path, &fd, &st, ret_entry);
}

/* -EAGAIN: the server has not answered yet. */
static int open_fetched(struct objects *objects, const struct object *object,
			struct mount_namespace *space, struct entry **ret_entry)
{
	_cleanup_close_ int fd = -1;
	char path[PATH_MAX];
	struct stat st;
	int r = fetched_open(objects->fetched, object->build_id, &fd, &st, path);

	if (r < 0)
		return r;
	r = take_debug(objects, object, space, path, &fd, &st, ret_entry);
	if (r == -ENOENT)
		fetched_forget(objects->fetched, object->build_id);
	return r;
}

/*
 * Is the file in the file system that is the root of its container alone? Others may map files of a disk, or what is
 * mounted into several containers, and a debug file of one could tell lies about their frames.
 */
static bool is_in_container(const struct objects *objects, const struct entry *entry)
{
	return entry->space && !entry->space->is_guess && !major(entry->object->dev) &&
	       entry->object->dev == entry->space->root_dev &&
	       entry->object->dev != mount_namespace_table_host(objects->spaces);
}

/* The host's debug files first. What may pass is asked for again: an errno. */
static int seek_debug(struct objects *objects, struct entry *entry)
{
	struct mount_namespace *host = mount_namespace_table_guess(objects->spaces);
	struct entry *found = NULL;
	int r;

	r = open_debug(objects, entry->object, host, &found);
	if (r < 0 && !objects_may_pass(r) && is_in_container(objects, entry))
		r = open_debug(objects, entry->object, entry->space, &found);
	if (r < 0 && !objects_may_pass(r) && objects->fetched)
		r = open_fetched(objects, entry->object, host, &found);
	mount_namespace_unref(host);
	if (r < 0 && objects_may_pass(r))
		return r;
	entry->seek_debug_at = r < 0 && objects->fetched ? clock_monotonic() + FETCHED_AGAIN_NS :
							   UINT64_MAX;
	if (found && r == 0)
		entry->debug = object_ref(found->object);
	return 0;
}

static int read_mini(struct objects *objects, struct entry *entry, uint32_t tgid)
{
	const struct symtab_reclaim reclaim = { .make_room = make_room, .ctx = objects };
	int r = 0;

	if (entry->mini || entry->mini_error)
		return 0;
	if (entry->fd < 0)
		r = reopen(objects, entry, tgid);
	if (r == 0)
		r = parser_mini_symtab(objects->parser, entry->object, entry->fd, &reclaim,
				       &entry->mini);
	entry->mini_error = objects_may_pass(r) ? 0 : r;
	return r;
}

/* What names a stripped file's functions beside its own table. */
static int find_others(struct objects *objects, struct entry *entry, uint32_t tgid,
		       struct object_symbols *ret_debug)
{
	struct entry *debug;
	int r, later = 0;

	if (entry->seek_debug_at <= clock_monotonic() && entry->object->build_id[0])
		later = seek_debug(objects, entry);
	debug = entry->debug ? entry->debug->symbols : NULL;
	r = debug ? have_symtab(objects, debug, 0) : -ENOENT;
	/* it has made room for others */
	if (debug && objects->fetched && (r == -ENOENT || r == -ESTALE)) {
		object_unref(steal_ptr(entry->debug));
		entry->seek_debug_at = 0;
		later = -EAGAIN;
	}
	if (r == 0 && debug->symtab->count) {
		*ret_debug = (struct object_symbols){ debug->symtab, debug->fd, debug->object };
		return 0;
	}
	if (r < 0 && objects_may_pass(r))
		return r;
	r = read_mini(objects, entry, tgid);
	ret_debug->symtab = entry->mini;
	return later ?: r;
}

int objects_symbols(struct objects *objects, struct object *object, uint32_t tgid,
		    struct object_symbols *ret_own, struct object_symbols *ret_debug)
{
	struct entry *entry = object->symbols;
	int r;

	*ret_debug = (struct object_symbols){ .fd = -1 };
	objects->busy = NULL;
	if (!entry ||
	    atomic_load_explicit(&object->state, memory_order_relaxed) != OBJECT_READY)
		return -ENODATA;
	/* neither table goes, and neither descriptor, while room is made for the other */
	objects->busy = entry;
	r = have_symtab(objects, entry, tgid);
	if (r < 0)
		return r;
	*ret_own = (struct object_symbols){ entry->symtab, entry->fd, entry->object };
	if (!symtab_is_stripped(entry->symtab))
		return 0;
	r = find_others(objects, entry, tgid, ret_debug);
	ret_own->fd = entry->fd;
	return r < 0 && objects_may_pass(r) ? OBJECTS_MORE_LATER : 0;
}

void objects_release(struct objects *objects)
{
	objects->busy = NULL;
}

int objects_fd(struct objects *objects, struct object *object, uint32_t tgid, int *ret_fd)
{
	struct entry *entry = object->symbols;
	int r;

	if (!entry || object->kind != OBJECT_FILE)
		return -ENODATA;
	entry->used = clock_monotonic();
	if (entry->fd < 0) {
		r = reopen(objects, entry, tgid);
		if (r < 0)
			return r;
	}
	entry->fd_used = entry->used;
	*ret_fd = entry->fd;
	return 0;
}

bool objects_make_room(struct objects *objects, size_t bytes)
{
	size_t freed = 0;

	while (freed < bytes) {
		struct entry *oldest = NULL;

		for (size_t i = 0; i < objects->count; i++) {
			struct entry *entry = objects->entries[i];

			if (entry->symtab && entry != objects->vdso && !is_busy(objects, entry) &&
			    (!oldest || entry->used < oldest->used))
				oldest = entry;
		}
		if (!oldest)
			break;
		freed += oldest->symtab->bytes + (oldest->mini ? oldest->mini->bytes : 0);
		drop_symtab(oldest);
		objects->stats.evicted++;
	}
	if (freed < bytes && names_sweep(objects->names))
		freed++;
	return freed > 0;
}

void objects_trim(struct objects *objects, uint64_t idle_ns)
{
	uint64_t now = clock_monotonic();

	for (size_t i = 0; i < objects->count; i++) {
		struct entry *entry = objects->entries[i];

		if (entry->fd >= 0 && now - entry->fd_used >= idle_ns)
			save_and_close(objects, entry);
	}
	forget_unused(objects, idle_ns);
}

int objects_new(struct mount_namespace_table *spaces, struct names *names, struct opener *opener,
		struct parser *parser, struct objects **ret_objects)
{
	struct objects *objects = calloc(1, sizeof(*objects));

	if (!objects)
		return -ENOMEM;
	pool_charge_always(POOL_SYMBOLS, sizeof(*objects));
	objects->spaces = spaces;
	objects->names = names;
	objects->opener = opener;
	objects->parser = parser;
	objects->table.pool = POOL_SYMBOLS;
	*ret_objects = objects;
	return 0;
}

void objects_fetch(struct objects *objects, struct fetched *fetched)
{
	objects->fetched = fetched;
}

void objects_free(struct objects *objects)
{
	if (!objects)
		return;
	for (size_t i = 0; i < objects->count; i++) {
		hash_table_remove(&objects->table, &objects->entries[i]->link);
		free_entry(objects, objects->entries[i]);
	}
	for (size_t i = 0; i < objects->retired_count; i++)
		object_unref(objects->retired[i]);
	hash_table_done(&objects->table);
	pool_uncharge(POOL_SYMBOLS,
		      sizeof(*objects) + objects->capacity * sizeof(*objects->entries));
	free(objects->entries);
	free(objects);
}

const struct objects_stats *objects_stats(const struct objects *objects)
{
	return &objects->stats;
}

size_t objects_fd_count(const struct objects *objects)
{
	return objects->fd_count;
}
