// SPDX-License-Identifier: Apache-2.0
#include "cli/dwo_places.h"

#include <limits.h>
#include <string.h>

#include "cli/dwo_open.h"

#define DWOS_MS (10 * PARSER_LINES_MS)	/* for one object */

/* A directory, in @root unless that is NULL. */
struct place {
	const struct sysroot *root;
	const char *directory;
	int length;
	bool is_told;			/* nobody has named it: by the program it is known alone */
};

static int give_below(struct dwo_look *look, const struct place *place, const char *path)
{
	char whole[PATH_MAX], directory[PATH_MAX];
	_cleanup_close_ int fd = -1;
	struct stat st;

	if (snprintf(directory, sizeof(directory), "%.*s", place->length, place->directory) >= (int)sizeof(directory) ||
	    snprintf(whole, sizeof(whole), "%s/%s", directory, path) >= (int)sizeof(whole))
		return dwo_miss(look, DWO_UNREADABLE);
	fd = place->is_told ? dwo_open_told(directory[0] ? directory : "/", path, &st) : dwo_open_named(place->root, whole, &st);
	return dwo_give(look, fd, &st, whole);
}

/* The host's own root, which nobody has named. */
static bool is_default(const struct sysroot *root)
{
	return !root->space && !root->path[0];
}

/* Where it was compiled. */
static int look_there(const struct dwo_places *places, const struct dwarf_dwo_names *names, struct dwo_look *look)
{
	const struct sysroot *root = debugfile_finder_sysroot(places->finder);
	char path[PATH_MAX], resolved[PATH_MAX];
	_cleanup_close_ int fd = -1;
	struct stat st;

	if (!root || !dwo_path(names, path))
		return 0;
	if (is_default(root)) {
		fd = dwo_open_told("/", path, &st);
	} else {
		fd = sysroot_resolve(root, path, resolved);
		if (!fd)
			fd = dwo_open_named(root, resolved, &st);
	}
	return dwo_give(look, fd, &st, path);
}

static int look_below(const struct dwarf_dwo_names *names, const struct place *place, struct dwo_look *look)
{
	char path[PATH_MAX];
	int r = 0;

	for (unsigned int way = 0; !r && way < DWO_WAYS; way++)
		if (dwo_path_below(names, way, path))
			r = give_below(look, place, path);
	return r;
}

static int look_everywhere(const void *ctx, const struct dwarf_dwo_names *names, struct dwo_look *look)
{
	const struct dwo_places *dwos = ctx;
	const struct debugfile_places *places = debugfile_finder_places(dwos->finder);
	const struct debugfile *file = dwos->file;
	const char *slash = strrchr(file->object->path, '/');
	const struct place beside = {
		.root = file->root, .is_told = !file->root || is_default(file->root),
		.directory = slash ? file->object->path : ".", .length = slash ? (int)(slash - file->object->path) : 1,
	};
	int r = look_there(dwos, names, look);

	for (size_t i = 0; !r && i < places->directory_count; i++) {
		const struct place place = {
			.directory = places->directories[i], .length = (int)strlen(places->directories[i]),
		};

		r = look_below(names, &place, look);
	}
	return r ?: look_below(names, &beside, look);
}

void dwo_places_init(struct dwo_places *dwos, struct parser *parser, const struct debugfile_finder *finder,
		     const struct debugfile *file)
{
	*dwos = (struct dwo_places){
		.finder = finder, .file = file,
		.files = {
			.parser = parser, .object = file->object, .suspect = &dwos->suspect.object,
			.look = look_everywhere, .ctx = dwos,
			.question_ms = PARSER_LINES_MS, .dwos_ms = DWOS_MS, .end = UINT64_MAX,
			.absent = dwos->absent,
		},
	};
	stand_in_init(&dwos->suspect, file->object, SUSPECT_PARTS);
}

void dwo_places_note(const struct dwo_places *dwos, size_t size, char *ret_note)
{
	static const char *const words[] = {
		/* it was given, and failed late */
		[DWO_NOT_MISSING] = "cannot be read", [DWO_UNREADABLE] = "cannot be read",
		[DWO_ABSENT] = "are not here", [DWO_OTHER_BUILD] = "are of another build",
	};
	const struct dwo_files *files = &dwos->files;

	if (!files->without)
		ret_note[0] = '\0';
	else if (dwos->file->split.fd >= 0)
		snprintf(ret_note, size, "%u addresses without inlined functions: the split DWARF package (.dwp) does not have them: "
			 "pack it anew", files->without);
	else if (files->why == DWO_LATE)
		snprintf(ret_note, size, "%u addresses without inlined functions: .dwo files of its split DWARF take longer than %u seconds "
			 "to read: pack them as a .dwp file", files->without, DWOS_MS / 1000);
	else
		snprintf(ret_note, size, "%u addresses without inlined functions: .dwo files of its split DWARF %s%s%s: pass their "
			 "directory with `--debug-dir'", files->without, words[files->why], files->missing[0] ? ", such as " : "",
			 files->missing);
}
