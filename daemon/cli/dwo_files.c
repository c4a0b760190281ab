// SPDX-License-Identifier: Apache-2.0
#include "cli/dwo_files.h"

#include <limits.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/utf8.h"
#include "cli/dwo_open.h"

/* For one object; each question has PARSER_LINES_MS at most. */
#define ALL_MS (10 * PARSER_LINES_MS)

/* A .dwo file that is looked for; what is found is it if the parser finds its id. */
struct look {
	struct dwo_files *files;
	const struct dwarf_dwo_names *names;
	uint32_t number;
	enum dwo_missing why;		/* it is not had so far */
};

/* A directory, in @root unless that is NULL. */
struct place {
	const struct sysroot *root;
	const char *directory;
	int length;
	bool is_told;			/* nobody has named it: by the program it is known alone */
};

/* @names as one path that leads nowhere but down: relative, and without "..". False: it is too long. */
static bool join(const char *directory, const char *name, char ret_path[static PATH_MAX])
{
	const char *const parts[] = { directory, name };
	size_t length = 0;

	ret_path[0] = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		for (const char *at = parts[i], *end; *at; at = *end ? end + 1 : end) {
			const size_t size = (size_t)((end = strchrnul(at, '/')) - at);

			if (!size || (size == 1 && at[0] == '.'))
				continue;
			if (size == 2 && !strncmp(at, "..", 2)) {
				while (length && ret_path[--length] != '/')
					;
			} else if (length + size + 2 > PATH_MAX) {
				return false;
			} else {
				length += (size_t)snprintf(ret_path + length, PATH_MAX - length, "%s%.*s",
							   length ? "/" : "", (int)size, at);
			}
			ret_path[length] = '\0';
		}
	}
	return length;
}

/* Of the time for all of them what one question may take; 0: it is over. */
static uint32_t limit_of(const struct dwo_files *files)
{
	const uint64_t now = clock_monotonic();

	return files->deadline > now ? (uint32_t)min_of((files->deadline - now) / NSEC_PER_MSEC, (uint64_t)PARSER_LINES_MS) : 0;
}

static int miss(struct look *look, enum dwo_missing why)
{
	look->why = max_of(look->why, why);
	return 0;
}

/* 1: it is taken. Whatever befalls the parser is laid to the file. */
static int give(struct look *look, int fd, const struct stat *st, const char *path)
{
	struct dwo_files *files = look->files;
	const struct parser_part dwo = { .fd = fd, .size = fd < 0 ? 0 : (uint64_t)st->st_size };
	const uint32_t limit = limit_of(files);
	struct object *object;
	int r;

	if (fd < 0)
		return miss(look, fd == -ENOENT || fd == -ENOTDIR ? DWO_ABSENT : DWO_UNREADABLE);
	if (!limit)
		return -ETIME;
	object = object_new(OBJECT_FILE, path);
	if (!object)
		return miss(look, DWO_UNREADABLE);
	object_set_file(object, st);
	r = parser_give_dwo(files->parser, object, look->number, limit, &dwo);
	object_unref(object);
	switch (r) {
	case 0:
		files->any = true;
		return 1;
	case -ENOENT:
		return miss(look, DWO_OTHER_BUILD);
	case -EBADMSG:
	case -ETIME:
	case -ENOMEM:
	case -ENOTRECOVERABLE:
		return miss(look, DWO_UNREADABLE);
	default:
		/* the parser, and with it what is open there, is gone */
		return r;
	}
}

static int give_below(struct look *look, const struct place *place, const char *path)
{
	char whole[PATH_MAX], directory[PATH_MAX];
	_cleanup_close_ int fd = -1;
	struct stat st;

	if (snprintf(directory, sizeof(directory), "%.*s", place->length, place->directory) >= (int)sizeof(directory) ||
	    snprintf(whole, sizeof(whole), "%s/%s", directory, path) >= (int)sizeof(whole))
		return miss(look, DWO_UNREADABLE);
	fd = place->is_told ? dwo_open_told(directory[0] ? directory : "/", path, &st) : dwo_open_named(place->root, whole, &st);
	return give(look, fd, &st, whole);
}

/* The host's own root, which nobody has named. */
static bool is_default(const struct sysroot *root)
{
	return !root->space && !root->path[0];
}

/* Where it was compiled. */
static int look_there(struct look *look)
{
	const struct sysroot *root = debugfile_finder_sysroot(look->files->finder);
	const struct dwarf_dwo_names *names = look->names;
	const bool is_absolute = names->name[0] == '/';
	char path[PATH_MAX], resolved[PATH_MAX];
	_cleanup_close_ int fd = -1;
	struct stat st;

	if (!root || (!is_absolute && names->directory[0] != '/') ||
	    snprintf(path, sizeof(path), "%s%s%s", is_absolute ? "" : names->directory, is_absolute ? "" : "/",
		     names->name) >= (int)sizeof(path))
		return 0;
	if (is_default(root)) {
		fd = dwo_open_told("/", path, &st);
	} else {
		fd = sysroot_resolve(root, path, resolved);
		if (!fd)
			fd = dwo_open_named(root, resolved, &st);
	}
	return give(look, fd, &st, path);
}

/* Below a directory: as where it was compiled, as relative to that, by its name. */
static int look_below(struct look *look, const struct place *place)
{
	const struct dwarf_dwo_names *names = look->names;
	const char *slash = strrchr(names->name, '/');
	char path[PATH_MAX];
	int r = 0;

	if (join(names->name[0] == '/' ? "" : names->directory, names->name, path))
		r = give_below(look, place, path);
	if (!r && names->name[0] != '/' && join("", names->name, path))
		r = give_below(look, place, path);
	if (!r && slash && join("", slash + 1, path))
		r = give_below(look, place, path);
	return r;
}

