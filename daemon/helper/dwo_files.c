// SPDX-License-Identifier: Apache-2.0
#include "helper/dwo_files.h"

#include <limits.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/utf8.h"

struct dwo_look {
	struct dwo_files *files;
	const struct dwarf_dwo_names *names;
	uint32_t number;
	enum dwo_missing why;		/* it is not had so far */
};

/* Of the time for all of them what one question may take; 0: it is over. */
static uint32_t limit_of(const struct dwo_files *files)
{
	const uint64_t now = clock_monotonic();

	return files->deadline > now ? (uint32_t)min_of((files->deadline - now) / NSEC_PER_MSEC, (uint64_t)files->question_ms) : 0;
}

static int ask_lines(const struct dwo_files *files, const struct object *object, const uint64_t *addresses, uint32_t count,
		     struct lines_answer *ret_answer)
{
	const uint64_t now = clock_monotonic();
	const uint64_t left_ms = files->end > now ? (files->end - now) / NSEC_PER_MSEC : 0;

	return left_ms ? parser_lines(files->parser, object, addresses, count,
				      (uint32_t)min_of(left_ms, (uint64_t)files->question_ms), ret_answer) : -ETIME;
}

/* As one path that leads nowhere but down: relative, and without "..". False: it is too long. */
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

bool dwo_path(const struct dwarf_dwo_names *names, char ret_path[static PATH_MAX])
{
	const bool is_absolute = names->name[0] == '/';

	return (is_absolute || names->directory[0] == '/') &&
	       snprintf(ret_path, PATH_MAX, "%s%s%s", is_absolute ? "" : names->directory, is_absolute ? "" : "/",
			names->name) < PATH_MAX;
}

bool dwo_path_below(const struct dwarf_dwo_names *names, unsigned int way, char ret_path[static PATH_MAX])
{
	const char *slash = strrchr(names->name, '/');

	switch (way) {
	case 0:
		return join(names->name[0] == '/' ? "" : names->directory, names->name, ret_path);
	case 1:
		return names->name[0] != '/' && join("", names->name, ret_path);
	default:
		return slash && join("", slash + 1, ret_path);
	}
}

int dwo_miss(struct dwo_look *look, enum dwo_missing why)
{
	look->why = max_of(look->why, why);
	return 0;
}

/* Whatever befalls the parser is laid to the file. */
int dwo_give(struct dwo_look *look, int fd, const struct stat *st, const char *path)
{
	struct dwo_files *files = look->files;
	const struct parser_part dwo = { .fd = fd, .size = fd < 0 ? 0 : (uint64_t)st->st_size };
	const uint32_t limit = limit_of(files);
	struct object *object;
	int r;

	if (fd < 0)
		return dwo_miss(look, fd == -ENOENT || fd == -ENOTDIR ? DWO_ABSENT : DWO_UNREADABLE);
	if (!limit)
		return -ETIME;
	object = object_new(OBJECT_FILE, path);
	if (!object)
		return dwo_miss(look, DWO_UNREADABLE);
	object_set_file(object, st);
	r = parser_give_dwo(files->parser, object, look->number, limit, &dwo);
	object_unref(object);
	switch (r) {
	case 0:
		files->any = true;
		files->given++;
		return 1;
	case -ENOENT:
		return dwo_miss(look, DWO_OTHER_BUILD);
	case -EBADMSG:
	case -ETIME:
	case -ENOMEM:
	case -ENOTRECOVERABLE:
		return dwo_miss(look, DWO_UNREADABLE);
	default:
		/* the parser, and with it what is open there, is gone */
		return r;
	}
}

/* Also of those that one question after the other wants, what is nowhere is looked for once. */
static int look_once(struct dwo_look *look)
{
	struct dwo_files *files = look->files;
	const uint64_t hashes[] = { files->seed, hash_string(look->names->directory), hash_string(look->names->name) };
	const uint64_t hash = hash_words(hashes, ARRAY_SIZE(hashes));
	uint64_t *slot = &files->absent[hash % DWO_ABSENT_SLOTS];
	int r;

	if (hash && *slot == hash)
		return 0;
	r = files->look(files->ctx, look->names, look);
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

static int give_all(struct dwo_files *files, uint32_t count)
{
	_cleanup_free_ struct dwarf_dwo_names *names = malloc(sizeof(*names));
	int r = names ? 0 : -ENOMEM;

	for (uint32_t i = 0; r >= 0 && i < count; i++) {
		struct dwo_look look = { .files = files, .names = names, .number = i, .why = DWO_ABSENT };
		const uint32_t limit = limit_of(files);

		r = limit ? parser_dwo_names(files->parser, files->suspect, i, limit, names) : -ETIME;
		if (!r)
			r = look_once(&look);
	}
	return min_of(r, 0);
}

static int want(struct dwo_files *files, const uint64_t *addresses, uint32_t *count)
{
	const uint32_t limit = limit_of(files);
	uint32_t dwos = 0;
	int r = limit ? parser_dwos(files->parser, files->suspect, addresses, *count, limit, &dwos, count) : -ETIME;

	if (!r)
		r = give_all(files, dwos);
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
	int r;

	if (!files->is_wanted) {
		r = ask_lines(files, files->object, addresses, *count, ret_answer);
		if (r < 0 || !ret_answer->split)
			return r;
		lines_answer_free(ret_answer);
		files->is_wanted = true;
		files->deadline = clock_monotonic() + files->dwos_ms * NSEC_PER_MSEC;
	}
	r = files->is_off ? 0 : want(files, addresses, count);
	if (!r)
		r = ask_lines(files, files->any ? files->suspect : files->object, addresses, *count, ret_answer);
	if (!r)
		files->without += ret_answer->split;
	return r;
}

void dwo_files_drop(struct dwo_files *files)
{
	files->is_off = true;
	files->any = false;
}
