// SPDX-License-Identifier: Apache-2.0
#include "export/store.h"

#include <dirent.h>
#include <endian.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include "base/clock.h"
#include "base/log.h"

#define FILE_MODE 0600		/* what ran on a host is nobody else's business */
#define STORE_PREFIX "profiles-"
#define STORE_SUFFIX ".otlp"
#define STORE_FILES 16u		/* a file is closed at this fraction of the store */
#define STORE_FILE_AGE (3600 * NSEC_PER_SEC)

/* Length and message; a message that does not go out whole is taken back. */
static int write_message(int fd, uint64_t *size, const uint8_t *data, size_t data_size)
{
	uint32_t length = htobe32((uint32_t)data_size);
	struct iovec parts[] = {
		{ .iov_base = &length, .iov_len = sizeof(length) },
		{ .iov_base = (void *)(uintptr_t)data, .iov_len = data_size },
	};
	size_t left = sizeof(length) + data_size;
	ssize_t written;
	int err;

	if (!data_size || data_size > STORE_MESSAGE_MAX)
		return -EMSGSIZE;
	while (left) {
		written = writev(fd, parts, ARRAY_SIZE(parts));
		if (written < 0 && errno == EINTR)
			continue;
		if (written <= 0) {
			err = written < 0 ? -errno : -EIO;
			/* best effort: readers also stop at a message that is cut off */
			if (ftruncate(fd, (off_t)*size) || lseek(fd, (off_t)*size, SEEK_SET) < 0)
				log_debug("a cut message stays at the end of a file: %m");
			return err;
		}
		left -= (size_t)written;
		for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
			size_t step = min_of((size_t)written, parts[i].iov_len);

			parts[i].iov_base = (char *)parts[i].iov_base + step;
			parts[i].iov_len -= step;
			written -= (ssize_t)step;
		}
	}
	*size += sizeof(length) + data_size;
	return 0;
}

/* A name that was made or changed survives a power cut once its directory is synced. */
static void sync_directory(int directory)
{
	if (fsync(directory) && errno != EINVAL && errno != EROFS)
		log_debug("cannot sync a directory: %m");
}

struct store_file {
	int fd;
	char *path;
	bool is_renamed;
	char *partial;		/* name until the first message is in; NULL for a device or pipe */
	uint64_t size;
};

static void store_file_free(struct store_file *file)
{
	if (file->fd >= 0)
		close(file->fd);
	free(file->path);
	free(file->partial);
	free(file);
}

int store_file_create(const char *path, struct store_file **ret_file)
{
	struct store_file *file = calloc(1, sizeof(*file));
	struct stat st;
	int err = -ENOMEM;

	if (!file)
		return -ENOMEM;
	file->fd = -1;
	file->path = strdup(path);
	if (!file->path)
		goto failed;
	/* a pipe or device is written to, not replaced */
	if (!stat(path, &st) && !S_ISREG(st.st_mode)) {
		file->fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
	} else {
		if (asprintf(&file->partial, "%s.partial", path) < 0) {
			file->partial = NULL;
			goto failed;
		}
		file->fd = open(file->partial, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW,
				FILE_MODE);
	}
	if (file->fd < 0) {
		err = -errno;
		goto failed;
	}
	/* two recordings into one file would destroy each other's: emptied only by its owner */
	if (file->partial &&
	    (flock(file->fd, LOCK_EX | LOCK_NB) || ftruncate(file->fd, 0))) {
		err = errno == EWOULDBLOCK ? -EBUSY : -errno;
		goto failed;
	}
	*ret_file = file;
	return 0;
failed:
	store_file_free(file);
	return err;
}

int store_file_append(struct store_file *file, const uint8_t *data, size_t size)
{
	int err = write_message(file->fd, &file->size, data, size);

	if (err || !file->partial)
		return err;
	if (rename(file->partial, file->path))
		return -errno;
	free(steal_ptr(file->partial));
	file->is_renamed = true;
	return 0;
}

static void sync_parent(const char *path)
{
	const char *slash = strrchr(path, '/');
	_cleanup_free_ char *parent =
		slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
	_cleanup_close_ int fd = parent ? open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;

	/* one that cannot be read cannot be synced either */
	if (fd >= 0)
		sync_directory(fd);
}

int store_file_close(struct store_file *file, uint64_t *ret_bytes)
{
	int err = 0;

	if (ret_bytes)
		*ret_bytes = file->size;
	if (file->partial)
		unlink(file->partial);
	else if (fdatasync(file->fd) && errno != EINVAL && errno != EROFS)
		err = -errno;
	if (file->is_renamed)
		sync_parent(file->path);
	if (close(file->fd) && !err)
		err = -errno;
	file->fd = -1;
	store_file_free(file);
	return err;
}

/* One file of a store, oldest first by name. */
struct store_entry {
	uint64_t time;		/* Unix ms, from its name */
	uint64_t size;
};

struct store {
	int directory;
	uint64_t max_bytes, total;
	struct store_entry *entries;	/* sorted by time; the last is open when fd >= 0 */
	size_t count, capacity;
	int fd;
	uint64_t opened;		/* CLOCK_MONOTONIC */
};

struct store_name {
	char text[48];
};

static struct store_name entry_name(uint64_t time)
{
	struct store_name name;

	snprintf(name.text, sizeof(name.text), STORE_PREFIX "%013llu" STORE_SUFFIX,
		 (unsigned long long)time);
	return name;
}

