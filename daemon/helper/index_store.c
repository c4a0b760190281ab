// SPDX-License-Identifier: Apache-2.0
#include "helper/index_store.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "helper/cache.h"
#include "helper/memfd.h"

enum { STEP_BYTES = 64 << 10 };

static const char partial[] = ".partial";
static const char *const suffixes[] = { INDEX_STORE_SUFFIX, partial, NULL };

static bool is_ours(const struct stat *st)
{
	return st->st_uid == geteuid() && !(st->st_mode & (S_IWGRP | S_IWOTH));
}

int index_store_open(const char *path, bool make)
{
	_cleanup_close_ int fd = -1;
	char copy[PATH_MAX];
	struct stat st;
	int r;

	if (strlen(path) >= sizeof(copy))
		return -ENAMETOOLONG;
	strcpy(copy, path);
	r = make ? cache_make_directory(copy) : 0;
	if (r < 0)
		return r;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	return is_ours(&st) ? steal_fd(&fd) : -EPERM;
}

int index_store_read(int directory, const char *name, uint64_t *ret_size)
{
	_cleanup_close_ int fd = openat(directory, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || !is_ours(&st))
		return -EPERM;
	/* when it was used last */
	futimens(fd, NULL);
	*ret_size = (uint64_t)st.st_size;
	return steal_fd(&fd);
}

static int copy_all(int from, int to, uint64_t size)
{
	_cleanup_free_ uint8_t *bytes = malloc(STEP_BYTES);
	int r = bytes ? 0 : -ENOMEM;

	for (uint64_t at = 0; !r && at < size;) {
		const size_t step = (size_t)min_of((uint64_t)STEP_BYTES, size - at);

		r = memfd_read(from, bytes, step, at);
		if (!r && write(to, bytes, step) != (ssize_t)step)
			r = -EIO;
		at += step;
	}
	return r;
}

int index_store_write(int directory, const char *name, int index, uint64_t size, uint64_t limit)
{
	char part[CACHE_NAME_BYTES];
	_cleanup_close_ int fd = -1;
	int r;

	if (size > limit)
		return -EFBIG;
	snprintf(part, sizeof(part), "%d%s", getpid(), partial);
	cache_make_room(directory, suffixes, size, limit);
	fd = openat(directory, part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return -errno;
	r = copy_all(index, fd, size);
	if (!r && renameat(directory, part, directory, name) < 0)
		r = -errno;
	if (r < 0)
		unlinkat(directory, part, 0);
	return r;
}

void index_store_remove(int directory, const char *name)
{
	unlinkat(directory, name, 0);
}
