// SPDX-License-Identifier: Apache-2.0
#include "resolve/object_cache.h"

#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "symbol/vdso.h"
#include "unwind/functions.h"

enum {
	SAVED_BYTES = 4 * 1024 * 1024, /* a file this small is read before it becomes unreachable */
};

#define LATE_AGAIN_NS (60 * NSEC_PER_SEC)	/* a table that the parser had no CPU for is read again; at once for who waits */

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

static uint64_t hash_of(const void *ctx, uint32_t position)
{
	return ((struct entry *const *)ctx)[position]->hash;
}

struct entry *entry_find(struct objects *objects, const struct stat *st, bool is_debug)
{
	struct index_probe probe = index_first(&objects->index, hash_identity(st));
	uint32_t i;

	while ((i = index_next(&objects->index, &probe)) != INDEX_NONE)
		if (objects->entries[i]->is_debug == is_debug && object_is_file(objects->entries[i]->object, st))
			return objects->entries[i];
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

void dwarf_forget(struct dwarf_known *known)
{
	object_unref(known->moved);
	object_unref(known->package);
	*known = (struct dwarf_known){ 0 };
}

static void free_entry(struct objects *objects, struct entry *entry)
{
	close_fd(objects, entry);
	drop_symtab(entry);
	mount_namespace_unref(entry->space);
	if (objects->busy == entry)
		objects->busy = NULL;
	object_unref(entry->debug);
	dwarf_forget(&entry->own_dwarf);
	dwarf_forget(&entry->debug_dwarf);
	entry->object->symbols = NULL;
	object_unref(entry->object);
	pool_uncharge(POOL_SYMBOLS, sizeof(*entry));
	free(entry);
}

/* Not read; or a part, as the parser had no CPU for more, and that was long ago or somebody waits for it. */
static bool wants_symtab(const struct objects *objects, const struct symtab *symtab, uint64_t again_at)
{
	return !symtab || (symtab->is_late && (parser_waits(objects->parser) || clock_monotonic() >= again_at));
}

/* What @symtab is from now on: a part of the functions is better than none, and all that there is of what cannot be read. */
static int take_symtab(struct objects *objects, struct symtab **symtab, int error, struct symtab *read, uint64_t *ret_again_at)
{
	*ret_again_at = clock_monotonic() + LATE_AGAIN_NS;
	if (error < 0 && *symtab) {
		(*symtab)->is_late = objects_may_pass(error);
		return 0;
	}
	if (error < 0)
		return error;
	symtab_free(*symtab);
	*symtab = read;
	objects->stats.short_tables += read->is_late;
	return 0;
}

static int read_symtab(struct objects *objects, struct entry *entry)
{
	const struct symtab_reclaim reclaim = { .make_room = make_room, .ctx = objects };
	struct symtab *symtab = NULL;
	int r = parser_symtab(objects->parser, entry->object, entry->fd, &reclaim, &symtab);

	if (r < 0)
		log_debug("%s: no symbols: %s", entry->object->path, strerror(-r));
	r = take_symtab(objects, &entry->symtab, r, symtab, &entry->read_again_at);
	entry->error = objects_may_pass(r) ? 0 : r;
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

void entry_keep_fd(struct objects *objects, struct entry *entry, int *fd)
{
	entry->fd_used = clock_monotonic();
	if (entry->fd >= 0)
		return;
	if (objects->fd_count >= OBJECTS_FDS_MAX)
		close_oldest_fd(objects);
	entry->fd = steal_fd(fd);
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
	uint32_t kept = 0;

	for (uint32_t i = 0; i < objects->count; i++) {
		struct entry *entry = objects->entries[i];

		if (entry == objects->vdso || !is_unused(entry) || now - entry->used < idle_ns) {
			objects->entries[kept++] = entry;
			continue;
		}
		free_entry(objects, entry);
		objects->stats.evicted++;
	}
	if (kept == objects->count)
		return;
	objects->count = kept;
	index_rebuild(&objects->index, kept, hash_of, objects->entries);
}

static int reserve(struct objects *objects)
{
	uint32_t capacity = objects->capacity ? objects->capacity * 2 : 64;
	struct entry **entries;

	if (objects->count == OBJECTS_MAX)
		forget_unused(objects, 0);
	if (objects->count == OBJECTS_MAX)
		return -ENOBUFS;
	if (objects->count < objects->capacity)
		return index_reserve(&objects->index, hash_of, objects->entries);
	if (!pool_charge(POOL_SYMBOLS, (capacity - objects->capacity) * sizeof(*entries)))
		return -ENOBUFS;
	entries = realloc(objects->entries, capacity * sizeof(*entries));
	if (!entries) {
		pool_uncharge(POOL_SYMBOLS, (capacity - objects->capacity) * sizeof(*entries));
		return -ENOMEM;
	}
	objects->entries = entries;
	objects->capacity = capacity;
	return index_reserve(&objects->index, hash_of, objects->entries);
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
	if (!entry) {
		pool_uncharge(POOL_SYMBOLS, sizeof(*entry));
		return -ENOMEM;
	}
	entry->hash = hash;
	entry->object = object;
	entry->fd = -1;
	entry->used = clock_monotonic();
	object->symbols = entry;
	objects->entries[objects->count] = entry;
	index_insert(&objects->index, hash, objects->count++);
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

int entry_add_file(struct objects *objects, const char *path, int fd, const struct stat *st,
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
	(*ret_entry)->user = st->st_uid;
	(*ret_entry)->is_debug = is_debug;
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
		r = vdso_read(functions_read, &object, &symtab);
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

static struct seen_file *seen_slot(struct objects *objects, const struct mapped_file *file)
{
	const uint64_t words[] = { file->inode, (uint64_t)file->major << 32 | file->minor };

	return &objects->seen[hash_words(words, ARRAY_SIZE(words)) % SEEN_MAX];
}

/*
 * Programs that run again and again are mapped anew each time. Where the file is most likely still the one whose
 * descriptor is here, the opener need not open it; NULL: nothing is likely.
 */
static const struct stat *likely(struct objects *objects, const struct mapped_file *file)
{
	const struct seen_file *seen = seen_slot(objects, file);
	const struct entry *entry;

	if (!file->inode || seen->inode != file->inode || seen->major != file->major ||
	    seen->minor != file->minor)
		return NULL;
	entry = entry_find(objects, &seen->st, false);
	return entry && entry->fd >= 0 ? &seen->st : NULL;
}

static void remember(struct objects *objects, const struct mapped_file *file, const struct stat *st)
{
	*seen_slot(objects, file) = (struct seen_file){
		.inode = file->inode, .major = file->major, .minor = file->minor, .st = *st,
	};
}

void objects_see(struct objects *objects, const struct image *image, struct mapped_file *file)
{
	const struct opener_wanted wanted = {
		.major = file->major,
		.minor = file->minor,
		.inode = file->inode,
		.path = file->path,
		.known = likely(objects, file),
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
	if (opener_is_unanswered(r))
		return;
	if (r < 0) {
		see_gone(objects, file, r);
		return;
	}
	entry = entry_find(objects, &st, false);
	if (!entry && (fd < 0 || entry_add_file(objects, file->path, fd, &st, false, &entry) < 0))
		return;
	remember(objects, file, &st);
	entry->used = clock_monotonic();
	/* the newest place is the likeliest to last */
	if (image->mount_namespace && entry->space != image->mount_namespace) {
		mount_namespace_unref(entry->space);
		entry->space = mount_namespace_ref(image->mount_namespace);
	}
	if (fd >= 0)
		entry_keep_fd(objects, entry, &fd);
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
	entry_keep_fd(objects, entry, &fd);
	return 0;
}

bool entry_is_unlinked(const struct entry *entry, int error, uint32_t tgid)
{
	return !entry->is_debug && !tgid && (error == -ENOENT || error == -ESTALE);
}

int entry_have_symtab(struct objects *objects, struct entry *entry, uint32_t tgid)
{
	bool wants, later = false;
	int r;

	if (entry->error)
		return entry->error;
	entry->used = entry->fd_used = clock_monotonic();
	wants = wants_symtab(objects, entry->symtab, entry->read_again_at);
	if (entry->fd < 0 && (wants || (!entry->symtab->names && entry->symtab->count))) {
		r = reopen(objects, entry, tgid);
		/* PLT entries have their names at hand, and so has a table that was read before */
		if (r < 0 && (!entry->symtab || entry_is_unlinked(entry, r, tgid)))
			return r;
		if (r < 0 && wants)
			take_symtab(objects, &entry->symtab, r, NULL, &entry->read_again_at);
		later = objects_may_pass(r);
	}
	if (wants && entry->fd >= 0) {
		r = read_symtab(objects, entry);
		if (r < 0)
			return r;
	}
	entry->fd_used = entry->used;
	return later ? OBJECTS_MORE_LATER : 0;
}

int entry_read_mini(struct objects *objects, struct entry *entry, uint32_t tgid)
{
	const struct symtab_reclaim reclaim = { .make_room = make_room, .ctx = objects };
	struct symtab *mini = NULL;
	int r = 0;

	if (entry->mini_error || !wants_symtab(objects, entry->mini, entry->mini_again_at))
		return 0;
	if (entry->fd < 0)
		r = reopen(objects, entry, tgid);
	if (entry_is_unlinked(entry, r, tgid))
		return r;
	if (r == 0)
		r = parser_mini_symtab(objects->parser, entry->object, entry->fd, &reclaim, &mini);
	r = take_symtab(objects, &entry->mini, r, mini, &entry->mini_again_at);
	entry->mini_error = objects_may_pass(r) ? 0 : r;
	return r;
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

struct dwarf_known *objects_dwarf(const struct object *program, const struct object *object)
{
	struct entry *entry = program->symbols;

	return object == program ? &entry->own_dwarf : &entry->debug_dwarf;
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
	index_init(&objects->index, POOL_SYMBOLS);
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
	for (uint32_t i = 0; i < objects->count; i++)
		free_entry(objects, objects->entries[i]);
	for (size_t i = 0; i < objects->retired_count; i++)
		object_unref(objects->retired[i]);
	index_free(&objects->index);
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
