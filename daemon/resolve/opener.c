// SPDX-License-Identifier: Apache-2.0
#include "resolve/opener.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

enum { MAP_FILES_MAX = 4096 };	/* mappings looked through for a deleted file */

/* A mapping as a line of /proc/PID/maps tells of it. */
struct mapping {
	uint64_t start, end, inode;
	unsigned int major, minor;
};

static bool is_wanted(const struct opener_wanted *wanted, const struct stat *st)
{
	if (!S_ISREG(st->st_mode) || (wanted->inode && wanted->inode != st->st_ino))
		return false;
	if (!wanted->major || !major(st->st_dev))
		return true;
	return wanted->major == major(st->st_dev) && wanted->minor == minor(st->st_dev);
}

/*
 * The first mapping that @proc's process, a directory of /proc, has at @start, or anywhere if that is 0, of
 * the file that is @wanted: the kernel shows the numbers here that the side band carries. -ESRCH: none.
 */
static int find_mapping(int proc, uint64_t start, const struct opener_wanted *wanted,
			struct mapping *ret_mapping)
{
	int fd = openat(proc, "maps", O_RDONLY | O_CLOEXEC);
	FILE *maps = fd < 0 ? NULL : fdopen(fd, "r");
	_cleanup_free_ char *line = NULL;
	size_t capacity = 0;
	int r = -ESRCH;

	if (!maps) {
		r = -errno;
		if (fd >= 0)
			close(fd);
		return r;
	}
	for (int i = 0; r < 0 && i < MAP_FILES_MAX && getline(&line, &capacity, maps) > 0; i++) {
		struct mapping mapping = { 0 };

		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %*x %x:%x %" SCNu64, &mapping.start,
			   &mapping.end, &mapping.major, &mapping.minor, &mapping.inode) == 5 &&
		    (!start || mapping.start == start) && mapping.inode == wanted->inode &&
		    mapping.major == wanted->major && mapping.minor == wanted->minor) {
			*ret_mapping = mapping;
			r = 0;
		}
	}
	fclose(maps);
	return r;
}

/* Only these numbers can be compared that come with a device. */
static bool is_provable(const struct opener_wanted *wanted)
{
	return wanted->inode && (wanted->major || wanted->minor);
}

/*
 * overlayfs maps a file of one of its layers, and kernels without file_user_inode() show that one's
 * numbers, later ones those of overlayfs' own inode. stat() may show a third, as a file that is copied up
 * keeps the number that it had. So only a mapping of the file can be compared with another. The page is
 * never read, which could block or raise SIGBUS.
 */
static bool is_mapped_as(const struct opener_wanted *wanted, int fd)
{
	_cleanup_close_ int self = -1;
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct mapping mapping;
	struct statfs fs;
	void *map;
	int r;

	if (!is_provable(wanted) || fstatfs(fd, &fs) < 0 || fs.f_type != OVERLAYFS_SUPER_MAGIC)
		return false;
	self = open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC);
	map = self < 0 ? MAP_FAILED : mmap(NULL, page, PROT_READ, MAP_PRIVATE, fd, 0);
	if (map == MAP_FAILED)
		return false;
	r = find_mapping(self, (uintptr_t)map, wanted, &mapping);
	munmap(map, page);
	return r == 0;
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

static int open_link(struct mount_namespace_table *spaces, int directory, const char *name,
		     const struct opener_wanted *wanted, bool may_map, int *ret_fd,
		     struct stat *ret_stat)
{
	_cleanup_close_ int path_fd = -1, fd = -1;
	struct stat st;
	int r;

	/* a magic link leads to the inode itself: no path is walked */
	if (fstatat(directory, name, &st, 0) < 0)
		return -errno;
	if (!is_wanted(wanted, &st) && !may_map)
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
	struct mapping mapping;
	char name[2 * 16 + 2];
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
		r = open_link(spaces, fd, entry->d_name, wanted, false, ret_fd, ret_stat);
		if (r == 0)
			break;
	}
	/* by what its own mappings say, which is to be proven: it may map another file there meanwhile */
	if (r < 0 && is_provable(wanted) && find_mapping(proc, 0, wanted, &mapping) == 0) {
		snprintf(name, sizeof(name), "%" PRIx64 "-%" PRIx64, mapping.start, mapping.end);
		r = open_link(spaces, fd, name, wanted, true, ret_fd, ret_stat);
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
	r = open_link(spaces, proc, "exe", wanted, false, ret_fd, ret_stat);
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
