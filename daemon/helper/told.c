// SPDX-License-Identifier: Apache-2.0
#include "helper/told.h"

#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/syscall.h>

#include "helper/owner.h"

enum {
	LINKS_MAX = 40,			/* as the kernel's */
	STEPS_MAX = 256,		/* components, with those of links */
	MOUNTS_MAX = 4,
	BYTES_MIN = 64,
};

/* On the way to a file, component by component. */
struct way {
	int fd;				/* of the directory it has come to */
	uint64_t mount;			/* that this is on */
	unsigned int links, steps;
	uint64_t local[MOUNTS_MAX];	/* the last mounts that were found to be so */
	unsigned int local_count;
	char rest[PATH_MAX];
};

/* Of the types of file systems that no server is behind. One may be behind what overlayfs has its files on. */
static bool is_local(const char *type)
{
	static const char *const types[] = {
		"ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs", "jfs", "reiserfs", "nilfs2", "zfs", "bcachefs", "vfat", "exfat",
		"ntfs3", "squashfs", "erofs", "iso9660", "udf", "tmpfs", "ramfs",
	};

	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		if (!strcmp(type, types[i]))
			return true;
	return false;
}

/* By what the kernel lists: statfs() would ask the server of a file system for it, and wait. */
static bool is_listed_local(uint64_t mount)
{
	FILE *mounts = fopen("/proc/self/mountinfo", "re");
	_cleanup_free_ char *line = NULL;
	size_t capacity = 0;
	bool is = false;

	while (mounts && getline(&line, &capacity, mounts) > 0) {
		char *type = strstr(line, " - ");

		if (!type || strtoull(line, NULL, 10) != mount)
			continue;
		type += 3;
		type[strcspn(type, " ")] = '\0';
		is = is_local(type);
		break;
	}
	if (mounts)
		fclose(mounts);
	return is;
}

/* The list is long on some hosts, and a path may go to and fro. */
static bool is_local_mount(struct way *way, uint64_t mount)
{
	for (unsigned int i = 0; i < min_of(way->local_count, (unsigned int)MOUNTS_MAX); i++)
		if (way->local[i] == mount)
			return true;
	if (!is_listed_local(mount))
		return false;
	way->local[way->local_count++ % MOUNTS_MAX] = mount;
	return true;
}

/* What is at @fd, from O_PATH, without asking a server. */
static int look_at(int fd, struct statx *ret_stat)
{
	return statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE | STATX_MNT_ID, ret_stat) < 0 ? -errno :
	       ret_stat->stx_mask & STATX_MNT_ID ? 0 : -EOPNOTSUPP;
}

/* Where it begins is known to whoever asks. */
static int begin_at(struct way *way, const char *directory)
{
	struct statx st;
	int fd = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
	int r = fd < 0 ? -errno : look_at(fd, &st);

	if (way->fd >= 0)
		close(way->fd);
	way->fd = fd;
	way->mount = r < 0 ? 0 : st.stx_mnt_id;
	return r;
}

static int follow(struct way *way, int link)
{
	char target[PATH_MAX], rest[PATH_MAX];
	ssize_t length = readlinkat(link, "", target, sizeof(target));

	if (length <= 0 || ++way->links > LINKS_MAX)
		return length < 0 ? -errno : -ELOOP;
	if (snprintf(rest, sizeof(rest), "%.*s/%s", (int)length, target, way->rest) >= (int)sizeof(rest))
		return -ENAMETOOLONG;
	strcpy(way->rest, rest);
	return target[0] == '/' ? begin_at(way, "/") : 0;
}

/* Takes the first component off the rest, and goes there. O_PATH of the last one of a path mounts nothing (autofs). */
static int step(struct way *way)
{
	const char *at = way->rest + strspn(way->rest, "/");
	const size_t length = strcspn(at, "/");
	_cleanup_close_ int fd = -1;
	char name[NAME_MAX + 1];
	struct statx st;
	int r;

	if (length >= sizeof(name))
		return -ENAMETOOLONG;
	if (++way->steps > STEPS_MAX)
		return -ELOOP;
	snprintf(name, sizeof(name), "%.*s", (int)length, at);
	memmove(way->rest, at + length, strlen(at + length) + 1);
	fd = openat(way->fd, length ? name : ".", O_PATH | O_NOFOLLOW | O_CLOEXEC);
	r = fd < 0 ? -errno : look_at(fd, &st);
	if (r < 0)
		return r;
	if (st.stx_mnt_id != way->mount && !is_local_mount(way, st.stx_mnt_id))
		return -EREMOTE;
	if (S_ISLNK(st.stx_mode))
		return follow(way, fd);
	way->mount = st.stx_mnt_id;
	close(way->fd);
	way->fd = steal_fd(&fd);
	return 0;
}

int told_walk(const char *directory, const char *path)
{
	struct way way = { .fd = -1 };
	int r;

	if (strlen(path) >= sizeof(way.rest))
		return -ENAMETOOLONG;
	strcpy(way.rest, path);
	r = begin_at(&way, directory);
	while (!r && way.rest[strspn(way.rest, "/")])
		r = step(&way);
	if (!r)
		return way.fd;
	if (way.fd >= 0)
		close(way.fd);
	return r;
}

/* The mounts that are listed here are those of this process' own root. */
static bool is_own_root(int root)
{
	_cleanup_close_ int own = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct statx a, b;

	return own >= 0 && !look_at(own, &a) && !look_at(root, &b) && a.stx_mnt_id == b.stx_mnt_id && a.stx_ino == b.stx_ino &&
	       a.stx_dev_major == b.stx_dev_major && a.stx_dev_minor == b.stx_dev_minor;
}

int told_walk_in(int root, const char *path)
{
	const struct open_how how = {
		.flags = O_PATH | O_CLOEXEC,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV,
	};
	int fd;

	if (is_own_root(root))
		return told_walk("/", path);
	fd = (int)syscall(SYS_openat2, root, path, &how, sizeof(how));
	return fd < 0 ? -errno : fd;
}

int told_check(int fd, const struct stat *st)
{
	Elf64_Ehdr ehdr;
	struct statfs fs;

	if (fstatfs(fd, &fs) < 0)
		return -errno;
	if (owner_is_kernels(&fs))
		return -EACCES;
	/* both classes have the type at the same place */
	if (st->st_size < BYTES_MIN || pread(fd, &ehdr, BYTES_MIN, 0) != BYTES_MIN ||
	    memcmp(ehdr.e_ident, ELFMAG, SELFMAG) != 0 || ehdr.e_type != ET_REL)
		return -ENOEXEC;
	return 0;
}

