// SPDX-License-Identifier: Apache-2.0
/* Where the names of an object's functions are: its own table, a debug file, MiniDebugInfo. */
#include <string.h>
#include <sys/sysmacros.h>

#include "base/clock.h"
#include "resolve/fetched.h"
#include "resolve/object_cache.h"

#define BESIDE_AGAIN_NS (60 * NSEC_PER_SEC)	/* where nobody could look is looked again */

enum { CRC_FILE_MAX = 256 << 20 };	/* that is read whole, for want of a build-id */

/* Is @candidate the debug file of @entry's program? -ENOENT: no; what may pass. */
static int check_debug(struct objects *objects, const struct entry *entry, struct entry *candidate, int fd,
		       enum debug_place place, uint32_t crc)
{
	const struct object *object = entry->object, *other = candidate->object;
	int r;

	/* who may write beside a program may not change it: what is there has to be of somebody who may, or root's */
	if (place == DEBUG_BESIDE && candidate->user && candidate->user != entry->user)
		return -ENOENT;
	if (other->build_id[0] || place == DEBUG_BY_ID)
		return strcmp(other->build_id, object->build_id) ? -ENOENT : 0;
	if (other->size > CRC_FILE_MAX)
		return -ENOENT;
	r = parser_sum(objects->parser, other, fd, &candidate->sum);
	/* a file that changes is another entry; this one is kept until the next window */
	candidate->used = clock_monotonic();
	return r < 0 ? r : candidate->sum.crc == crc ? 0 : -ENOENT;
}

/* Keeps @fd if it is. */
static int take_debug(struct objects *objects, const struct entry *entry, struct mount_namespace *space,
		      const char *path, int *fd, const struct stat *st, enum debug_place place, uint32_t crc,
		      struct entry **ret_entry)
{
	struct entry *found = entry_find(objects, st, true);
	int r = 0;

	if (object_is_file(entry->object, st))
		return -ENOENT;
	if (!found)
		r = entry_add_file(objects, path, *fd, st, true, &found);
	if (!found)
		return r;
	r = check_debug(objects, entry, found, *fd, place, crc);
	if (r < 0)
		return r;
	if (!found->space && !space->is_guess)
		found->space = mount_namespace_ref(space);
	entry_keep_fd(objects, found, fd);
	*ret_entry = found;
	return 0;
}

int debug_open(struct objects *objects, struct entry *entry, struct mount_namespace *space, const char *path,
	       enum debug_place place, uint32_t crc, struct entry **ret_entry)
{
	const struct opener_program program = { .dev = entry->object->dev, .user = entry->user };
	_cleanup_close_ int fd = -1;
	struct stat st;
	int r = opener_open_path(objects->opener, objects->spaces, space, path,
				 place == DEBUG_BESIDE ? &program : NULL, &fd, &st);

	return r < 0 ? r : take_debug(objects, entry, space, path, &fd, &st, place, crc, ret_entry);
}

/* A file by that name below @space's root. -ENOENT: there is none. */
static int open_by_id(struct objects *objects, struct entry *entry, struct mount_namespace *space,
		      struct entry **ret_entry)
{
	const char *id = entry->object->build_id;
	char path[128];

	if (!id[0])
		return -ENOENT;
	snprintf(path, sizeof(path), "/usr/lib/debug/.build-id/%.2s/%s.debug", id, id + 2);
	return debug_open(objects, entry, space, path, DEBUG_BY_ID, 0, ret_entry);
}

/* -EAGAIN: the server has not answered yet. */
static int open_fetched(struct objects *objects, struct entry *entry, struct mount_namespace *space,
			struct entry **ret_entry)
{
	const char *build_id = entry->object->build_id;
	_cleanup_close_ int fd = -1;
	char path[PATH_MAX];
	struct stat st;
	int r = build_id[0] ? fetched_open(objects->fetched, build_id, &fd, &st, path) : -ENOENT;

	if (r < 0)
		return r;
	r = take_debug(objects, entry, space, path, &fd, &st, DEBUG_BY_ID, 0, ret_entry);
	if (r == -ENOENT)
		fetched_forget(objects->fetched, build_id);
	return r;
}

bool entry_is_in_container(const struct objects *objects, const struct entry *entry)
{
	return entry->space && !entry->space->is_guess && !major(entry->object->dev) &&
	       entry->object->dev == entry->space->root_dev &&
	       entry->object->dev != mount_namespace_table_host(objects->spaces);
}

