// SPDX-License-Identifier: Apache-2.0
#include "base/file.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/log.h"

enum {
	FILE_CHUNK = 4096,
	NULL_MAJOR = 1, NULL_MINOR = 3,	/* /dev/null, in each kernel */
};

int file_read_fd(int fd, size_t max_bytes, char **ret_data, size_t *ret_size)
{
	_cleanup_free_ char *data = NULL;
	size_t size = 0, capacity = 0;

	for (;;) {
		ssize_t got;

		if (capacity - size < FILE_CHUNK) {
			size_t wanted = capacity ? 2 * capacity : 2 * FILE_CHUNK;
			char *larger = realloc(data, wanted + 1);

			if (!larger)
				return -ENOMEM;
			data = larger;
			capacity = wanted;
		}
		got = read(fd, data + size, capacity - size);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (got == 0)
			break;
		size += (size_t)got;
		if (size > max_bytes)
			return -EFBIG;
	}
	data[size] = '\0';
	*ret_data = steal_ptr(data);
	if (ret_size)
		*ret_size = size;
	return 0;
}

int file_open_regular(const char *path)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	struct stat st;

	if (fd < 0 || fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode) && !(S_ISCHR(st.st_mode) && st.st_rdev == makedev(NULL_MAJOR, NULL_MINOR)))
		return -EINVAL;
	return steal_fd(&fd);
}

int file_open(const char *path, FILE **ret_file)
{
	_cleanup_close_ int fd = file_open_regular(path);

	if (fd < 0)
		return fd;
	*ret_file = fdopen(fd, "r");
	if (!*ret_file)
		return -errno;
	steal_fd(&fd);
	return 0;
}

int file_read(int directory, const char *path, size_t max_bytes, char **ret_data, size_t *ret_size)
{
	_cleanup_close_ int fd = openat(directory, path, O_RDONLY | O_CLOEXEC | O_NOCTTY);

	return fd < 0 ? -errno : file_read_fd(fd, max_bytes, ret_data, ret_size);
}

int file_pread(int fd, void *ret_bytes, size_t size, uint64_t offset)
{
	for (size_t done = 0; done < size;) {
		ssize_t n = pread(fd, (char *)ret_bytes + done, size - done, (off_t)(offset + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -ENODATA;
		done += (size_t)n;
	}
	return 0;
}

int file_write(int fd, const void *data, size_t size)
{
	const char *bytes = data;

	while (size) {
		const ssize_t n = write(fd, bytes, size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		bytes += n;
		size -= (size_t)n;
	}
	return 0;
}

ssize_t file_read_text(int directory, const char *path, char *ret_text, size_t size)
{
	_cleanup_close_ int fd = openat(directory, path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	ssize_t n;

	if (fd < 0)
		return -errno;
	do
		n = read(fd, ret_text, size - 1);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	ret_text[n] = '\0';
	return n;
}

void file_sync_directory(int directory)
{
	if (fsync(directory) && errno != EINVAL && errno != EROFS)
		log_debug("cannot sync a directory: %m");
}
