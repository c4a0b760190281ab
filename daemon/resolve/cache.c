// SPDX-License-Identifier: Apache-2.0
#include "resolve/cache.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <stacktap/unwind_table.h>

#include "base/file.h"

enum {
	NAME_BYTES = 2 * KEY_BYTES,	/* and a suffix */
	EVICT_PART = 4,			/* of the limit goes at once */
};

static const char suffix[] = ".table", temporary[] = "new.tmp";

struct cache {
	int directory;
	uint64_t limit;
	struct cache_stats stats;
};

struct cached {
	char name[NAME_BYTES + sizeof(suffix)];
	struct timespec used;
	uint64_t bytes;
};

const struct cache_stats *cache_stats(const struct cache *cache)
{
	return &cache->stats;
}

static bool is_table_name(const char *name)
{
	return strlen(name) == NAME_BYTES + sizeof(suffix) - 1 &&
	       strspn(name, "0123456789abcdef") == NAME_BYTES && !strcmp(name + NAME_BYTES, suffix);
}

static int compare_used(const void *a, const void *b)
{
	const struct cached *x = a, *y = b;

	if (x->used.tv_sec != y->used.tv_sec)
		return x->used.tv_sec < y->used.tv_sec ? -1 : 1;
	return (x->used.tv_nsec > y->used.tv_nsec) - (x->used.tv_nsec < y->used.tv_nsec);
}