/* The host's debug files first. What may pass is asked for again: an errno. */
static int seek_debug(struct objects *objects, struct entry *entry, uint32_t tgid)
{
	const bool in_container = entry_is_in_container(objects, entry);
	bool is_beside_unknown = false;
	uint64_t again = UINT64_MAX;
	struct mount_namespace *host = mount_namespace_table_guess(objects->spaces);
	struct entry *found = NULL;
	int r;

	r = open_by_id(objects, entry, host, &found);
	if (r < 0 && !objects_may_pass(r) && in_container)
		r = open_by_id(objects, entry, entry->space, &found);
	if (r < 0 && !objects_may_pass(r))
		r = debuglink_seek(objects, entry, tgid, host, in_container, &is_beside_unknown, &found);
	entry->is_fetched = r < 0 && !objects_may_pass(r) && objects->fetched;
	if (entry->is_fetched)
		r = open_fetched(objects, entry, host, &found);
	mount_namespace_unref(host);
	if (r < 0 && objects_may_pass(r))
		return r;
	if (r < 0 && is_beside_unknown)
		again = clock_monotonic() + BESIDE_AGAIN_NS;
	else if (r < 0 && objects->fetched)
		again = clock_monotonic() + FETCHED_AGAIN_NS;
	entry->seek_debug_at = again;
	if (found && r == 0)
		entry->debug = object_ref(found->object);
	return 0;
}

/* It has made room for others, maybe while names are left in it: the next one may be asked for. */
static bool is_cleared(const struct objects *objects, const struct entry *entry, const struct entry *debug, int error)
{
	const struct symtab *symtab = debug->symtab;

	if (!objects->fetched)
		return false;
	return error == -ENOENT || error == -ESTALE ||
	       (!error && entry->is_fetched && debug->fd < 0 && symtab->count && !symtab->names);
}

/* What names a stripped file's functions beside its own table. */
static int find_others(struct objects *objects, struct entry *entry, uint32_t tgid,
		       struct object_symbols *ret_debug)
{
	struct entry *debug;
	int r, later = 0;

	if (entry->seek_debug_at <= clock_monotonic())
		later = seek_debug(objects, entry, tgid);
	debug = entry->debug ? entry->debug->symbols : NULL;
	r = debug ? entry_have_symtab(objects, debug, 0) : -ENOENT;
	if (debug && is_cleared(objects, entry, debug, r)) {
		object_unref(steal_ptr(entry->debug));
		dwarf_forget(&entry->debug_dwarf);
		entry->seek_debug_at = 0;
		later = -EAGAIN;
		r = -ENOENT;
	}
	if (r >= 0 && debug->symtab->count) {
		*ret_debug = (struct object_symbols){ debug->symtab, debug->fd, debug->object, entry->is_fetched };
		return r;
	}
	if (r < 0 && objects_may_pass(r))
		return r;
	/* of none of its functions the parser had time to read */
	if (r >= 0 && debug->symtab->is_late)
		later = -EAGAIN;
	r = entry_read_mini(objects, entry, tgid);
	ret_debug->symtab = entry->mini;
	return later ?: r;
}

int objects_symbols(struct objects *objects, struct object *object, uint32_t tgid,
		    struct object_symbols *ret_own, struct object_symbols *ret_debug)
{
	struct entry *entry = object->symbols;
	int r, more;

	*ret_debug = (struct object_symbols){ .fd = -1 };
	objects->busy = NULL;
	if (!entry ||
	    atomic_load_explicit(&object->state, memory_order_relaxed) != OBJECT_READY)
		return -ENODATA;
	/* neither table goes, and neither descriptor, while room is made for the other */
	objects->busy = entry;
	r = entry_have_symtab(objects, entry, tgid);
	if (r < 0)
		return r;
	*ret_own = (struct object_symbols){ .symtab = entry->symtab, .fd = entry->fd, .object = entry->object };
	if (!symtab_is_stripped(entry->symtab))
		return r;
	more = find_others(objects, entry, tgid, ret_debug);
	if (entry_is_unlinked(entry, more, tgid))
		return more;
	ret_own->fd = entry->fd;
	return r > 0 || more > 0 || objects_may_pass(more) ? OBJECTS_MORE_LATER : 0;
}
