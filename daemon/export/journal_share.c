// SPDX-License-Identifier: Apache-2.0
#include "export/journal_share.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/log.h"
#include "export/journal.h"
#include "export/journal_record.h"

#define FILE_MODE 0600
#define DIRECTORY_MODE 0750
#define TAKEN ".taken"
#define UNFINISHED "journal.new"
/* Where the disk of the first spool is away, its files are, too, and are still there when it comes back. */
#define NOTE_SECONDS (7 * 24 * 3600)

static _Atomic uint64_t copies_failed;

uint64_t journal_share_failed(void)
{
	return atomic_load_explicit(&copies_failed, memory_order_relaxed);
}

/* What tells a file from all others: its head, of which a part is random. Returns how many bytes of it there are. */
static size_t read_head(int directory, const char *name, uint8_t ret_head[JOURNAL_HEAD])
{
	_cleanup_close_ int fd = openat(directory, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	ssize_t n = fd < 0 ? -1 : read(fd, ret_head, JOURNAL_HEAD);

	return n < 0 ? 0 : (size_t)n;
}

/* journal-TIME.taken of journal-TIME.bin */
static void note_name(const char *name, char *ret_note, size_t size)
{
	snprintf(ret_note, size, "%.*s" TAKEN, (int)strcspn(name, "."), name);
}

static bool has_taken(int to, const char *note, const uint8_t *head, size_t size)
{
	uint8_t noted[JOURNAL_HEAD];

	return size && read_head(to, note, noted) == size && !memcmp(noted, head, size);
}

static int copy_bytes(int from, int to)
{
	uint8_t bytes[65536];
	ssize_t n, written;

	while ((n = read(from, bytes, sizeof(bytes))) > 0) {
		written = write(to, bytes, (size_t)n);
		if (written != n)
			return written < 0 ? -errno : -ENOSPC;
	}
	return n < 0 ? -errno : 0;
}

static int open_unfinished(int to)
{
	int fd = openat(to, UNFINISHED, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, FILE_MODE);

	return fd < 0 ? -errno : fd;
}

/* It appears complete, or not at all. */
static int finish(int to, const char *name, int err)
{
	if (!err && renameat(to, UNFINISHED, to, name))
		err = -errno;
	if (err)
		unlinkat(to, UNFINISHED, 0);
	return err;
}

static int copy_file(int from, int to, const char *name)
{
	_cleanup_close_ int in = openat(from, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	_cleanup_close_ int out = in < 0 ? -errno : open_unfinished(to);

	return out < 0 ? out : finish(to, name, copy_bytes(in, out));
}

/* Behind the copy and before anybody reads that: a kill in between copies the same again, in the same place. */
static int write_note(int to, const char *note, const uint8_t *head, size_t size)
{
	_cleanup_close_ int out = open_unfinished(to);
	ssize_t written = out < 0 ? out : write(out, head, size);

	return out < 0 ? out : finish(to, note, written == (ssize_t)size ? 0 : -ENOSPC);
}

/* @to: -errno where it cannot be opened. */
static void share_file(int from, int to, const char *name, const char *path)
{
	uint8_t head[JOURNAL_HEAD];
	const size_t size = read_head(from, name, head);
	char note[48];
	int err;

	note_name(name, note, sizeof(note));
	if (to >= 0 && has_taken(to, note, head, size))
		return;
	err = to < 0 ? to : copy_file(from, to, name);
	if (err) {
		atomic_fetch_add_explicit(&copies_failed, 1, memory_order_relaxed);
		log_warning("cannot copy %s of a daemon that was killed to %s: %s; this destination lacks up "
			    "to one window", name, path, strerror(-err));
		return;
	}
	err = size ? write_note(to, note, head, size) : 0;
	if (err)
		log_warning("%s has a copy of %s but cannot record that: %s; its samples may be sent there "
			    "twice", path, name, strerror(-err));
}

static bool is_note(const char *name)
{
	const size_t length = strlen(name), end = strlen(TAKEN);

	return !strncmp(name, "journal-", 8) && length > end && !strcmp(name + length - end, TAKEN);
}

/* Notes of files that have not been in @from for long. */
static void remove_notes(int from, int to)
{
	const time_t oldest = (time_t)(clock_read(CLOCK_REALTIME) / NSEC_PER_SEC) - NOTE_SECONDS;
	int fd = openat(to, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *dirent;
	char name[64];
	struct stat st;

	if (!dir && fd >= 0)
		close(fd);
	while (dir && (dirent = readdir(dir))) {
		if (!is_note(dirent->d_name))
			continue;
		snprintf(name, sizeof(name), "%.*s.bin", (int)strcspn(dirent->d_name, "."), dirent->d_name);
		if (faccessat(from, name, F_OK, AT_SYMLINK_NOFOLLOW) &&
		    !fstatat(to, dirent->d_name, &st, AT_SYMLINK_NOFOLLOW) && st.st_mtime < oldest)
			unlinkat(to, dirent->d_name, 0);
	}
	if (dir)
		closedir(dir);
}

static int make_directory(const char *path)
{
	int fd = !mkdir(path, DIRECTORY_MODE) || errno == EEXIST ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;

	return fd < 0 ? -errno : fd;
}

void journal_share(const char *from, const char *to)
{
	_cleanup_close_ int source = open(from, O_RDONLY | O_DIRECTORY | O_CLOEXEC), target = -1;
	DIR *dir = source >= 0 ? opendir(from) : NULL;
	struct dirent *dirent;
	uint64_t time;
	bool is_old;

	/* of a daemon that runs they are not ours to read */
	if (!dir || flock(source, LOCK_EX | LOCK_NB))
		goto out;
	target = open(to, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (target >= 0)
		remove_notes(source, target);
	while ((dirent = readdir(dir))) {
		/* an older version's is read by nobody */
		if (!journal_parse(dirent->d_name, &time, &is_old) || is_old)
			continue;
		if (target < 0)
			target = make_directory(to);
		share_file(source, target, dirent->d_name, to);
	}
out:
	if (dir)
		closedir(dir);
}
