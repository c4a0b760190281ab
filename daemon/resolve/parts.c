// SPDX-License-Identifier: Apache-2.0
#include "resolve/parts.h"

#include <limits.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/pool.h"
#include "resolve/fetched.h"
#include "resolve/object_cache.h"

#define AGAIN_NS (60 * NSEC_PER_SEC)	/* what was nowhere is looked for again */

struct parts {
	struct objects *objects;
	struct parts_stats stats;
	uint64_t absent[DWO_ABSENT_SLOTS];
	uint64_t forget_at;		/* these, CLOCK_MONOTONIC ns */
};

int parts_new(struct objects *objects, struct parts **ret_parts)
{
	struct parts *parts = calloc(1, sizeof(*parts));

	if (!parts)
		return -ENOMEM;
	pool_charge_always(POOL_SYMBOLS, sizeof(*parts));
	parts->objects = objects;
	*ret_parts = parts;
	return 0;
}

void parts_free(struct parts *parts)
{
	if (!parts)
		return;
	pool_uncharge(POOL_SYMBOLS, sizeof(*parts));
	free(parts);
}

const struct parts_stats *parts_stats(const struct parts *parts)
{
	return &parts->stats;
}

/* A new reference. */
static struct mount_namespace *space_of(const struct objects *objects, const struct entry *program)
{
	return entry_is_in_container(objects, program) ? mount_namespace_ref(program->space) :
							 mount_namespace_table_guess(objects->spaces);
}

/* Could nobody have put it there who may not change the program, and is it nothing that its owner may not read? */
static bool is_trusted(const struct entry *program, const struct stat *st)
{
	return (st->st_uid == program->user || (!st->st_uid && st->st_mode & S_IROTH)) && !(st->st_mode & (S_IWGRP | S_IWOTH));
}

/* What the program says is at @path. -EPERM: it is refused. */
static int open_told(const struct parts_of *of, const char *path, int *ret_fd, struct stat *ret_stat)
{
	struct objects *objects = of->parts->objects;
	const struct entry *program = of->program->symbols;
	const struct opener_program asking = { .dev = of->program->dev, .user = program->user };
	struct mount_namespace *space = space_of(objects, program);
	int r = opener_open_told(objects->opener, objects->spaces, space, path, &asking, ret_fd, ret_stat);

	mount_namespace_unref(space);
	if (r < 0 || is_trusted(program, ret_stat))
		return r;
	of->parts->stats.refused++;
	close(steal_fd(ret_fd));
	return -EPERM;
}

/* Keeps @fd, of a file in @space, if it has the @build_id; NULL: any. */
static int keep(const struct parts_of *of, struct mount_namespace *space, const char *path, const char *build_id, int *fd,
		const struct stat *st, struct object **ret_object)
{
	struct objects *objects = of->parts->objects;
	struct entry *found = entry_find(objects, st, true);
	int r = 0;

	if (object_is_file(of->object, st) || object_is_file(of->program, st))
		return -ENOENT;
	if (!found)
		r = entry_add_file(objects, path, *fd, st, true, &found);
	if (!found)
		return r;
	if (build_id && strcmp(found->object->build_id, build_id) != 0)
		return -ENOENT;
	if (!found->space && !space->is_guess)
		found->space = mount_namespace_ref(space);
	entry_keep_fd(objects, found, fd);
	*ret_object = object_ref(found->object);
	return 0;
}

static int keep_told(const struct parts_of *of, const char *path, const char *build_id, struct object **ret_object)
{
	struct objects *objects = of->parts->objects;
	struct mount_namespace *space;
	_cleanup_close_ int fd = -1;
	struct stat st;
	int r = open_told(of, path, &fd, &st);

	if (r < 0)
		return r;
	space = space_of(objects, of->program->symbols);
	r = keep(of, space, path, build_id, &fd, &st, ret_object);
	mount_namespace_unref(space);
	return r;
}

/* In root's directory: whoever asks for it gets what has this build-id, as of debug files. */
static int keep_at(const struct parts_of *of, struct mount_namespace *space, const char *path, const char *id,
		   struct object **ret_object)
{
	struct objects *objects = of->parts->objects;
	_cleanup_close_ int fd = -1;
	struct stat st;
	int r = opener_open_path(objects->opener, objects->spaces, space, path, NULL, &fd, &st);

	return r < 0 ? r : keep(of, space, path, id, &fd, &st, ret_object);
}

/* Where packages install it. */
static int keep_by_id(const struct parts_of *of, struct mount_namespace *space, const char *id, struct object **ret_object)
{
	char path[128];

	snprintf(path, sizeof(path), "/usr/lib/debug/.build-id/%.2s/%s.debug", id, id + 2);
	return keep_at(of, space, path, id, ret_object);
}

static int keep_fetched(const struct parts_of *of, struct mount_namespace *host, const char *id, struct object **ret_object)
{
	struct objects *objects = of->parts->objects;
	_cleanup_close_ int fd = -1;
	char path[PATH_MAX];
	struct stat st;
	int r = objects->fetched ? fetched_open(objects->fetched, id, &fd, &st, path) : -ENOENT;

	if (r < 0)
		return r;
	r = keep(of, host, path, id, &fd, &st, ret_object);
	if (r == -ENOENT)
		fetched_forget(objects->fetched, id);
	return r;
}

/* @name as the file of @object says it: what is relative is so to that one's directory. */
static int keep_beside(const struct parts_of *of, const char *name, const char *id, struct object **ret_object)
{
	const char *own = of->object->path, *slash = strrchr(own, '/');
	char path[PATH_MAX];

	if (!slash || snprintf(path, sizeof(path), "%.*s%s", name[0] == '/' ? 0 : (int)(slash + 1 - own), own, name) >=
	    (int)sizeof(path))
		return -ENAMETOOLONG;
	return keep_told(of, path, id, ret_object);
}

