// SPDX-License-Identifier: Apache-2.0
/* The separate debug file that a program names, .gnu_debuglink. */
#include <limits.h>
#include <string.h>

#include "resolve/object_cache.h"

struct debuglink {
	struct lines_link said;
	int directory;		/* length of the program's, without the slash */
};

/*
 * In the host's files, is the program at its path? That is what its process calls it, in a mount namespace of its own
 * where anything may lie beside it. 1, 0, or an errno that may pass.
 */
static int is_hosts(struct objects *objects, const struct entry *entry, struct mount_namespace *host)
{
	const struct object *object = entry->object;
	const struct opener_program program = { .dev = object->dev, .user = entry->user };
	_cleanup_close_ int fd = -1;
	struct stat st;
	int r = opener_open_path(objects->opener, objects->spaces, host, object->path, &program, &fd, &st);

	if (r < 0)
		return objects_may_pass(r) ? r : 0;
	return object_is_file(object, &st);
}

static int seek_in(struct objects *objects, struct entry *entry, struct mount_namespace *space,
		   const struct debuglink *link, bool with_beside, bool *ret_beside_unknown,
		   struct entry **ret_entry)
{
	static const struct {
		const char *before, *behind;
		enum debug_place place;
	} places[] = {
		{ "", "/", DEBUG_BESIDE }, { "", "/.debug/", DEBUG_BESIDE }, { "/usr/lib/debug", "/", DEBUG_BY_LINK },
	};
	char path[PATH_MAX];
	int r = -ENOENT;

	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		if (!with_beside && places[i].place == DEBUG_BESIDE)
			continue;
		if (snprintf(path, sizeof(path), "%s%.*s%s%s", places[i].before, link->directory, entry->object->path,
			     places[i].behind, link->said.name) >= (int)sizeof(path))
			return -ENAMETOOLONG;
		r = debug_open(objects, entry, space, path, places[i].place, link->said.crc, ret_entry);
		/* whoever can put a program there, or a link, decides whether it answers */
		if (r == -EHOSTDOWN && places[i].place == DEBUG_BESIDE)
			*ret_beside_unknown = true;
		else if (r == 0 || objects_may_pass(r))
			break;
	}
	return r;
}

/* Debian's links have the name of the file below .build-id, which has been looked for. */
static bool is_by_id(const struct object *object, const char *name)
{
	char by_id[sizeof(object->build_id) + sizeof(".debug")];

	if (!object->build_id[0])
		return false;
	snprintf(by_id, sizeof(by_id), "%s.debug", object->build_id + 2);
	return !strcmp(name, by_id);
}

int debuglink_seek(struct objects *objects, struct entry *entry, uint32_t tgid, struct mount_namespace *host,
		   bool in_container, bool *ret_beside_unknown, struct entry **ret_entry)
{
	const char *slash = strrchr(entry->object->path, '/');
	struct debuglink link;
	int with_beside, fd, r = objects_fd(objects, entry->object, tgid, &fd);

	if (r < 0 || !slash)
		return r < 0 ? r : -ENOENT;
	link.directory = (int)(slash - entry->object->path);
	r = parser_link(objects->parser, entry->object, fd, &link.said);
	if (r < 0)
		return r;
	if (is_by_id(entry->object, link.said.name))
		return -ENOENT;
	/* what is its container's own is not the host's, whatever the host has at that path */
	with_beside = in_container ? 0 : is_hosts(objects, entry, host);
	*ret_beside_unknown = with_beside == -EHOSTDOWN;
	if (with_beside < 0 && with_beside != -EHOSTDOWN)
		return with_beside;
	r = seek_in(objects, entry, host, &link, with_beside > 0, ret_beside_unknown, ret_entry);
	if (r < 0 && !objects_may_pass(r) && in_container)
		r = seek_in(objects, entry, entry->space, &link, true, ret_beside_unknown, ret_entry);
	return r;
}
