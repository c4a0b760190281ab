// SPDX-License-Identifier: Apache-2.0
#include "cli/index_cache.h"

#include <limits.h>

#include "cli/places.h"
#include "helper/cache.h"
#include "helper/index_store.h"

/* The directory, made if @make. -errno: there is none */
static int open_directory(bool make)
{
	char path[PATH_MAX];
	int r = places_cache("dwarf-index", path);

	return r < 0 ? r : index_store_open(path, make);
}

/* False: the file has no build-id to find it by. */
static bool name_of(const struct debugfile *file, char name[static CACHE_NAME_BYTES])
{
	snprintf(name, CACHE_NAME_BYTES, "%s" INDEX_STORE_SUFFIX, file->facts.build_id);
	return file->with_dwarf && file->facts.build_id[0];
}

void index_cache_load(struct parser *parser, const struct debugfile *file)
{
	char name[CACHE_NAME_BYTES];
	_cleanup_close_ int directory = name_of(file, name) ? open_directory(false) : -1, fd = -1;
	uint64_t size;

	if (directory < 0)
		return;
	fd = index_store_read(directory, name, &size);
	/* one of another version, or damaged, is made anew */
	if (fd >= 0 && parser_load_index(parser, file->object, fd, size, PARSER_LINES_MS) == -EBADMSG)
		index_store_remove(directory, name);
}

void index_cache_save(struct parser *parser, const struct debugfile *file)
{
	char name[CACHE_NAME_BYTES];
	_cleanup_close_ int index = -1, directory = -1;
	uint64_t size;

	if (!name_of(file, name) || parser_save_index(parser, file->object, PARSER_LINES_MS, &index, &size) < 0)
		return;
	directory = open_directory(true);
	if (directory >= 0)
		index_store_write(directory, name, index, size, INDEX_STORE_BYTES);
}
