// SPDX-License-Identifier: Apache-2.0
#include "cli/dwo_open.h"

#include "helper/told.h"

int dwo_open_named(const struct sysroot *sysroot, const char *path, struct stat *ret_stat)
{
	_cleanup_close_ int fd = sysroot_open_file(sysroot, path, ret_stat);
	int r = fd < 0 ? fd : told_check(fd, ret_stat);

	return r < 0 ? r : steal_fd(&fd);
}

int dwo_open_told(const char *directory, const char *path, struct stat *ret_stat)
{
	_cleanup_close_ int path_fd = told_walk(directory, path), fd = -1;
	int r;

	if (path_fd < 0)
		return path_fd;
	fd = sysroot_open_again(path_fd, ret_stat);
	if (fd < 0)
		return fd;
	if (!(ret_stat->st_mode & S_IROTH) && ret_stat->st_uid != geteuid())
		return -EACCES;
	r = told_check(fd, ret_stat);
	return r < 0 ? r : steal_fd(&fd);
}
