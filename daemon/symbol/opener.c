// SPDX-License-Identifier: Apache-2.0
#include "symbol/opener.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

enum {
	MAP_FILES_MAX = 4096,	/* mappings looked through for a deleted file */
	PROOFS_MAX = 64,	/* of these, how many are mapped to see whether they are it */
};

static bool is_wanted(const struct opener_wanted *wanted, const struct stat *st)
{
	if (!S_ISREG(st->st_mode) || (wanted->inode && wanted->inode != st->st_ino))
		return false;
	if (!wanted->major || !major(st->st_dev))
		return true;
	return wanted->major == major(st->st_dev) && wanted->minor == minor(st->st_dev);
}

/* What the kernel says of our own mapping at @address: the numbers that the side band would carry. */
static int mapped_numbers(const void *address, unsigned int *ret_major, unsigned int *ret_minor,
			  uint64_t *ret_inode)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	_cleanup_free_ char *line = NULL;
	size_t capacity = 0;
	int r = -ESRCH;

	if (!maps)
		return -errno;
	while (r < 0 && getline(&line, &capacity, maps) > 0) {
		uintptr_t start;

		if (sscanf(line, "%" SCNxPTR "-%*x %*s %*x %x:%x %" SCNu64, &start, ret_major,
			   ret_minor, ret_inode) == 4 && start == (uintptr_t)address)
			r = 0;
	}
	fclose(maps);
	return r;
}

/*
 * overlayfs maps a file of one of its layers, and kernels without file_user_inode() show that one's
 * numbers, later ones those of overlayfs' own inode. stat() may show a third, as a file that is copied up
 * keeps the number that it had. So only a mapping of the file can be compared with another. The page is
 * never read, which could block or raise SIGBUS.
 */
static bool is_mapped_as(const struct opener_wanted *wanted, int fd)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	unsigned int device_major = 0, device_minor = 0;
	uint64_t inode = 0;
	struct statfs fs;
	void *map;
	int r;

	if (!wanted->inode || fstatfs(fd, &fs) < 0 || fs.f_type != OVERLAYFS_SUPER_MAGIC)
		return false;
	map = mmap(NULL, page, PROT_READ, MAP_PRIVATE, fd, 0);
	if (map == MAP_FAILED)
		return false;
	r = mapped_numbers(map, &device_major, &device_minor, &inode);
	munmap(map, page);
	return r == 0 && inode == wanted->inode && device_major == wanted->major &&
	       device_minor == wanted->minor;
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
	if (!is_wanted(wanted, ret_stat) && !is_mapped_as(wanted, fd))
		return -ESTALE;
	*ret_fd = steal_fd(&fd);
	return 0;
}

/* @ret_stat: of what the link leads to, also where that is refused; without a number: there is nothing. */
static int open_link(struct mount_namespace_table *spaces, int directory, const char *name,
		     const struct opener_wanted *wanted, bool may_map, int *ret_fd,
		     struct stat *ret_stat)
{
	_cleanup_close_ int path_fd = -1, fd = -1;
	int r;

	ret_stat->st_ino = 0;
	/* a magic link leads to the inode itself: no path is walked */
	if (fstatat(directory, name, ret_stat, 0) < 0)
		return -errno;
	if (!is_wanted(wanted, ret_stat) && !may_map)
		return -ESTALE;
	path_fd = openat(directory, name, O_PATH | O_CLOEXEC);
	if (path_fd < 0)
		return -errno;
	r = mount_namespace_reopen(spaces, path_fd, &fd, ret_stat);
	if (r < 0)
		return r;
	if (!is_wanted(wanted, ret_stat) && !(may_map && is_mapped_as(wanted, fd)))
		return -ESTALE;
	*ret_fd = steal_fd(&fd);
	return 0;
}

static int open_mapped(struct mount_namespace_table *spaces, int proc,
		       const struct opener_wanted *wanted, int *ret_fd, struct stat *ret_stat)
{
	int fd = openat(proc, "map_files", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct dirent *entry;
	int r = -ENOENT, proofs = PROOFS_MAX;
	uint64_t last = 0;
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
		r = open_link(spaces, fd, entry->d_name, wanted, proofs > 0, ret_fd, ret_stat);
		if (r == 0)
			break;
		/* a program maps a library several times in a row */
		proofs -= ret_stat->st_ino != last;
		last = ret_stat->st_ino;
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
	r = open_link(spaces, proc, "exe", wanted, true, ret_fd, ret_stat);
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
