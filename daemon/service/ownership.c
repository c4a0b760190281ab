// SPDX-License-Identifier: Apache-2.0
#include "service/ownership.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "base/macro.h"

enum { DEPTH_MAX = 4, LINKS_MAX = 8, OF_THE_USER = 1 };

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
	if (ownership->lacks_right)
		return fail(look, -EPERM, "the directory", "is root's, and CAP_CHOWN is missing; chown it to stacktap");
	err = walk_directory(look, fd, 0);
	if (err || ownership->only_looks)
		return err;
	change.with_change = true;
	err = walk_directory(&change, fd, 0);
	if (!err && fchown(fd, ownership->to, ownership->group) < 0)
		err = fail(look, -errno, "the directory", strerror(errno));
	return err;
}

static int look_above(const struct walk *walk, const char *path, bool with_end, unsigned int links);

/* Of a link: what it leads to starts where it lies. */
static int look_along(const struct walk *walk, const char *path, bool with_end, unsigned int links)
{
	const char *slash = strrchr(path, '/');
	char target[PATH_MAX], whole[PATH_MAX];
	ssize_t length = readlink(path, target, sizeof(target) - 1);
	int error = length < 0 ? errno : links == LINKS_MAX ? ELOOP : 0;

	if (!error) {
		target[length] = '\0';
		if (target[0] == '/' || !slash)
			return look_above(walk, target, with_end, links + 1);
		if (snprintf(whole, sizeof(whole), "%.*s/%s", (int)(slash - path), path, target) < (int)sizeof(whole))
			return look_above(walk, whole, with_end, links + 1);
		error = ENAMETOOLONG;
	}
	return fail(walk, -error, path, strerror(error));
}

/* A link, or a directory that is led @through. */
static int look_at(const struct walk *walk, const char *path, bool through, unsigned int links)
{
	const struct ownership *ownership = walk->ownership;
	struct stat st;

	if (lstat(path, &st) < 0)
		return errno == ENOENT ? 0 : fail(walk, -errno, path, strerror(errno));
	if (!through && !S_ISLNK(st.st_mode))
		return 0;
	if (st.st_uid == ownership->to)
		return OF_THE_USER;
	if (st.st_uid != ownership->from)
		return fail(walk, -EPERM, path, "belongs to another user; choose a directory below root's own");
	if (S_ISLNK(st.st_mode))
		return look_along(walk, path, through, links);
	/* what is in a sticky directory is replaced by its owner alone */
	if (st.st_mode & (S_IWGRP | S_IWOTH) && !(st.st_mode & S_ISVTX))
		return fail(walk, -EPERM, path, "is writable by its group or by others; chmod go-w");
	return 0;
}

/*
 * Can somebody else have chosen what @path leads to? 0: only who gives; OF_THE_USER: only that user, too; -errno: others.
 * Each is looked at once those above it are known to be nobody else's. What @path leads to itself is left to give().
 */
static int look_above(const struct walk *walk, const char *path, bool with_end, unsigned int links)
{
	char part[PATH_MAX];
	const char *end = path;
	int r = 0;

	while (!r && *end) {
		end += strspn(end, "/");
		end += strcspn(end, "/");
		if (snprintf(part, sizeof(part), "%.*s", (int)(end - path), path) >= (int)sizeof(part))
			return fail(walk, -ENAMETOOLONG, path, strerror(ENAMETOOLONG));
		r = look_at(walk, part, with_end || end[strspn(end, "/")], links);
	}
	return r;
}

int ownership_give(const struct ownership *ownership, const char *directory, mode_t mode, bool is_own,
		   char *ret_error, size_t error_size)
{
	char why[400] = "";
	const struct walk look = { .ownership = ownership, .is_own = is_own, .error = why, .error_size = sizeof(why) };
	_cleanup_close_ int fd = -1;
	int err = look_above(&look, directory, false, 0);

	/* who was faster in a sticky directory may have put a link there */
	if (!err && !ownership->only_looks && mkdir(directory, mode) < 0)
		err = look_above(&look, directory, false, 0);
	if (!err) {
		fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (fd < 0 && errno == ENOENT && !(ownership->only_looks && ownership->lacks_right))
			return 0;
		err = fd < 0 ? fail(&look, -errno, "the directory", strerror(errno)) : give(&look, fd);
	}
	if (err == OF_THE_USER)
		return 0;
	if (err < 0)
		snprintf(ret_error, error_size, "%.128s cannot be given to user stacktap: %s", directory, why);
	return err;
}
