// SPDX-License-Identifier: Apache-2.0
#include "cli/sysroot.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/syscall.h>

#include "helper/opener.h"

enum { READ_FLAGS = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY };

static int path_of(int fd, char ret_path[static PATH_MAX])
{
	char link[32];
	ssize_t length;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	length = readlink(link, ret_path, PATH_MAX - 1);
	if (length < 0)
		return -errno;
	ret_path[length] = '\0';
	return 0;
}

int sysroot_open(const char *directory, struct sysroot *ret_sysroot)
{
	int r;

	ret_sysroot->space = NULL;
	ret_sysroot->fd = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (ret_sysroot->fd < 0)
		return -errno;
	r = path_of(ret_sysroot->fd, ret_sysroot->path);
	if (r < 0)
		sysroot_close(ret_sysroot);
	else if (!strcmp(ret_sysroot->path, "/"))
		ret_sysroot->path[0] = '\0';
	return r;
}

int sysroot_open_process(const struct sysroot_process *process, struct sysroot *ret_sysroot)
{
	int r = -ESRCH;

	*ret_sysroot = (struct sysroot){ .fd = -1, .process = *process };
	if (process->tgid)
		r = opener_space(process->opener, process->spaces, process->tgid, &ret_sysroot->space);
	if (r == -EHOSTDOWN)
		return r;
	/* it has ended, or is none of ours */
	if (r < 0)
		ret_sysroot->space = mount_namespace_table_guess(process->spaces);
	return 0;
}

void sysroot_close(struct sysroot *sysroot)
{
	mount_namespace_unref(steal_ptr(sysroot->space));
	if (sysroot->fd >= 0)
		close(steal_fd(&sysroot->fd));
}

static int open_inside(const struct sysroot *sysroot, const char *path)
{
	const struct open_how how = {
		.flags = O_PATH | O_CLOEXEC,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
	};
	int fd = (int)syscall(SYS_openat2, sysroot->fd, path, &how, sizeof(how));

	return fd < 0 ? -errno : fd;
}

int sysroot_resolve(const struct sysroot *sysroot, const char *path, char ret_path[static PATH_MAX])
{
	const size_t length = strlen(sysroot->path);
	_cleanup_close_ int fd = -1;
	int r;

	/* as the kernel told it when the process mapped it: without links */
	if (sysroot->space)
		return snprintf(ret_path, PATH_MAX, "%s", path) < PATH_MAX ? 0 : -ENAMETOOLONG;
	fd = open_inside(sysroot, path);
	r = fd < 0 ? fd : path_of(fd, ret_path);
	if (r < 0)
		return r;
	return strncmp(ret_path, sysroot->path, length) || ret_path[length] != '/' ? -ENOENT : 0;
}

int sysroot_open_again(int fd, struct stat *ret_stat)
{
	char link[32];
	int again;

	if (fstat(fd, ret_stat) < 0)
		return -errno;
	if (!S_ISREG(ret_stat->st_mode))
		return -ENOENT;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	again = open(link, READ_FLAGS);
	return again < 0 ? -errno : again;
}

int sysroot_open_file(const struct sysroot *sysroot, const char *path, struct stat *ret_stat)
{
	_cleanup_close_ int fd = -1;

	if (!sysroot) {
		fd = open(path, O_PATH | O_CLOEXEC);
		return fd < 0 ? -errno : sysroot_open_again(fd, ret_stat);
	}
	if (sysroot->space) {
		const struct sysroot_process *process = &sysroot->process;
		int r = opener_open_path(process->opener, process->spaces, sysroot->space, path, NULL, &fd, ret_stat);

		return r < 0 ? r : steal_fd(&fd);
	}
	if (strncmp(path, sysroot->path, strlen(sysroot->path)) != 0)
		return -ENOENT;
	fd = open_inside(sysroot, path + strlen(sysroot->path));
	return fd < 0 ? fd : sysroot_open_again(fd, ret_stat);
}