/* The tables on disk; what else lies there is no business of ours. */
static int list(const struct cache *cache, struct cached **ret_files, size_t *ret_count)
{
	_cleanup_free_ struct cached *files = NULL;
	size_t count = 0, capacity = 0;
	int fd = openat(cache->directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct dirent *entry;
	struct stat st;
	DIR *dir;

	dir = fd < 0 ? NULL : fdopendir(fd);
	if (!dir) {
		int r = -errno;

		if (fd >= 0)
			close(fd);
		return r;
	}
	while (count < 2 * CACHE_FILES_MAX && (entry = readdir(dir))) {
		if (!is_table_name(entry->d_name) ||
		    fstatat(cache->directory, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		if (count == capacity) {
			struct cached *grown;

			capacity = capacity ? 2 * capacity : 64;
			grown = reallocarray(files, capacity, sizeof(*files));
			if (!grown)
				break;
			files = grown;
		}
		memcpy(files[count].name, entry->d_name, sizeof(files[count].name));
		files[count].used = st.st_mtim;
		files[count++].bytes = (uint64_t)st.st_size;
	}
	closedir(dir);
	*ret_files = steal_ptr(files);
	*ret_count = count;
	return 0;
}

/* Count what is there, and remove the least recently used until @bytes and @files more fit. */
static void make_room(struct cache *cache, uint64_t bytes, uint64_t more)
{
	_cleanup_free_ struct cached *files = NULL;
	size_t count = 0;

	if (list(cache, &files, &count) < 0)
		return;
	cache->stats.files = count;
	cache->stats.bytes = 0;
	for (size_t i = 0; i < count; i++)
		cache->stats.bytes += files[i].bytes;
	if (!count || (cache->stats.bytes + bytes <= cache->limit && count + more <= CACHE_FILES_MAX))
		return;
	qsort(files, count, sizeof(*files), compare_used);
	for (size_t i = 0; i < count; i++) {
		if (cache->stats.bytes + bytes <= cache->limit - cache->limit / EVICT_PART &&
		    cache->stats.files + more <= CACHE_FILES_MAX - CACHE_FILES_MAX / EVICT_PART)
			return;
		if (unlinkat(cache->directory, files[i].name, 0) < 0)
			continue;
		cache->stats.files--;
		cache->stats.bytes -= files[i].bytes;
		cache->stats.evicted++;
	}
}

int cache_open(const char *path, uint64_t limit_bytes, struct cache **ret_cache)
{
	_cleanup_close_ int directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct cache *cache;
	struct stat st;

	if (directory < 0 || fstat(directory, &st) < 0)
		return -errno;
	/* a table that somebody else wrote could give every stack another shape */
	if (st.st_uid != geteuid() || st.st_mode & (S_IWGRP | S_IWOTH))
		return -EPERM;
	cache = calloc(1, sizeof(*cache));
	if (!cache)
		return -ENOMEM;
	cache->directory = steal_fd(&directory);
	cache->limit = limit_bytes;
	make_room(cache, 0, 0);
	*ret_cache = cache;
	return 0;
}

void cache_close(struct cache *cache)
{
	if (cache)
		close(cache->directory);
	free(cache);
}

static bool write_all(int fd, const uint8_t *data, size_t size)
{
	for (size_t done = 0; done < size;) {
		ssize_t n = write(fd, data + done, size - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		done += (size_t)n;
	}
	return true;
}

static int get(struct cache *cache, const char *name, uint16_t machine, void **ret_data,
	       size_t *ret_size)
{
	_cleanup_close_ int fd = openat(cache->directory, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	_cleanup_free_ void *data = NULL;
	struct unwind_table table;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -ENOENT;
	if (S_ISREG(st.st_mode) && st.st_size > 0 && st.st_size <= UNWIND_TABLE_MAX_BYTES) {
		data = malloc((size_t)st.st_size);
		if (!data)
			return -ENOMEM;
	}
	if (!data || file_pread(fd, data, (size_t)st.st_size, 0) < 0 ||
	    unwind_table_check(data, (size_t)st.st_size, &table) < 0 || table.machine != machine) {
		cache->stats.errors++;
		unlinkat(cache->directory, name, 0);
		return -ENOENT;
	}
	futimens(fd, NULL);
	*ret_data = steal_ptr(data);
	*ret_size = (size_t)st.st_size;
	return 0;
}

static void write_file(struct cache *cache, const char *name, const void *data, size_t size)
{
	_cleanup_close_ int fd = -1;

	unlinkat(cache->directory, temporary, 0);
	fd = openat(cache->directory, temporary,
		    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0 || !write_all(fd, data, size) ||
	    renameat(cache->directory, temporary, cache->directory, name) < 0) {
		cache->stats.errors++;
		unlinkat(cache->directory, temporary, 0);
		return;
	}
	cache->stats.files++;
	cache->stats.bytes += size;
}

static void put(struct cache *cache, const char *name, const void *data, size_t size)
{
	if (size > cache->limit / EVICT_PART)
		return;
	if (cache->stats.bytes + size > cache->limit || cache->stats.files >= CACHE_FILES_MAX)
		make_room(cache, size, 1);
	/* `record` and the daemon may be at it at once, and there is one temporary name */
	if (flock(cache->directory, LOCK_EX | LOCK_NB) < 0)
		return;
	write_file(cache, name, data, size);
	flock(cache->directory, LOCK_UN);
}

static void make_name(const uint8_t key[static KEY_BYTES],
		      char ret_name[static NAME_BYTES + sizeof(suffix)])
{
	for (size_t i = 0; i < KEY_BYTES; i++)
		snprintf(ret_name + 2 * i, 3, "%02x", key[i]);
	memcpy(ret_name + NAME_BYTES, suffix, sizeof(suffix));
}

int cache_get(struct cache *cache, const uint8_t key[static KEY_BYTES], uint16_t machine,
	      void **ret_data, size_t *ret_size)
{
	char name[NAME_BYTES + sizeof(suffix)];
	int r;

	make_name(key, name);
	r = get(cache, name, machine, ret_data, ret_size);
	cache->stats.hits += r == 0;
	cache->stats.misses += r == -ENOENT;
	return r;
}

void cache_put(struct cache *cache, const uint8_t key[static KEY_BYTES], const void *data,
	       size_t size)
{
	char name[NAME_BYTES + sizeof(suffix)];

	make_name(key, name);
	put(cache, name, data, size);
}
