/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A tree that recorded paths are looked up in. Nothing leads out of it: no link, no "..", and none that is put
 * there between two looks, as each look begins at the tree's root and stays inside.
 */
#ifndef STACKTAP_CLI_SYSROOT_H
#define STACKTAP_CLI_SYSROOT_H

#include <limits.h>
#include <sys/stat.h>

#include "base/macro.h"

struct sysroot {
	int fd;
	char path[PATH_MAX];	/* without links; empty for "/" */
};

int sysroot_open(const char *directory, struct sysroot *ret_sysroot);
void sysroot_close(struct sysroot *sysroot);

/* Where a recorded path leads, links and all: with the sysroot's own path in front. */
int sysroot_resolve(const struct sysroot *sysroot, const char *path, char ret_path[static PATH_MAX]);
/*
 * Opens a regular file for reading; to open anything else may have effects: -ENOENT. @sysroot: @path is as
 * sysroot_resolve() gave it, or beside that; NULL: any path of this host.
 */
int sysroot_open_file(const struct sysroot *sysroot, const char *path, struct stat *ret_stat);

#endif /* STACKTAP_CLI_SYSROOT_H */
