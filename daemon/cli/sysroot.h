/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A tree that recorded paths are looked up in. Nothing leads out of it: no link, no "..", and none that is put
 * there between two looks, as each look begins at the tree's root and stays inside.
 *
 * The root of a process may hang on a server that does not answer, as FUSE's or NFS': the opener looks there, for as
 * long as it may.
 */
#ifndef STACKTAP_CLI_SYSROOT_H
#define STACKTAP_CLI_SYSROOT_H

#include <limits.h>
#include <sys/stat.h>

#include "base/macro.h"

struct mount_namespace;
struct mount_namespace_table;
struct opener;

/* Who looks into the root of a process, if it can be had, else into the host's. */
struct sysroot_process {
	struct opener *opener;
	struct mount_namespace_table *spaces;
	uint32_t tgid;		/* 0: the host's */
};

struct sysroot {
	int fd;			/* -1: not open, or a process' */
	char path[PATH_MAX];	/* without links; empty for "/" */
	struct sysroot_process process;
	struct mount_namespace *space;	/* NULL: a directory's */
};

int sysroot_open(const char *directory, struct sysroot *ret_sysroot);
/* -EHOSTDOWN: it does not answer. */
int sysroot_open_process(const struct sysroot_process *process, struct sysroot *ret_sysroot);
void sysroot_close(struct sysroot *sysroot);

/* Where a recorded path leads, links and all: with the sysroot's own path in front. */
int sysroot_resolve(const struct sysroot *sysroot, const char *path, char ret_path[static PATH_MAX]);
/*
 * Opens a regular file for reading; to open anything else may have effects: -ENOENT. @sysroot: @path is as
 * sysroot_resolve() gave it, or beside that; NULL: any path of this host. Of a process' root what opener_open_path()
 * says: -EHOSTDOWN, -EREMOTE.
 */
int sysroot_open_file(const struct sysroot *sysroot, const char *path, struct stat *ret_stat);
/* For reading, the very file that @fd, from O_PATH, stands for, if it is a regular one. */
int sysroot_open_again(int fd, struct stat *ret_stat);

#endif /* STACKTAP_CLI_SYSROOT_H */
