// SPDX-License-Identifier: Apache-2.0
#include "cli/index_cache.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/places.h"
#include "helper/cache.h"
#include "helper/memfd.h"

#define LIMIT_BYTES (256ULL << 20)

enum { STEP_BYTES = 64 << 10 };

static const char whole[] = ".index", partial[] = ".partial";
static const char *const suffixes[] = { whole, partial, NULL };

/* The directory, made if @make. -1: there is none */
static int open_directory(bool make)
{
	char path[PATH_MAX];

	if (places_cache("dwarf-index", path) < 0 || (make && cache_make_directory(path) < 0))
		return -1;
	return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* False: the file has no build-id to find it by. */
static bool name_of(const struct debugfile *file, char name[static CACHE_NAME_BYTES])
{
	snprintf(name, CACHE_NAME_BYTES, "%s%s", file->facts.build_id, whole);
	return file->with_dwarf && file->facts.build_id[0];
}

void index_cache_load(struct parser *parser, const struct debugfile *file)
{
	char name[CACHE_NAME_BYTES];
	_cleanup_close_ int directory = name_of(file, name) ? open_directory(false) : -1, fd = -1;
	struct stat st;

	if (directory < 0)
		return;
	fd = openat(directory, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return;
	/* one of another version, or damaged, is made anew */
	if (parser_load_index(parser, file->object, fd, (uint64_t)st.st_size) == -EBADMSG)
		unlinkat(directory, name, 0);
	else
		utimensat(directory, name, NULL, AT_SYMLINK_NOFOLLOW);
}

static bool copy(int from, int to, uint64_t size)
{
	_cleanup_free_ uint8_t *bytes = malloc(STEP_BYTES);

	for (uint64_t at = 0; bytes && at < size;) {
		const size_t step = (size_t)min_of((uint64_t)STEP_BYTES, size - at);

		if (memfd_read(from, bytes, step, at) < 0 || write(to, bytes, step) != (ssize_t)step)
			return false;
		at += step;
	}
	return bytes;
}

/* Under its name once all of it is there. */
static void write_file(int directory, const char *name, int index, uint64_t size)
{
	char part[CACHE_NAME_BYTES];
	_cleanup_close_ int fd = -1;

	snprintf(part, sizeof(part), "%d%s", getpid(), partial);
	cache_make_room(directory, suffixes, size, LIMIT_BYTES);
	fd = openat(directory, part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd >= 0 && (!copy(index, fd, size) || renameat(directory, part, directory, name) < 0))
		unlinkat(directory, part, 0);
}

void index_cache_save(struct parser *parser, const struct debugfile *file)
{
	char name[CACHE_NAME_BYTES];
	_cleanup_close_ int index = -1, directory = -1;
	uint64_t size;

	if (!name_of(file, name) || parser_save_index(parser, file->object, &index, &size) < 0)
		return;
	directory = open_directory(true);
	if (directory >= 0)
		write_file(directory, name, index, size);
}
