// SPDX-License-Identifier: Apache-2.0
#include "helper/cache.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

enum { FILES_MAX = 4096 };

int cache_make_directory(char *path)
{
	for (char *end = strchr(path + 1, '/'); end; end = strchr(end + 1, '/')) {
		*end = '\0';
		if (mkdir(path, 0700) < 0 && errno != EEXIST) {
			*end = '/';
			return -errno;
		}
		*end = '/';
	}
	return mkdir(path, 0700) < 0 && errno != EEXIST ? -errno : 0;
}

/* A file of ours, by its name. */
struct kept {
	char name[CACHE_NAME_BYTES];
	struct timespec used;
	uint64_t bytes;
};

static bool has_suffix(const char *name, const char *suffix)
{
	const size_t length = strlen(name), end = strlen(suffix);

	return length > end && !strcmp(name + length - end, suffix);
}

static int compare_use(const void *a, const void *b)
{
	const struct kept *x = a, *y = b;

	if (x->used.tv_sec != y->used.tv_sec)
		return x->used.tv_sec < y->used.tv_sec ? -1 : 1;
	return (x->used.tv_nsec > y->used.tv_nsec) - (x->used.tv_nsec < y->used.tv_nsec);
}

static bool is_ours(const char *name, const char *const *suffixes)
{
	while (*suffixes && !has_suffix(name, *suffixes))
		suffixes++;
	return *suffixes && strlen(name) < CACHE_NAME_BYTES;
}

/* Up to @max of our files in @dir. */
static size_t list(DIR *dir, const char *const *suffixes, struct kept *files, size_t max)
{
	struct dirent *entry;
	size_t count = 0;
	struct stat st;

	while (count < max && (entry = readdir(dir))) {
		if (!is_ours(entry->d_name, suffixes) ||
		    fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode))
			continue;
		strcpy(files[count].name, entry->d_name);
		files[count].used = st.st_mtim;
		files[count++].bytes = (uint64_t)st.st_size;
	}
	return count;
}

void cache_make_room(int directory, const char *const *suffixes, uint64_t bytes, uint64_t limit)
{
	_cleanup_free_ struct kept *files = calloc(FILES_MAX, sizeof(*files));
	int fd = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	uint64_t total = bytes;
	size_t count;

	if (!dir && fd >= 0)
		close(fd);
	if (!dir || !files) {
		if (dir)
			closedir(dir);
		return;
	}
	count = list(dir, suffixes, files, FILES_MAX);
	closedir(dir);
	qsort(files, count, sizeof(*files), compare_use);
	for (size_t i = 0; i < count; i++)
		total += files[i].bytes;
	for (size_t i = 0; i < count; i++) {
		if (total <= limit && count - i < FILES_MAX)
			break;
		if (unlinkat(directory, files[i].name, 0) == 0)
			total -= files[i].bytes;
	}
}
