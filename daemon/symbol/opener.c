// SPDX-License-Identifier: Apache-2.0
#include "symbol/opener.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/sysmacros.h>

enum { MAP_FILES_MAX = 4096 };	/* mappings looked through for a deleted file */

static bool is_wanted(const struct opener_wanted *wanted, const struct stat *st)
{
	if (!S_ISREG(st->st_mode) || (wanted->inode && wanted->inode != st->st_ino))
		return false;
	if (!wanted->major || !major(st->st_dev))
		return true;
	return wanted->major == major(st->st_dev) && wanted->minor == minor(st->st_dev);
}

static int open_in(struct mount_namespace_table *spaces, struct mount_namespace *space,
		   const struct opener_wanted *wanted, int *ret_fd, struct stat *ret_stat)
{
	_cleanup_close_ int fd = -1;
	int r;

	/* the same path on another root proves nothing */
	if (space->is_guess && !wanted->inode)
		return -ESTALE;
	r = mount_namespace_open(spaces, space, wanted->path, &fd, ret_stat);
	if (r < 0)
		return r;
	if (!is_wanted(wanted, ret_stat))
		return -ESTALE;
	*ret_fd = steal_fd(&fd);
	return 0;
}

static int open_link(struct mount_namespace_table *spaces, int directory, const char *name,
		     const struct opener_wanted *wanted, int *ret_fd, struct stat *ret_stat)
{
	_cleanup_close_ int path_fd = -1, fd = -1;
	struct stat st;
	int r;

	/* a magic link leads to the inode itself: no path is walked */
	if (fstatat(directory, name, &st, 0) < 0)
		return -errno;
	if (!is_wanted(wanted, &st))
		return -ESTALE;
	path_fd = openat(directory, name, O_PATH | O_CLOEXEC);
	if (path_fd < 0)
		return -errno;
	r = mount_namespace_reopen(spaces, path_fd, &fd, ret_stat);
	if (r < 0)
		return r;
	if (!is_wanted(wanted, ret_stat))
		return -ESTALE;
	*ret_fd = steal_fd(&fd);
	return 0;
}

static int open_mapped(struct mount_namespace_table *spaces, int proc,
		       const struct opener_wanted *wanted, int *ret_fd, struct stat *ret_stat)
{
	int fd = openat(proc, "map_files", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct dirent *entry;
	int r = -ENOENT;
	DIR *directory;

	if (fd < 0)
		return -errno;
	directory = fdopendir(fd);
	if (!directory) {
		r = -errno;
		close(fd);
		return r;
	}
	for (int i = 0; i < MAP_FILES_MAX && (entry = readdir(directory)); i++) {
		if (entry->d_name[0] == '.')
			continue;
		r = open_link(spaces, fd, entry->d_name, wanted, ret_fd, ret_stat);
		if (r == 0)
			break;
	}
	closedir(directory);
	return r;
}

static int open_through_process(struct mount_namespace_table *spaces, uint32_t tgid,
				bool is_root_closed, const struct opener_wanted *wanted,
				int *ret_fd, struct stat *ret_stat)
{
	struct mount_namespace *space;
	_cleanup_close_ int proc = -1;
	char path[32];
	int r;

	/* should the pid be another process' by now, its files still have to have our inode */
	if (!wanted->inode)
		return -ESRCH;
	snprintf(path, sizeof(path), "/proc/%u", tgid);
	proc = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (proc < 0)
		return -errno;
	if (is_root_closed && mount_namespace_table_get(spaces, proc, &space) == 0) {
		r = open_in(spaces, space, wanted, ret_fd, ret_stat);
		mount_namespace_unref(space);
		if (r == 0)
			return 0;
	}
	r = open_link(spaces, proc, "exe", wanted, ret_fd, ret_stat);
	if (r < 0)
		r = open_mapped(spaces, proc, wanted, ret_fd, ret_stat);
	return r;
}

int opener_open(struct mount_namespace_table *spaces, struct mount_namespace *space, uint32_t tgid,
		const struct opener_wanted *wanted, int *ret_fd, struct stat *ret_stat)
{
	struct mount_namespace *host;
	int r, first = -ENOENT;

	if (space) {
		first = open_in(spaces, space, wanted, ret_fd, ret_stat);
		if (first == 0 || first == -EREMOTE)
			return first;
	}
	if (tgid && open_through_process(spaces, tgid, space && space->root < 0, wanted, ret_fd,
					 ret_stat) == 0)
		return 0;
	if (space && space->is_guess)
		return first;
	host = mount_namespace_table_guess(spaces);
	r = open_in(spaces, host, wanted, ret_fd, ret_stat);
	mount_namespace_unref(host);
	return r == 0 || !space ? r : first;
}
