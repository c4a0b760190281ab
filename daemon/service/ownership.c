// SPDX-License-Identifier: Apache-2.0
#include "service/ownership.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/macro.h"

enum { DEPTH_MAX = 4 };

struct walk {
	const struct ownership *ownership;
	bool is_own;		/* whatever it is called */
	bool with_change;	/* else it only looks */
	char *error;
	size_t error_size;
};

static int fail(const struct walk *walk, int error, const char *name, const char *why)
{
	snprintf(walk->error, walk->error_size, "%.256s: %s", name, why);
	return error;
}

static const char not_ours[] = "is not a file of stacktapd's; give stacktapd a directory of its own";

/* Of profiles, journals, tables, debug files. */
static bool is_ours(const char *name)
{
	static const char *const suffixes[] = { ".otlp", ".bin", ".table", ".tmp", ".debug", ".absent", ".partial" };
	const size_t length = strlen(name);

	for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++)
		if (length > strlen(suffixes[i]) && !strcmp(name + length - strlen(suffixes[i]), suffixes[i]))
			return true;
	return false;
}

static int walk_directory(const struct walk *walk, int directory, unsigned int depth);

static int walk_entry(const struct walk *walk, int directory, const char *name, unsigned int depth)
{
	const struct ownership *ownership = walk->ownership;
	_cleanup_close_ int fd = openat(directory, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	_cleanup_close_ int below = -1;
	struct stat st;
	int err;

	if (fd < 0 || fstat(fd, &st) < 0)
		return errno == ENOENT ? 0 : fail(walk, -errno, name, strerror(errno));
	/* a hard link may be a file of the system's */
	if ((st.st_uid != ownership->from && st.st_uid != ownership->to) ||
	    (S_ISREG(st.st_mode) ? st.st_nlink != 1 : !S_ISDIR(st.st_mode) && !S_ISSOCK(st.st_mode)))
		return fail(walk, -EPERM, name, not_ours);
	if (!walk->is_own && !S_ISDIR(st.st_mode) && !is_ours(name))
		return fail(walk, -EPERM, name, not_ours);
	if (S_ISDIR(st.st_mode)) {
		below = openat(directory, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (below < 0)
			return fail(walk, -errno, name, strerror(errno));
		if (depth == DEPTH_MAX)
			return fail(walk, -EPERM, name, not_ours);
		err = walk_directory(walk, below, depth + 1);
		if (err < 0)
			return err;
	}
	if (walk->with_change && st.st_uid != ownership->to &&
	    fchownat(fd, "", ownership->to, ownership->group, AT_EMPTY_PATH) < 0)
		return fail(walk, -errno, name, strerror(errno));
	return 0;
}

static int walk_directory(const struct walk *walk, int directory, unsigned int depth)
{
	int fd = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	int err = 0;

	if (!dir) {
		err = fail(walk, -errno, "the directory", strerror(errno));
		if (fd >= 0)
			close(fd);
		return err;
	}
	while (!err && (entry = readdir(dir)))
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			err = walk_entry(walk, directory, entry->d_name, depth);
	closedir(dir);
	return err;
}

/* The owner of the directory comes last: until then no one else can have put anything there. */
static int give(const struct walk *look, int fd)
{
	const struct ownership *ownership = look->ownership;
	struct walk change = *look;
	struct stat st;
	int err;

	if (fstat(fd, &st) < 0)
		return fail(look, -errno, "the directory", strerror(errno));
	if (st.st_uid == ownership->to)
		return 0;
	if (st.st_uid != ownership->from)
		return fail(look, -EPERM, "the directory", "belongs to another user; chown it to stacktap");
	if (st.st_mode & (S_IWGRP | S_IWOTH))
		return fail(look, -EPERM, "the directory", "is writable by its group or by others; chmod go-w");
	err = walk_directory(look, fd, 0);
	if (err || ownership->only_looks)
		return err;
	change.with_change = true;
	err = walk_directory(&change, fd, 0);
	if (!err && fchown(fd, ownership->to, ownership->group) < 0)
		err = fail(look, -errno, "the directory", strerror(errno));
	return err;
}

int ownership_give(const struct ownership *ownership, const char *directory, mode_t mode, bool is_own,
		   char *ret_error, size_t error_size)
{
	char why[400] = "";
	const struct walk look = { .ownership = ownership, .is_own = is_own, .error = why, .error_size = sizeof(why) };
	_cleanup_close_ int fd = -1;
	int err;

	if (!ownership->only_looks)
		mkdir(directory, mode);
	fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT)
		return 0;
	err = fd < 0 ? fail(&look, -errno, "the directory", strerror(errno)) : give(&look, fd);
	if (err < 0)
		snprintf(ret_error, error_size, "%.128s cannot be given to user stacktap: %s", directory, why);
	return err;
}
