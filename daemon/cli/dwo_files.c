// SPDX-License-Identifier: Apache-2.0
#include "cli/dwo_files.h"

#include <limits.h>
#include <string.h>

#include "base/utf8.h"

/* Where a .dwo file is looked for; what is there is it if the parser finds its id. */
struct look {
	struct dwo_files *files;
	const struct dwarf_dwo_names *names;
	uint32_t number;
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

static bool give(const struct look *look, const struct sysroot *root, const char *path)
{
	struct dwo_files *files = look->files;
	struct stat st;
	_cleanup_close_ int fd = sysroot_open_file(root, path, &st);
	const struct parser_part dwo = { .fd = fd, .size = fd < 0 ? 0 : (uint64_t)st.st_size };

	if (fd < 0 || parser_give_dwo(files->parser, files->file->object, look->number, PARSER_LINES_MS, &dwo) < 0)
		return false;
	files->any = true;
	return true;
}

static bool give_below(const struct look *look, const struct sysroot *root, const char *directory, int length,
		       const char *path)
{
	char whole[PATH_MAX];

	return snprintf(whole, sizeof(whole), "%.*s/%s", length, directory, path) < (int)sizeof(whole) &&
	       give(look, root, whole);
}

/* Where it was compiled. */
static bool look_there(const struct look *look)
{
	const struct sysroot *root = debugfile_finder_sysroot(look->files->finder);
	const struct dwarf_dwo_names *names = look->names;
	char path[PATH_MAX], resolved[PATH_MAX];

	if (snprintf(path, sizeof(path), "%s%s%s", names->name[0] == '/' ? "" : names->directory,
		     names->name[0] == '/' ? "" : "/", names->name) >= (int)sizeof(path))
		return false;
	return root && path[0] == '/' && !sysroot_resolve(root, path, resolved) && give(look, root, resolved);
}

/* Below a directory: as where it was compiled, as relative to that, by its name. */
static bool look_below(const struct look *look, const struct sysroot *root, const char *directory, int length)
{
	const struct dwarf_dwo_names *names = look->names;
	const char *slash = strrchr(names->name, '/');
	char path[PATH_MAX];

	if (join(names->name[0] == '/' ? "" : names->directory, names->name, path) &&
	    give_below(look, root, directory, length, path))
		return true;
	if (names->name[0] != '/' && join("", names->name, path) && give_below(look, root, directory, length, path))
		return true;
	return slash && join("", slash + 1, path) && give_below(look, root, directory, length, path);
}

static bool look_everywhere(const struct look *look)
{
	const struct debugfile_places *places = debugfile_finder_places(look->files->finder);
	const struct debugfile *file = look->files->file;
	const char *slash = strrchr(file->object->path, '/');

	if (look_there(look))
		return true;
	for (size_t i = 0; i < places->directory_count; i++)
		if (look_below(look, NULL, places->directories[i], (int)strlen(places->directories[i])))
			return true;
	return look_below(look, file->root, slash ? file->object->path : ".",
			  slash ? (int)(slash - file->object->path) : 1);
}

static int give_all(struct dwo_files *files, uint32_t count)
{
	_cleanup_free_ struct dwarf_dwo_names *names = malloc(sizeof(*names));
	struct look look = { .files = files, .names = names };

	if (!names)
		return -ENOMEM;
	for (; look.number < count; look.number++) {
		int r = parser_dwo_names(files->parser, files->file->object, look.number, PARSER_LINES_MS, names);

		if (r < 0)
			return r;
		if (!look_everywhere(&look) && !files->missing[0])
			utf8_copy(files->missing, sizeof(files->missing), names->name);
	}
	return 0;
}

int dwo_files_ask(struct dwo_files *files, const uint64_t *addresses, uint32_t *count, struct lines_answer *ret_answer)
{
	const struct object *object = files->file->object;
	uint32_t dwos;
	int r = 0;

	if (!files->is_wanted || files->is_off) {
		r = parser_lines(files->parser, object, addresses, *count, ret_answer);
		if (r < 0 || !ret_answer->split || files->is_off) {
			files->without += r < 0 ? 0 : ret_answer->split;
			return r;
		}
		lines_answer_free(ret_answer);
		files->is_wanted = true;
	}
	r = parser_dwos(files->parser, object, addresses, *count, PARSER_LINES_MS, &dwos, count) ?:
	    give_all(files, dwos) ?: parser_lines(files->parser, object, addresses, *count, ret_answer);
	if (!r)
		files->without += ret_answer->split;
	return r;
}

void dwo_files_note(const struct dwo_files *files, size_t size, char *ret_note)
{
	if (!files->without)
		ret_note[0] = '\0';
	else if (files->file->split.fd >= 0)
		snprintf(ret_note, size, "%u without inlined functions: the split DWARF package (.dwp) does not have them: "
			 "pack it anew", files->without);
	else
		snprintf(ret_note, size, "%u without inlined functions: .dwo files of its split DWARF are not here, as %s: "
			 "name a directory that has them by `--debug-dir'", files->without, files->missing);
}
