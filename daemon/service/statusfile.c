// SPDX-License-Identifier: Apache-2.0
#include "service/statusfile.h"

#include <fcntl.h>
#include <pwd.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "service/status.h"

enum { MAX_FILE_BYTES = 1 << 20 };

struct statusfile {
	int directory;
	int lock;
};

/* Locks of the open file: they end with the daemon, however it ends. */
static struct flock whole_file(void)
{
	return (struct flock){ .l_type = F_WRLCK, .l_whence = SEEK_SET };
}

int statusfile_open(const char *directory, struct statusfile **ret_file)
{
	_cleanup_close_ int directory_fd = -1, lock = -1;
	struct flock whole = whole_file();
	struct statusfile *file;

	if (mkdir(directory, 0755) < 0 && errno != EEXIST)
		return -errno;
	directory_fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (directory_fd < 0)
		return -errno;
	/* for root alone: whoever can open it could lock it, and so keep the daemon from starting */
	lock = openat(directory_fd, "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (lock < 0)
		return -errno;
	if (fcntl(lock, F_OFD_SETLK, &whole) < 0)
		return errno == EAGAIN || errno == EACCES ? -EBUSY : -errno;
	file = malloc(sizeof(*file));
	if (!file)
		return -ENOMEM;
	*file = (struct statusfile){
		.directory = steal_fd(&directory_fd),
		.lock = steal_fd(&lock),
	};
	*ret_file = file;
	return 0;
}

void statusfile_close(struct statusfile *file)
{
	if (!file)
		return;
	unlinkat(file->directory, "status", 0);
	unlinkat(file->directory, "status.json", 0);
	unlinkat(file->directory, "serve", 0);
	/* the lock file stays: removing it would let two daemons lock two files of one name */
	close(file->lock);
	close(file->directory);
	free(file);
}

/* Readers see the old file or the new one, never half of it. */
static int replace(struct statusfile *file, const char *name, const struct snapshot *snapshot,
		   void (*print)(FILE *stream, const struct snapshot *snapshot))
{
	_cleanup_fclose_ FILE *stream = NULL;
	char temporary[32];
	int fd;

	snprintf(temporary, sizeof(temporary), ".%s.new", name);
	fd = openat(file->directory, temporary,
		    O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
	if (fd < 0)
		return -errno;
	stream = fdopen(fd, "w");
	if (!stream) {
		close(fd);
		return -ENOMEM;
	}
	print(stream, snapshot);
	if (fflush(stream) == EOF || ferror(stream)) {
		int error = errno;

		unlinkat(file->directory, temporary, 0);
		return -error;
	}
	return renameat(file->directory, temporary, file->directory, name) < 0 ? -errno : 0;
}

int statusfile_write(struct statusfile *file, const struct snapshot *snapshot)
{
	int ret = replace(file, "status", snapshot, status_print_daemon_text);

	return ret < 0 ? ret : replace(file, "status.json", snapshot, status_print_daemon_json);
}

int statusfile_write_address(struct statusfile *file, const char *address)
{
	_cleanup_close_ int fd = -1;
	bool is_written;

	/* made anew, whatever stood there: its mode has to be this one before the token is in it */
	if (unlinkat(file->directory, "serve", 0) < 0 && errno != ENOENT)
		return -errno;
	if (!address)
		return 0;
	fd = openat(file->directory, "serve", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return -errno;
	is_written = dprintf(fd, "%s\n", address) > 0;
	return is_written ? 0 : -EIO;
}

static bool is_daemons(uid_t uid)
{
	const struct passwd *entry = getpwnam(STATUSFILE_USER);

	return entry && entry->pw_uid == uid;
}

int statusfile_read(const char *directory, char **ret_text, char **ret_json, size_t *ret_json_size)
{
	_cleanup_free_ char *text = NULL, *json = NULL;
	_cleanup_close_ int directory_fd = -1, lock = -1;
	struct flock whole = whole_file();
	struct stat stat;
	size_t size = 0;
	int ret;

	*ret_text = *ret_json = NULL;
	*ret_json_size = 0;
	directory_fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (directory_fd < 0)
		return errno == ENOENT ? 0 : -errno;
	if (fstat(directory_fd, &stat) < 0)
		return -errno;
	if (stat.st_uid != 0 && stat.st_uid != geteuid() && !is_daemons(stat.st_uid))
		return -EPERM;
	lock = openat(directory_fd, "lock", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (lock < 0)
		return errno == ENOENT ? 0 : -errno;
	/* asks without locking, so that a daemon that starts right now is not refused */
	if (fcntl(lock, F_OFD_GETLK, &whole) < 0)
		return -errno;
	if (whole.l_type == F_UNLCK)
		return 0;
	ret = file_read(directory_fd, "status", MAX_FILE_BYTES, &text, NULL);
	if (!ret)
		ret = file_read(directory_fd, "status.json", MAX_FILE_BYTES, &json, &size);
	/* it has started and not written yet */
	if (ret == -ENOENT)
		return 0;
	if (ret)
		return ret;
	*ret_text = steal_ptr(text);
	*ret_json_size = strcspn(json, "\n");
	*ret_json = steal_ptr(json);
	return 0;
}
