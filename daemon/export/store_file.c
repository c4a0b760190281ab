// SPDX-License-Identifier: Apache-2.0
#include "export/store_file.h"

#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/file.h"
#include "export/record.h"

#define FILE_MODE 0600		/* what ran on a host is nobody else's business */

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
	int err = record_write(file->fd, &file->size, data, size, NULL);

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
		file_sync_directory(fd);
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