static int look_everywhere(struct look *look)
{
	const struct debugfile_places *places = debugfile_finder_places(look->files->finder);
	const struct debugfile *file = look->files->file;
	const char *slash = strrchr(file->object->path, '/');
	const struct place beside = {
		.root = file->root, .is_told = !file->root || is_default(file->root),
		.directory = slash ? file->object->path : ".", .length = slash ? (int)(slash - file->object->path) : 1,
	};
	int r = look_there(look);

	for (size_t i = 0; !r && i < places->directory_count; i++) {
		const struct place place = {
			.directory = places->directories[i], .length = (int)strlen(places->directories[i]),
		};

		r = look_below(look, &place);
	}
	return r ?: look_below(look, &beside);
}

/* Also of those that one question after the other wants, what is nowhere is looked for once. */
static int look_once(struct look *look)
{
	struct dwo_files *files = look->files;
	const uint64_t hashes[] = { hash_string(look->names->directory), hash_string(look->names->name) };
	const uint64_t hash = hash_words(hashes, ARRAY_SIZE(hashes));
	uint64_t *slot = &files->absent[hash % DWO_ABSENT_SLOTS];
	int r;

	if (hash && *slot == hash)
		return 0;
	r = look_everywhere(look);
	if (r)
		return r;
	if (look->why == DWO_ABSENT)
		*slot = hash;
	if (!files->why) {
		files->why = look->why;
		utf8_copy(files->missing, sizeof(files->missing), look->names->name);
	}
	return 0;
}

static int give_all(struct dwo_files *files, const struct object *suspect, uint32_t count)
{
	_cleanup_free_ struct dwarf_dwo_names *names = malloc(sizeof(*names));
	int r = names ? 0 : -ENOMEM;

	for (uint32_t i = 0; r >= 0 && i < count; i++) {
		struct look look = { .files = files, .names = names, .number = i, .why = DWO_ABSENT };
		const uint32_t limit = limit_of(files);

		r = limit ? parser_dwo_names(files->parser, suspect, i, limit, names) : -ETIME;
		if (!r)
			r = look_once(&look);
	}
	return min_of(r, 0);
}

static int want(struct dwo_files *files, const struct object *suspect, const uint64_t *addresses, uint32_t *count)
{
	const uint32_t limit = limit_of(files);
	uint32_t dwos = 0;
	int r = limit ? parser_dwos(files->parser, suspect, addresses, *count, limit, &dwos, count) : -ETIME;

	if (!r)
		r = give_all(files, suspect, dwos);
	if (r != -ETIME && r != -ENOMEM)
		return r;
	/* the parser and what is open there are as they were, and lines are to be had */
	files->is_off = true;
	files->why = r == -ETIME ? DWO_LATE : DWO_UNREADABLE;
	files->missing[0] = '\0';
	return 0;
}

int dwo_files_ask(struct dwo_files *files, const uint64_t *addresses, uint32_t *count, struct lines_answer *ret_answer)
{
	const struct object *object = files->file->object;
	char path[256];
	/* what befalls the parser while it has .dwo files is not laid to the program, which is read again without them */
	const struct object suspect = {
		.dev = object->dev, .inode = object->inode, .ctime_ns = object->ctime_ns, .path = path,
		.size = object->size | 1ull << 63,
	};
	int r;

	snprintf(path, sizeof(path), ".dwo files of %s", object->path);

	if (!files->is_wanted) {
		r = parser_lines(files->parser, object, addresses, *count, ret_answer);
		if (r < 0 || !ret_answer->split)
			return r;
		lines_answer_free(ret_answer);
		files->is_wanted = true;
		files->deadline = clock_monotonic() + ALL_MS * NSEC_PER_MSEC;
	}
	r = files->is_off ? 0 : want(files, &suspect, addresses, count);
	if (!r)
		r = parser_lines(files->parser, files->any ? &suspect : object, addresses, *count, ret_answer);
	if (!r)
		files->without += ret_answer->split;
	return r;
}

void dwo_files_drop(struct dwo_files *files)
{
	files->is_off = true;
	files->any = false;
}

void dwo_files_note(const struct dwo_files *files, size_t size, char *ret_note)
{
	static const char *const words[] = {
		/* it was given, and failed late */
		[DWO_NOT_MISSING] = "cannot be read", [DWO_UNREADABLE] = "cannot be read",
		[DWO_ABSENT] = "are not here", [DWO_OTHER_BUILD] = "are of another build",
	};

	if (!files->without)
		ret_note[0] = '\0';
	else if (files->file->split.fd >= 0)
		snprintf(ret_note, size, "%u without inlined functions: the split DWARF package (.dwp) does not have them: "
			 "pack it anew", files->without);
	else if (files->why == DWO_LATE)
		snprintf(ret_note, size, "%u without inlined functions: .dwo files of its split DWARF take longer than %u seconds "
			 "to read: pack them as a .dwp file", files->without, ALL_MS / 1000);
	else
		snprintf(ret_note, size, "%u without inlined functions: .dwo files of its split DWARF %s%s%s: name a directory that "
			 "has them by `--debug-dir'", files->without, words[files->why], files->missing[0] ? ", as " : "",
			 files->missing);
}