/* Only names that we would make ourselves are ours to remove. */
static bool entry_parse(const char *text, uint64_t *ret_time)
{
	const char *digits = text + strlen(STORE_PREFIX);
	char *end;

	if (strncmp(text, STORE_PREFIX, strlen(STORE_PREFIX)) || *digits < '0' || *digits > '9')
		return false;
	errno = 0;
	*ret_time = strtoull(digits, &end, 10);
	return !errno && !strcmp(entry_name(*ret_time).text, text);
}

static int entry_add(struct store *store, uint64_t time, uint64_t size)
{
	struct store_entry *entries;
	size_t capacity;

	if (store->count == store->capacity) {
		capacity = store->capacity ? store->capacity * 2 : 64;
		entries = reallocarray(store->entries, capacity, sizeof(*entries));
		if (!entries)
			return -ENOMEM;
		store->entries = entries;
		store->capacity = capacity;
	}
	store->entries[store->count++] = (struct store_entry){ .time = time, .size = size };
	store->total += size;
	return 0;
}

static int entry_compare(const void *a, const void *b)
{
	const struct store_entry *left = a, *right = b;

	return (left->time > right->time) - (left->time < right->time);
}

static int store_scan(struct store *store)
{
	struct dirent *dirent;
	struct stat st;
	uint64_t time;
	DIR *dir;
	int fd, err = 0;

	fd = openat(store->directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	dir = fd >= 0 ? fdopendir(fd) : NULL;
	if (!dir) {
		err = -errno;
		if (fd >= 0)
			close(fd);
		return err;
	}
	while (!err && (dirent = readdir(dir)))
		if (entry_parse(dirent->d_name, &time) &&
		    !fstatat(store->directory, dirent->d_name, &st, AT_SYMLINK_NOFOLLOW) &&
		    S_ISREG(st.st_mode))
			err = entry_add(store, time, (uint64_t)st.st_size);
	closedir(dir);
	if (store->count)
		qsort(store->entries, store->count, sizeof(*store->entries), entry_compare);
	return err;
}

static void store_roll(struct store *store)
{
	if (store->fd < 0)
		return;
	/* a finished file survives a power cut; the open one may lose its newest messages */
	if (fdatasync(store->fd))
		log_debug("cannot sync a file of the store: %m");
	close(store->fd);
	store->fd = -1;
}

/* Remove the oldest until @bytes more fit. The open file is the newest and goes last. */
static int store_make_room(struct store *store, uint64_t bytes)
{
	size_t gone = 0;
	int err = 0;

	while (store->total + bytes > store->max_bytes && gone < store->count) {
		struct store_entry *oldest = &store->entries[gone];

		if (gone + 1 == store->count)
			store_roll(store);
		if (unlinkat(store->directory, entry_name(oldest->time).text, 0) &&
		    errno != ENOENT) {
			err = -errno;
			break;
		}
		store->total -= oldest->size;
		gone++;
	}
	store->count -= gone;
	if (gone)
		memmove(store->entries, store->entries + gone,
			store->count * sizeof(*store->entries));
	return err;
}

static int store_open_next(struct store *store)
{
	uint64_t now = clock_read(CLOCK_REALTIME) / NSEC_PER_MSEC;
	int err;

	/* names stay in order even if the clock was set back */
	if (store->count && now <= store->entries[store->count - 1].time)
		now = store->entries[store->count - 1].time + 1;
	store->fd = openat(store->directory, entry_name(now).text,
			   O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, FILE_MODE);
	if (store->fd < 0)
		return -errno;
	sync_directory(store->directory);
	store->opened = clock_monotonic();
	err = entry_add(store, now, 0);
	if (err)
		store_roll(store);
	return err;
}

static void sync_above(int directory)
{
	_cleanup_close_ int fd = openat(directory, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd >= 0)
		sync_directory(fd);
}

int store_open(const char *directory, uint64_t max_bytes, struct store **ret_store)
{
	struct store *store = calloc(1, sizeof(*store));
	bool is_new;
	int err;

	if (!store)
		return -ENOMEM;
	store->fd = -1;
	store->max_bytes = max_bytes;
	is_new = !mkdir(directory, 0750);
	if (!is_new && errno != EEXIST) {
		err = -errno;
		free(store);
		return err;
	}
	store->directory = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (store->directory < 0) {
		err = -errno;
		free(store);
		return err;
	}
	if (is_new)
		sync_above(store->directory);
	/* a second owner would remove what the first one counts on */
	if (flock(store->directory, LOCK_EX | LOCK_NB))
		err = errno == EWOULDBLOCK ? -EBUSY : -errno;
	else
		err = store_scan(store);
	if (err) {
		store_close(store);
		return err;
	}
	*ret_store = store;
	return 0;
}

int store_append(struct store *store, const uint8_t *data, size_t size)
{
	uint64_t bytes = size + sizeof(uint32_t);
	struct store_entry *entry;
	int err;

	if (bytes > store->max_bytes)
		return -EFBIG;
	if (store->fd >= 0 &&
	    (store->entries[store->count - 1].size + bytes > store->max_bytes / STORE_FILES ||
	     clock_monotonic() - store->opened > STORE_FILE_AGE))
		store_roll(store);
	err = store_make_room(store, bytes);
	if (err)
		return err;
	if (store->fd < 0) {
		err = store_open_next(store);
		if (err)
			return err;
	}
	entry = &store->entries[store->count - 1];
	store->total -= entry->size;
	err = write_message(store->fd, &entry->size, data, size);
	store->total += entry->size;
	return err;
}

void store_close(struct store *store)
{
	if (!store)
		return;
	store_roll(store);
	close(store->directory);
	free(store->entries);
	free(store);
}
