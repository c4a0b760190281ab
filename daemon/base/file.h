/* SPDX-License-Identifier: Apache-2.0 */
/* Small files at once, and names that last. */
#ifndef STACKTAP_BASE_FILE_H
#define STACKTAP_BASE_FILE_H

#include <fcntl.h>

#include "base/macro.h"

/*
 * The whole file, with a NUL behind it that does not count; works for /proc, whose files have no
 * size. -EFBIG beyond @max_bytes. @directory as for openat().
 */
int file_read(int directory, const char *path, size_t max_bytes, char **ret_data,
	      size_t *ret_size);
/*
 * A regular file for reading, or /dev/null; what waits when it is opened or read, as a FIFO does, is none: -EINVAL.
 * -errno
 */
int file_open_regular(const char *path);
int file_open(const char *path, FILE **ret_file);
int file_read_fd(int fd, size_t max_bytes, char **ret_data, size_t *ret_size);	/* what is left of it */
/* All of @size bytes from @offset on: 0, -ENODATA where there are fewer, -errno. */
int file_pread(int fd, void *ret_bytes, size_t size, uint64_t offset);
/* All of @size bytes: 0, -EIO where nothing more fits, -errno. */
int file_write(int fd, const void *data, size_t size);
/* What fits, with a NUL behind it, by one read(), as files are to be read that the kernel makes. Its length, or -errno. */
ssize_t file_read_text(int directory, const char *path, char *ret_text, size_t size);
/* A name that was made or changed survives a power cut once its directory is synced. */
void file_sync_directory(int directory);

#endif /* STACKTAP_BASE_FILE_H */