static int seek_moved(const struct parts_of *of, const struct lines_facts *facts, struct object **ret_object)
{
	struct objects *objects = of->parts->objects;
	const struct entry *program = of->program->symbols;
	struct mount_namespace *host = mount_namespace_table_guess(objects->spaces);
	const char *id = facts->alt_build_id, *inside = strstr(facts->alt_link, "/.dwz/");
	char path[PATH_MAX];
	int r = keep_by_id(of, host, id, ret_object);

	if (r < 0 && !objects_may_pass(r) && entry_is_in_container(objects, program))
		r = keep_by_id(of, program->space, id, ret_object);
	/* Debian's are found by their names alone */
	if (r < 0 && !objects_may_pass(r) && inside && !strstr(inside, "/../")) {
		snprintf(path, sizeof(path), "/usr/lib/debug%s", inside);
		r = keep_at(of, host, path, id, ret_object);
		/* the rest of that is the program's word */
		if (r < 0 && !objects_may_pass(r) && entry_is_in_container(objects, program))
			r = keep_told(of, path, id, ret_object);
	}
	if (r < 0 && !objects_may_pass(r) && facts->alt_link[0])
		r = keep_beside(of, facts->alt_link, id, ret_object);
	if (r < 0 && !objects_may_pass(r))
		r = keep_fetched(of, host, id, ret_object);
	mount_namespace_unref(host);
	return r;
}

/* One whose descriptor had to be closed is looked for again: its path may lead elsewhere by now, as a reopened one's would. */
static void drop_closed(struct object **kept)
{
	const struct entry *entry = *kept ? (*kept)->symbols : NULL;

	if (entry && entry->fd < 0)
		object_unref(steal_ptr(*kept));
}

static int take(const struct object *kept, struct parser_part *ret_part)
{
	struct entry *entry = kept->symbols;

	entry->used = entry->fd_used = clock_monotonic();
	ret_part->fd = entry->fd;
	ret_part->size = kept->size;
	return 0;
}

int parts_moved(const struct parts_of *of, const struct lines_facts *facts, struct parser_part *ret_part)
{
	struct dwarf_known *known = of->known;
	int r;

	drop_closed(&known->moved);
	if (!known->moved) {
		if (known->seek_moved_at > clock_monotonic())
			return -ENOENT;
		r = seek_moved(of, facts, &known->moved);
		if (r < 0 && objects_may_pass(r))
			return r;
		if (r < 0) {
			known->seek_moved_at = clock_monotonic() + AGAIN_NS;
			return -ENOENT;
		}
		of->parts->stats.moved++;
	}
	return take(known->moved, ret_part);
}

int parts_package(const struct parts_of *of, bool seek, struct parser_part *ret_part)
{
	const struct object *const beside[] = { of->object, of->program };
	struct dwarf_known *known = of->known;
	char path[PATH_MAX];
	int r = -ENOENT;

	drop_closed(&known->package);
	if (!known->package) {
		if (!seek || known->seek_package_at > clock_monotonic())
			return -ENOENT;
		for (size_t i = 0; r < 0 && !objects_may_pass(r) && i < 1 + (size_t)(of->object != of->program); i++)
			if (snprintf(path, sizeof(path), "%s.dwp", beside[i]->path) < (int)sizeof(path))
				r = keep_told(of, path, NULL, &known->package);
		if (r < 0 && objects_may_pass(r))
			return r;
		if (r < 0) {
			known->seek_package_at = clock_monotonic() + AGAIN_NS;
			return -ENOENT;
		}
		of->parts->stats.packages++;
	}
	return take(known->package, ret_part);
}

static int give_at(const struct parts_of *of, const char *path, struct dwo_look *look)
{
	_cleanup_close_ int fd = -1;
	struct stat st;
	int r = open_told(of, path, &fd, &st);

	/* there is no time for it, or no opener: others would fare as this one */
	if (opener_is_unanswered(r))
		return -ETIME;
	r = dwo_give(look, r < 0 ? r : fd, &st, path);
	of->parts->stats.dwos += r == 1;
	return r;
}

static int look_below(const struct parts_of *of, const struct object *beside, const struct dwarf_dwo_names *names,
		      struct dwo_look *look)
{
	const char *slash = strrchr(beside->path, '/');
	char below[PATH_MAX], path[PATH_MAX];
	int r = 0;

	for (unsigned int way = 0; slash && !r && way < DWO_WAYS; way++)
		if (dwo_path_below(names, way, below) &&
		    snprintf(path, sizeof(path), "%.*s/%s", (int)(slash - beside->path), beside->path, below) < (int)sizeof(path))
			r = give_at(of, path, look);
	return r;
}

static int look_everywhere(const void *ctx, const struct dwarf_dwo_names *names, struct dwo_look *look)
{
	const struct parts_of *of = ctx;
	char path[PATH_MAX];
	int r = dwo_path(names, path) ? give_at(of, path, look) : 0;

	if (!r)
		r = look_below(of, of->program, names, look);
	if (!r && of->object != of->program)
		r = look_below(of, of->object, names, look);
	return r;
}

void parts_look_for_dwos(const struct parts_of *of, struct dwo_files *files)
{
	struct parts *parts = of->parts;
	const uint64_t words[] = { of->program->dev, of->program->inode, of->object->dev, of->object->inode };
	const uint64_t now = clock_monotonic();

	if (now >= parts->forget_at) {
		memset(parts->absent, 0, sizeof(parts->absent));
		parts->forget_at = now + AGAIN_NS;
	}
	files->look = look_everywhere;
	files->ctx = of;
	files->absent = parts->absent;
	files->seed = hash_words(words, ARRAY_SIZE(words));
}
